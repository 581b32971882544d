"""The examples in Python of docs/lookup.md print what the page shows."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest

from cdxmill.cli.main import main

from ..docs.pages import DOCS, fences


def test_the_examples_print_what_the_page_shows(
    pywb_warcs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = str(tmp_path / "cluster")
    assert (
        main(["build", "-q", "-o", cluster, "-s", "2", "--numlines", "10", str(pywb_warcs / "iana.warc.gz")])
        == 0
    )
    capsys.readouterr()
    code = fences(DOCS / "lookup.md", "python")
    with chdir(tmp_path):
        exec("".join(code), {})
    assert capsys.readouterr().out == "".join(fences(DOCS / "lookup.md", "text"))
    assert len(code) == 3
