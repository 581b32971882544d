"""`cdxmill split-points`: split points from a cluster's index divide at least as evenly as sampled ones."""

from __future__ import annotations

import shutil
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.cluster.split_files import split_files
from cdxmill.commands.clusters import split_points
from cdxmill.commands.clusters.split_points import SplitPoints, _last_blocks, points_of_cluster, split_cluster
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.collections.add import add
from cdxmill.commands.sample import sample
from cdxmill.errors import UsageError
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry, UsedCompressor
from cdxmill.formats.clusters.split_points import parse_sequence_file, parse_text
from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.options.clusters import Sampling
from cdxmill.options.collections import Adding
from cdxmill.running.failures import Failures
from cdxmill.stages.lines.pick_splits import Marks, mark_blocks, pick_marks
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


@pytest.mark.parametrize(
    ("points", "shards", "blocks", "text"),
    [
        (1, 2, 16, "2 shards from 16 blocks"),
        (1, 2, 15, "2 shards from 15 blocks; too few blocks for shards of the same size, use cdxmill sample"),
        (1, 3, 99, "2 shards from 99 blocks instead of 3; there are too few distinct keys"),
        (0, 2, 1, "1 shard from 1 block instead of 2; there are too few distinct keys"),
        (0, 1, 0, "1 shard from 0 blocks"),
        (0, 1, 1, "1 shard from 1 block"),
    ],
)
def test_a_summary_says_if_the_shards_will_be_uneven(
    points: int, shards: int, blocks: int, text: str
) -> None:
    said = str(SplitPoints([b"a"] * points, shards, blocks))
    assert said == (f"{text} instead" if text.endswith("sample") else text)


def entry(number: int, lines: int, blocks: int) -> ShardEntry:
    return ShardEntry(f"cdx-{number:05d}.gz", 9, lines, blocks, "")


def test_the_lines_of_last_blocks_are_known_by_the_manifest_of_a_new_cluster() -> None:
    shards = (entry(0, 10, 1), entry(1, 25, 3), entry(2, 0, 0), entry(3, 1, 1), entry(4, 20, 2))
    manifest = Manifest(shards, 10, UsedCompressor("zlib", "1", 6), "")
    shares = {b"cdx-00000.gz": 1.0, b"cdx-00001.gz": 0.5, b"cdx-00003.gz": 0.1, b"cdx-00004.gz": 1.0}
    assert _last_blocks(manifest) == shares
    assert _last_blocks(manifest._replace(change=1)) == {}
    assert _last_blocks(None) == {}


def test_as_many_marks_are_kept_as_the_shards_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_points, "MARKS_PER_SHARD", 2)
    rows = [b"%02d\tcdx-00000.gz\t%d\t10\n" % (number, 10 * number) for number in range(64)]
    (tmp_path / "cluster.idx").write_bytes(b"".join(rows))
    blocks = [BlockRef(b"%02d" % number, b"cdx-00000.gz", 10 * number, 10) for number in range(64)]
    kept: list[int] = []

    def noting(blocks: Iterable[BlockRef], last: Mapping[bytes, float], most: int) -> Marks:
        kept.append(most)
        return mark_blocks(blocks, last, most)

    monkeypatch.setattr(split_points, "mark_blocks", noting)
    (tmp_path / "cdx-00000.gz").write_bytes(bytes(640))
    found = points_of_cluster(str(tmp_path), 3)
    assert (kept, found.shards, found.blocks) == ([12], 3, 64)
    assert found.points == pick_marks(mark_blocks(blocks, {}, 12), 3)


def test_a_cluster_with_overlays_is_refused(made: Path, tmp_path: Path) -> None:
    cluster = Path(shutil.copytree(made / "C", tmp_path / "C"))
    write_plain(tmp_path / "new.cdxj", [b"com,new)/ 2021 {}"])
    add(Adding(cluster, [tmp_path / "new.cdxj"], cdx=True, mode="overlay", processes=1), Failures())
    with pytest.raises(UsageError) as raised:
        points_of_cluster(str(cluster), 2)
    why = "has overlays, which its index does not show; run cdxmill compact first"
    assert str(raised.value) == f"{cluster}: {why}"


@pytest.mark.parametrize("name", ["cluster.idx", "splits.txt", "cdx-00000.seq"])
def test_split_points_never_replace_a_file_of_their_cluster(name: str, made: Path, tmp_path: Path) -> None:
    cluster = Path(shutil.copytree(made / "C", tmp_path / "C"))
    before = {path.name: path.read_bytes() for path in cluster.iterdir()}
    if name.startswith("cdx"):
        split_cluster(str(cluster), 2, cluster / name, ".seq", replace=False)
        assert parse_sequence_file((cluster / name).read_bytes()) == points_of_cluster(str(cluster), 2).points
        with pytest.raises(UsageError, match="exists"):
            split_cluster(str(cluster), 2, cluster / name, ".seq", replace=False)
        return
    for replace in (False, True):
        with pytest.raises(UsageError, match="is an input" if replace else "exists"):
            split_cluster(str(cluster), 2, cluster / name, ".txt", replace=replace)
    assert {path.name: path.read_bytes() for path in cluster.iterdir()} == before
