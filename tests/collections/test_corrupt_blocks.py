"""Clusters with corrupt blocks that are merged, or added to another one: only the lines of these blocks are missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import cdxmill
from cdxmill.formats.clusters.zipnum import parse_index_line
from tests.conftest import RunCdxmill

EVEN, ODD = ([f"com,example)/{number:04d} 2020 {{}}" for number in range(odd, 8000, 2)] for odd in (0, 1))
NUMLINES = 1100
"""Three blocks in the first shard, one in the second. Blocks of more than 500 lines have tables of sections."""


@pytest.fixture
def place(tmp_path: Path, run_cdxmill: RunCdxmill, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The clusters even and odd."""
    monkeypatch.chdir(tmp_path)
    Path("points").write_text("com,example)/6000\n")
    for name, lines in (("even", EVEN), ("odd", ODD)):
        Path(f"{name}.cdxj").write_text("".join(f"{line}\n" for line in lines))
        words = ["-q", "--splits", "points", "--numlines", str(NUMLINES), "-o", name, f"{name}.cdxj"]
        assert run_cdxmill("zipnum", *words).returncode == 0
    return tmp_path


def overwrite(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset : offset + 4] = bytes(byte ^ 0xFF for byte in data[offset : offset + 4])
    path.write_bytes(data)


def second_block(cluster: str) -> int:
    lines = Path(cluster, "part-00000").read_bytes().splitlines()
    return parse_index_line(lines[1]).offset


def without_block(lines: Sequence[str]) -> list[str]:
    """The lines without those of the second block of the first shard."""
    return [*lines[:NUMLINES], *lines[2 * NUMLINES :]]


def lines_in(cluster: str) -> list[str]:
    with cdxmill.Cluster(cluster) as opened:
        return [line.decode() for lines in opened.lines("*") for line in lines]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("cluster.json", b"{}", "even/cluster.json: is corrupt (not a cluster.json of format 1)"),
        ("cluster.idx", b"no columns\n", "even/cluster.idx@0: "),
        ("cdx-00007.gz", b"", "even/cdx-00007.gz: "),
    ],
)
def test_a_merge_reports_what_is_wrong_with_a_cluster(
    name: str, data: bytes, reason: str, place: Path, run_cdxmill: RunCdxmill
) -> None:
    Path("even", name).write_bytes(data)
    done = run_cdxmill("merge", "-q", "-o", "all", "even", "odd")
    assert (done.returncode, reason in done.stderr.decode()) == (1, True), done.stderr
    assert lines_in("all") == sorted([*EVEN, *ODD])


def test_a_merge_misses_a_corrupt_block_alone(place: Path, run_cdxmill: RunCdxmill) -> None:
    offset = second_block("even")
    overwrite(Path("even/cdx-00000.gz"), offset + 1500)
    done = run_cdxmill("merge", "-q", "-o", "all", "--numlines", str(NUMLINES), "even", "odd")
    assert done.returncode == 1
    (text,) = done.stderr.decode().splitlines()
    assert text.startswith(f"even/cdx-00000.gz@{offset}: the block is corrupt (the CRC32 of its section")
    assert "; the lines of this block are missing; check it with cdxmill verify" in text
    assert lines_in("all") == sorted([*without_block(EVEN), *ODD])
    assert not cdxmill.verify("all").failures


def test_a_corrupt_block_at_a_split_point_is_reported_once(place: Path, run_cdxmill: RunCdxmill) -> None:
    offset = second_block("even")
    overwrite(Path("even/cdx-00000.gz"), offset + 1500)
    Path("points").write_text("com,example)/2500\n")
    words = ["-q", "--splits", "points", "-o", "all", "--numlines", str(NUMLINES)]
    done = run_cdxmill("merge", *words, "even", "odd")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert lines_in("all") == sorted([*without_block(EVEN), *ODD])


def test_an_added_cluster_misses_a_corrupt_block_alone(place: Path, run_cdxmill: RunCdxmill) -> None:
    overwrite(Path("odd/cdx-00000.gz"), second_block("odd") + 1500)
    done = run_cdxmill("add", "-q", "even", "--cdx", "odd")
    assert done.returncode == 1
    assert b"the lines of this block are missing" in done.stderr
    assert lines_in("even") == sorted([*EVEN, *without_block(ODD)])
    assert not cdxmill.verify("even").failures
    assert cdxmill.add("even", "odd", cdx=True).added == 0


def test_a_missing_shard_is_reported_once(place: Path, run_cdxmill: RunCdxmill) -> None:
    Path("odd/cdx-00000.gz").unlink()
    for words in (("merge", "-q", "-o", "all", "--numlines", str(NUMLINES)), ("add", "-q", "--cdx")):
        done = run_cdxmill(*words, "even", "odd")
        assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
        assert b"odd/cdx-00000.gz: " in done.stderr
        assert b"; none of its lines are in the cluster; check it" in done.stderr
    for cluster in ("all", "even"):
        assert lines_in(cluster) == sorted([*EVEN, *(line for line in ODD if line >= "com,example)/6000")])


def test_lines_are_read_without_the_table_of_their_sections(place: Path, run_cdxmill: RunCdxmill) -> None:
    """The table is beside the text: all lines are there, `verify` reports it, and what is merged has sound tables."""
    overwrite(Path("even/cdx-00000.gz"), second_block("even") + 40)
    assert lines_in("even") == EVEN
    assert [one["urlkey"] for one in cdxmill.lookup("even", "example.com/2800")] == ["com,example)/2800"]
    assert "table of sections" in str(cdxmill.verify("even").failures)
    assert run_cdxmill("merge", "-q", "-o", "all", "--numlines", str(NUMLINES), "even", "odd").returncode == 0
    assert lines_in("all") == sorted([*EVEN, *ODD])
    assert not cdxmill.verify("all").failures
