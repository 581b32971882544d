"""The scripts in jobs/ show their own name and what they do."""

from __future__ import annotations

import pytest

from tests.jobs.conftest import RunJob


@pytest.mark.parametrize(
    ("name", "usage", "description"),
    [
        ("indexwarcsjob", "--cdx_bucket DIR MANIFEST...", "Index the WARC and ARC files"),
        ("recompressjob", "--output_bucket DIR MANIFEST...", "Write the WARC and ARC files"),
        ("addclusterjob", "--zipnum-dir CLUSTER NEW...", "Add the lines of other clusters"),
        ("samplecdxjob", "CDX...", "print split points"),
        ("dosample", "--from-cluster CLUSTER", "write split points for the ZipNum job to two files"),
        ("zipnumclusterjob", "[--splitfile FILE] --zipnum-dir DIR CDX...", "Build a ZipNum cluster"),
        ("seqfileutils", "(--copyfrom COPYFROM | --count) [--replace]", "Convert split points"),
    ],
)
def test_help_names_the_script_its_arguments_and_what_it_does(
    name: str, usage: str, description: str, run_script: RunJob
) -> None:
    done = run_script(f"jobs/{name}.py", "--help")
    text = done.stdout.decode()
    assert done.returncode == 0
    assert text.startswith(f"usage: {name}.py ")
    assert usage in text.partition("\n\n")[0]
    assert description in text
