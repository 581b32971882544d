"""A counting job on Hadoop: the sorted parts of two reducers are what `cdxmill count` writes, failures are beside them."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import RunCdxmill

from .archives import OF_HDFS, ON_NODES, ROOT, TOGETHER, Indexed
from .job_runs import HDFS, Jobs

OUTPUT = f"{HDFS}/counts"


def test_the_parts_are_the_counts_of_the_command(
    indexed: Indexed, jobs: Jobs, pywb_warcs: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    manifest = tmp_path / "warc.paths"
    manifest.write_text("".join(f"{name}\n" for name in [*OF_HDFS, "absent.warc.gz"]))
    options = [*ON_NODES, *TOGETHER, "--warc_bucket", ROOT, "--output-dir", OUTPUT]
    done = jobs.run("tagcountjob", *options, "--jobconf", "mapreduce.job.reduces=2", manifest)
    found = jobs.get(OUTPUT, tmp_path)
    parts = [found.pop("part-00000"), found.pop("part-00001")]
    expected = run_cdxmill(
        "count", "tags", "-o", "-", *(pywb_warcs / name for name in OF_HDFS.values())
    ).stdout
    assert all(parts), done.stderr
    assert sorted(b"".join(parts).splitlines(keepends=True)) == expected.splitlines(keepends=True)
    assert done.status == 1
    assert done.stdout == b""
    assert "absent.warc.gz: cannot be read (" in done.stderr
    assert "\n3 of 4 archives counted, 1 with failures\n" in done.stderr
    failures = b"".join(data for name, data in found.items() if name.startswith("_failures-"))
    assert failures.startswith(f"{ROOT}/absent.warc.gz\tcannot be read (".encode()) or b"absent" in failures
    assert done.counter("records counted") > 10
