"""A corrupt block in the middle of a cluster: its lines are missing, it is reported once, and all others are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import cdxmill
from cdxmill.errors import CorruptError
from cdxmill.formats.clusters.zipnum import parse_index_line
from tests.conftest import RunCdxmill

PER_BLOCK = 20


@pytest.fixture(scope="module")
def cluster(run_cdxmill: RunCdxmill, pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster of a real archive; its third block is corrupt."""
    place = tmp_path_factory.mktemp("skipped") / "cluster"
    words = ["-q", "-s", "1", "--numlines", str(PER_BLOCK), "-o", place, pywb_warcs / "iana.warc.gz"]
    assert run_cdxmill("build", *words).returncode == 0
    return place


@pytest.fixture
def lines(cluster: Path) -> Iterator[list[str]]:
    """The lines of the cluster that can be read after the third block was corrupted."""
    shard = cluster / "cdx-00000.gz"
    sound = shard.read_bytes()
    with cdxmill.Cluster(cluster) as opened:
        found = [line.decode() for lines in opened.lines("*") for line in lines]
    data = bytearray(sound)
    offset = third_block(cluster)
    data[offset + 100 : offset + 104] = bytes(byte ^ 0xFF for byte in data[offset + 100 : offset + 104])
    shard.write_bytes(data)
    yield [*found[: 2 * PER_BLOCK], *found[3 * PER_BLOCK :]]
    shard.write_bytes(sound)


def third_block(cluster: Path) -> int:
    return parse_index_line((cluster / "part-00000").read_bytes().splitlines()[2]).offset


def report_of(cluster: Path, stderr: bytes) -> str:
    """The line that reports the block. Nothing else does."""
    found = [line for line in stderr.decode().splitlines() if "the block is corrupt" in line]
    assert len(found) == 1
    assert f"{cluster}/cdx-00000.gz@{third_block(cluster)}: the block is corrupt (" in found[0]
    assert "; the lines of this block are missing; check it with cdxmill verify" in found[0]
    return found[0]


@pytest.mark.parametrize(
    ("options", "of"),
    [
        ((), slice(None)),
        (("--sort", "reverse"), slice(None, None, -1)),
        (("--sort", "reverse", "--limit", "130"), slice(None, -131, -1)),
        (("--page", "0", "--page-size", "4"), slice(3 * PER_BLOCK)),
    ],
)
def test_a_lookup_goes_on(
    options: Sequence[str], of: slice, cluster: Path, lines: list[str], run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("lookup", cluster, "*", *options)
    assert (done.returncode, done.stdout.decode().splitlines()) == (1, lines[of])
    report_of(cluster, done.stderr)
    if len(options) == 2 or not options:
        done = run_cdxmill("lookup", cluster, "*", "--count")
        assert (done.returncode, done.stdout) == (1, b"%d\n" % len(lines))
        report_of(cluster, done.stderr)


def test_several_sources_go_on(cluster: Path, lines: list[str], run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("lookup", f"{cluster},{cluster}", "*")
    assert (done.returncode, done.stdout.decode().splitlines()) == (1, lines)
    report_of(cluster, done.stderr)


def test_what_needs_no_line_of_the_block_is_whole(
    cluster: Path, lines: list[str], run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("lookup", cluster, "*", "--limit", str(PER_BLOCK))
    assert (done.returncode, done.stdout.decode().splitlines(), done.stderr) == (0, lines[:PER_BLOCK], b"")


def test_a_copy_has_all_other_captures(
    cluster: Path, lines: list[str], run_cdxmill: RunCdxmill, pywb_warcs: Path, tmp_path: Path
) -> None:
    done = run_cdxmill("copy", "-q", "-o", tmp_path / "copy", cluster, "--archives", pywb_warcs, "*")
    assert done.returncode == 1
    report_of(cluster, done.stderr)
    copied = [line for path in (tmp_path / "copy").glob("*.cdxj") for line in path.read_text().splitlines()]
    assert sorted(line.split(" {")[0] for line in copied) == sorted(line.split(" {")[0] for line in lines)
    listed = (tmp_path / "copy/copy-failures.tsv").read_text()
    assert f"{cluster}/cdx-00000.gz\t{third_block(cluster)}\t" in listed


def test_python_and_the_servers_give_no_answer_with_a_gap(cluster: Path, lines: list[str]) -> None:
    with cdxmill.Cluster(cluster) as opened, pytest.raises(CorruptError, match="the block is corrupt"):
        list(opened.lines("*"))
