"""`cdxmill split-points`: split points from a cluster's index divide at least as evenly as sampled ones."""

from __future__ import annotations

import shutil
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.cluster.split_files import split_files
from cdxmill.commands.clusters.split_points import points_of_cluster
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.sample import sample
from cdxmill.formats.clusters.split_points import parse_sequence_file, parse_text
from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.options.clusters import Sampling
from cdxmill.running.failures import Failures
from cdxmill.stages.lines.pick_splits import mark_blocks, pick_marks
from tests.storage.range_server import serving

from ..material.cdx_files import many_lines, write_gzip, write_plain
from ..material.clusters import shards_of

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

LINES, NUMLINES = 30_000, 20


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a.cdxj.gz and the cluster C of its lines, in shards of which one has nearly all lines and two have few."""
    directory = tmp_path_factory.mktemp("split-points")
    path = write_gzip(directory / "a.cdxj.gz", many_lines(LINES), 3)
    points = (b"com,host000)/page/0001", b"com,host000)/page/0002", b"com,host030)/")
    options = ZipnumOptions(shards=4, points=points, block_lines=NUMLINES, quiet=True)
    build_cluster([str(path)], directory / "C", options, Failures())
    return directory


@pytest.fixture(params=["ours", "published"])
def cluster(request: pytest.FixtureRequest, made: Path, tmp_path: Path) -> Path:
    """The whole cluster, or cluster.idx alone."""
    if request.param == "ours":
        return made / "C"
    (tmp_path / "P").mkdir()
    shutil.copy(made / "C/cluster.idx", tmp_path / "P")
    return tmp_path / "P"


def sizes(lines: list[bytes], points: list[bytes]) -> list[int]:
    counts = Counter(bisect_right(points, line) for line in lines)
    return [counts[number] for number in range(len(points) + 1)]


@pytest.mark.parametrize("shards", [2, 7, 30])
def test_shards_are_at_least_as_even_as_by_sampling(shards: int, cluster: Path, made: Path) -> None:
    lines = b"".join(shards_of(made / "C")).split(b"\n")[:-1]
    points = points_of_cluster(str(cluster), shards).points
    assert len(points) == shards - 1
    assert points == sorted(set(points))
    mean = len(lines) / shards
    ours = max(sizes(lines, points)) / mean
    sampled = sample(Sampling(made / "a.cdxj.gz", shards=shards, processes=1), Failures())
    assert ours <= 1 + 3 * NUMLINES / mean
    assert ours <= 1.25
    assert ours <= max(sizes(lines, sampled)) / mean + 2 * NUMLINES / mean
    assert min(sizes(lines, points)) >= mean - 3 * NUMLINES


def test_the_command_writes_the_same_two_files_as_sample(
    cluster: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("split-points", "--from-cluster", cluster, "-s", "9", "-o", tmp_path / "splits.txt")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"9 shards from 15")
    points = parse_text((tmp_path / "splits.txt").read_bytes())
    assert points == points_of_cluster(str(cluster), 9).points
    assert parse_sequence_file((tmp_path / "splits.seq").read_bytes()) == points


def test_dosample_reads_them_from_a_cluster(cluster: Path, tmp_path: Path, root: Path) -> None:
    def dosample(*options: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, str(root / "jobs/dosample.py"), "-r", "local", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)

    done = dosample("--shards", "9", "--splitfile", "s.seq", "--from-cluster", str(cluster))
    assert done.returncode == 0, done.stderr
    points = points_of_cluster(str(cluster), 9).points
    assert parse_sequence_file((tmp_path / "s.seq").read_bytes()) == points
    assert parse_text((tmp_path / "s.txt").read_bytes()) == points
    assert dosample("--from-cluster=absent").returncode == 2
    assert dosample("--from-cluster", str(cluster), "--shards", "0").returncode == 2


def test_a_cluster_behind_http_is_read(made: Path) -> None:
    with serving() as server:
        server.add("/C/cluster.idx", (made / "C/cluster.idx").read_bytes())
        found = points_of_cluster(f"{server.url}/C", 7).points
    assert len(found) == 6


def test_fewer_keys_than_shards_are_reported(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    path = write_gzip(tmp_path / "a.cdxj.gz", [b"com,a)/ 2020 {}", b"com,b)/ 2020 {}", b"com,b)/ 2020 {x}"])
    build_cluster([str(path)], tmp_path / "C", ZipnumOptions(shards=1, block_lines=1, quiet=True), Failures())
    done = run_cdxmill("split-points", "--from-cluster", tmp_path / "C", "-s", "5", "-o", tmp_path / "s.txt")
    assert done.stderr == b"2 shards from 3 blocks instead of 5; there are too few distinct keys\n"
    assert (tmp_path / "s.txt").read_bytes() == b"com,b)/ 2020\n"
    done = run_cdxmill("split-points", "--from-cluster", tmp_path / "C", "-s", "2", "-o", tmp_path / "t.txt")
    assert b"use cdxmill sample instead" in done.stderr


def test_an_index_without_lines_has_no_split_points(tmp_path: Path) -> None:
    build_cluster(
        [str(write_gzip(tmp_path / "a.cdxj.gz", []))],
        tmp_path / "C",
        ZipnumOptions(shards=1, quiet=True),
        Failures(),
    )
    assert points_of_cluster(str(tmp_path / "C"), 5).points == []


def test_marks_are_thinned_evenly() -> None:
    blocks = [BlockRef(b"%06d" % number, b"cdx-00000.gz", 10 * number, 10) for number in range(10_000)]
    found = mark_blocks(blocks, {}, 500)
    assert 250 <= len(found.marks) <= 501
    assert found.total == 10_000
    assert pick_marks(found, 4) == [b"002496", b"004992", b"007488"]


def test_the_last_block_of_a_shard_counts_with_its_number_of_lines() -> None:
    rows = [(b"a", 0, 100), (b"b", 100, 100), (b"c", 200, 25)]
    blocks = [BlockRef(key, b"cdx-00000.gz", offset, length) for key, offset, length in rows]
    assert mark_blocks(blocks, {}, 10).total == 2.25
    assert mark_blocks(blocks, {b"cdx-00000.gz": 0.5}, 10).total == 2.5


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"garbage\n", "line 1: not a line of a ZipNum index"),
        (b"b 1\tc\t0\t1\t1\na 1\tc\t1\t1\t2\n", "line 2: out of order"),
        (b"a 1\tc\t0\t1\t1\nb 1\tc\t1\t1\t3\n", "line 2: b'b 1' has the number 3, expected 2"),
        (
            b"a 1\tc\t0\t1\nb 1\tc\t7\t1\n",
            "line 2: b'b 1' is at 7 of its shard, but the block before ends at 1",
        ),
        (b"a 1\tc\t0\t1\t1\nb 1\tc\t1\t1", "is truncated: its last line has no line end"),
        (b"a 1\tc\t0\t1\t1\x0eb 1\tc\t1\t1\t2\n", "line 1: not a line of a ZipNum index"),
        (b"a 1\tc\t0\t1\t1\nb 1\tc\t1\t\n", "line 2: not a line of a ZipNum index"),
    ],
)
def test_a_corrupt_index_is_reported_in_one_line(
    content: bytes, reason: str, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "cluster.idx").write_bytes(content)
    done = run_cdxmill("split-points", "--from-cluster", tmp_path, "-s", "2", "-o", tmp_path / "s.txt")
    assert done.returncode == 1
    assert reason in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (tmp_path / "s.txt").exists()


def test_an_index_that_misses_its_last_lines_is_reported(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    lines = write_plain(tmp_path / "a.cdxj", many_lines(300))
    assert (
        run_cdxmill("zipnum", "-q", "-s", "2", "--numlines", "10", "-o", tmp_path / "C", lines).returncode
        == 0
    )
    index = tmp_path / "C/cluster.idx"
    index.write_bytes(b"".join(index.read_bytes().splitlines(keepends=True)[:-1]))
    for reason in ("blocks, but", "but the shard has"):
        done = run_cdxmill(
            "split-points", "--from-cluster", tmp_path / "C", "-s", "2", "-o", tmp_path / "s.txt"
        )
        assert (done.returncode, reason in done.stderr.decode()) == (1, True), done.stderr
        (tmp_path / "C/cluster.json").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("path", "kind", "names"),
    [
        ("d.e/s.txt", ".seq", ["d.e/s.txt", "d.e/s.seq"]),
        ("d.e/s.seq", ".txt", ["d.e/s.txt", "d.e/s.seq"]),
        ("d.e/s", ".txt", ["d.e/s", "d.e/s.seq"]),
        ("d.e/s", ".seq", ["d.e/s.txt", "d.e/s"]),
        ("d.e/s.x", ".seq", ["d.e/s.txt", "d.e/s.x"]),
    ],
)
def test_the_ending_of_the_name_decides_which_of_two_files_it_is(
    path: str, kind: str, names: list[str]
) -> None:
    assert [place.text for place in split_files(path, kind)] == names
