"""Outputs that somebody changed, and runs with other options: found by `python -m bench.sequences`."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from ..conftest import RunCdxmill


@pytest.fixture
def directory(pywb_warcs: Path, tmp_path: Path) -> Path:
    """in/one.warc.gz and in/two.warc.gz."""
    (tmp_path / "in").mkdir()
    for name, source in (("one", "example"), ("two", "post-test")):
        shutil.copyfile(pywb_warcs / f"{source}.warc.gz", tmp_path / f"in/{name}.warc.gz")
    return tmp_path


def test_a_corrupt_list_of_a_copy_is_reported(directory: Path, run_cdxmill: RunCdxmill) -> None:
    assert run_cdxmill("index", "-q", "-o", "all.cdxj", "in", cwd=directory).returncode == 0
    call = ["copy", "-o", "out", "--archives", "in", "all.cdxj"]
    assert run_cdxmill(*call, cwd=directory).returncode == 0
    table = directory / "out/out-00000.tsv"
    table.write_bytes(table.read_bytes().replace(b"\t20140103030321", b" 20140103030321"))
    done = run_cdxmill(*call, cwd=directory)
    assert done.returncode == 1
    assert b"out/out-00000.tsv: is corrupt; move it and the archive beside it away" in done.stderr


@pytest.mark.parametrize("command", ["recompress", "scan --to warc.zst"])
@pytest.mark.parametrize("existing", [(), ("--update",), ("--replace",)])
def test_outputs_among_the_inputs_are_not_read_again(
    existing: tuple[str, ...], command: str, directory: Path, run_cdxmill: RunCdxmill
) -> None:
    call = [*command.split(), "-o", "in", "in"]
    assert run_cdxmill(*call, cwd=directory).returncode == 0
    names = {path.name for path in (directory / "in").iterdir()}
    for _ in range(2):
        done = run_cdxmill(*call, *existing, cwd=directory)
        assert done.returncode == 0, done.stderr
        assert (
            b"in: note: 2 archives there came from other inputs of this run, and will not be read\n"
            in done.stderr
        )
        assert {path.name for path in (directory / "in").iterdir()} == names
    for source in (directory / "in").glob("*.gz"):
        source.unlink()
    assert run_cdxmill("recompress", "--to", "gz", "-o", "in", "in", cwd=directory).returncode == 0
    assert len([*(directory / "in").glob("*.gz")]) == 2


def test_a_grouped_archive_has_no_index_and_no_table_of_an_earlier_run(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    call = ["recompress", "-q", "-o", "out", "in/one.warc.gz", "in/two.warc.gz"]
    assert run_cdxmill(*call, "--index", "--offsets", cwd=directory).returncode == 0
    theirs = directory / "out/two.warc.zst.offsets.gz"
    theirs.write_bytes(gzip.compress(b"precious"))
    done = run_cdxmill(*call, "--group", "--replace", cwd=directory)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (directory / "out").iterdir() if path.name[0] != "."}
    assert names == {
        "one.warc.zst",
        "two.warc.zst",
        theirs.name,
        "one.warc.zst.proof.json",
        "two.warc.zst.proof.json",
    }
    for name in ("one.warc.zst.cdx.gz", "one.warc.zst.offsets.gz", "two.warc.zst.cdx.gz"):
        assert f"out/{name}: note: removed, because".encode() in done.stderr
    assert gzip.decompress(theirs.read_bytes()) == b"precious"
