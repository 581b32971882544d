"""What is found out about the record of a line, which lines a sample has, and how a shard that changes meanwhile is met."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdxmill.checks.archives import _check_line, _deal, check_archives
from cdxmill.checks.shards import ReadShard, ShardFiles, block_ranges, read_shards
from cdxmill.checks.verify_run import VerifyRun
from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.capture_fields import RecordLocation
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.running.failures import Failure
from cdxmill.stages.zipnum.check_index import ShardLines
from cdxmill.stages.zipnum.check_shard import CheckedShard, Fault
from cdxmill.storage.location import locate

from ..material.clusters import write_raw_cluster
from .checking import Told

LINE = b'com,a)/ 2020 {"url": "http://a.com/", "filename": "a.warc", "offset": "7", "length": "9"}'


class Store:
    """Archives that say the same of each record."""

    def __init__(self, found: str | Exception | None) -> None:
        self._found = found

    def fetch_line(self, location: RecordLocation) -> tuple[bytes, str | None]:
        if isinstance(self._found, Exception):
            raise self._found
        return b"", self._found


@pytest.mark.parametrize(
    ("line", "found", "wanted"),
    [
        (LINE, None, None),
        (LINE, "is another URL", Failure("a.warc@7", None, "is another URL")),
        (LINE, ValueError("no length"), Failure("com,a)/ 2020 ", None, "no length")),
        (
            LINE,
            InputError("/x/a.warc", "cannot be read", "look"),
            Failure("/x/a.warc", None, "cannot be read (capture of http://a.com/ at 2020)"),
        ),
        (b"k" * 101 + LINE, ValueError("x"), Failure("k" * 100, None, "x")),
        (b"\xff" + LINE, ValueError("x"), Failure("\\xffcom,a)/ 2020 ", None, "x")),
    ],
)
def test_what_is_wrong_with_a_record_is_told_with_its_place(
    line: bytes, found: str | Exception | None, wanted: Failure | None
) -> None:
    assert _check_line(cast("ArchiveStore", Store(found)), line) == wanted


def shard_of(name: str, lines: int, **changes: object) -> ReadShard:
    task = ShardFiles(name, locate("x"), None, None, ShardLines(0, 0, 0), False, None, 0, False)
    return ReadShard(task, CheckedShard([], lines=lines), [])


@pytest.mark.parametrize(
    ("sizes", "sample", "wanted"),
    [
        ([], 3, []),
        ([5, 3], None, [None, None]),
        ([5, 3], 8, [None, None]),
        ([5, 3], 9, [None, None]),
        ([1, 1, 1], 2, [[0], [0]]),
        ([0, 0], 1, [None, None]),
    ],
)
def test_a_sample_of_all_lines_is_all_shards(
    sizes: list[int], sample: int | None, wanted: list[list[int] | None]
) -> None:
    shards = [shard_of(str(number), size) for number, size in enumerate(sizes)]
    assert [lines for _, lines in _deal(shards, sample)] == wanted


@pytest.mark.parametrize("sample", range(1, 12))
def test_a_sample_has_numbers_of_lines_in_their_shards(sample: int) -> None:
    sizes = [5, 1, 6]
    dealt = list(_deal([shard_of(str(number), size) for number, size in enumerate(sizes)], sample))
    assert sum(len(lines or ()) for _, lines in dealt) == sample
    for shard, lines in dealt:
        assert lines == sorted(set(lines or ()))
        assert lines
        assert lines[0] >= 0
        assert lines[-1] < sizes[int(shard.task.name)]


LINES = [b"com,a)/%02d 2020 {}" % number for number in range(6)]


def files_of(cluster: Path, **changes: object) -> ShardFiles:
    index = locate(cluster / "cluster.idx")
    size = (cluster / "cluster.idx").stat().st_size
    lines = ShardLines(0, size, 1)
    place = locate(cluster / "cdx-00000.gz")
    task = ShardFiles("cdx-00000.gz", place, None, index, lines, True, 2, 0, True)
    return task._replace(**changes)  # type: ignore[arg-type]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Three blocks of two lines."""
    return Path(write_raw_cluster(tmp_path / "C", LINES, 2))


def test_the_ranges_of_blocks_are_those_of_the_part_or_of_the_index(cluster: Path) -> None:
    rows = [line.split(b"\t") for line in (cluster / "cluster.idx").read_bytes().splitlines()]
    wanted = [(int(row[2]), int(row[3])) for row in rows]
    assert block_ranges(files_of(cluster)) == wanted
    part = locate(cluster / "part-00000")
    Path(part.local).write_bytes(b"k\tcdx-00000.gz\t7\t8\nno line\nk\tcdx-00000.gz\t1\t6\n")
    assert block_ranges(files_of(cluster, part_file=part)) == [(1, 6), (7, 8)]
    assert block_ranges(files_of(cluster, lines=ShardLines(0, 0, 1))) == []
    assert block_ranges(files_of(cluster, index_file=None)) == []


def told_of(task: ShardFiles) -> list[tuple[str, int | None, str]]:
    told = Told()
    (shard,) = read_shards([task], VerifyRun(1, told, quiet=True))
    assert shard.report.part == b""
    assert shard.findings == told.items
    return [(one.path.rpartition("/")[2], one.offset, one.reason) for one in told.items]


def test_a_sound_shard_has_no_findings(cluster: Path) -> None:
    assert told_of(files_of(cluster)) == []
    assert told_of(files_of(cluster, numbered=True, exact=False)) == []
    assert told_of(files_of(cluster, index_file=None)) == []
    assert told_of(files_of(cluster, block_lines=3, is_even=False)) == []


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"numbered": False}, ["cluster.idx"]),
        ({"numbered": False, "exact": False}, []),
        ({"block_lines": 3}, ["cdx-00000.gz", "cdx-00000.gz"]),
        ({"block_lines": 1, "is_even": False}, ["cdx-00000.gz"] * 3),
        ({"lines": ShardLines(0, 0, 1)}, ["cluster.idx"]),
        ({"part_file": locate("/absent/part-00000")}, ["part-00000"]),
        ({"place": locate("/absent/cdx-00000.gz")}, ["cdx-00000.gz"]),
        ({"index_file": locate("/absent/cluster.idx")}, ["cluster.idx"]),
    ],
)
def test_each_file_that_does_not_match_is_a_finding(
    changes: dict[str, object], wanted: list[str], cluster: Path
) -> None:
    assert [path for path, _, _ in told_of(files_of(cluster, **changes))] == wanted


def test_lines_of_the_index_have_the_numbers_behind_those_of_other_shards(cluster: Path) -> None:
    index = cluster / "cluster.idx"
    data = (
        index.read_bytes().replace(b"\t1\n", b"\t5\n").replace(b"\t2\n", b"\t6\n").replace(b"\t3\n", b"\t7\n")
    )
    index.write_bytes(b"before\n" + data)
    lines = ShardLines(7, 7 + len(data), 5)
    assert told_of(files_of(cluster, lines=lines)) == []
    ((path, _, reason),) = told_of(files_of(cluster, lines=lines._replace(number=4)))
    assert path == "cluster.idx"
    assert reason.startswith("line 4 is ")


def damaged(cluster: Path, *blocks: int) -> list[int]:
    """Damage blocks of the shard. Returns their offsets."""
    rows = [line.split(b"\t") for line in (cluster / "cluster.idx").read_bytes().splitlines()]
    data = bytearray((cluster / "cdx-00000.gz").read_bytes())
    for block in blocks:
        data[int(rows[block][2]) + int(rows[block][3]) // 2] ^= 0xFF
    (cluster / "cdx-00000.gz").write_bytes(data)
    return [int(rows[block][2]) for block in blocks]


@pytest.mark.parametrize("known_by", ["index", "part", "both"])
def test_each_damaged_block_is_named_and_the_indexes_are_not(known_by: str, cluster: Path) -> None:
    """The index, or else the part, says where the next block begins."""
    part = cluster / "part-00000"
    rows = (cluster / "cluster.idx").read_bytes().splitlines()
    part.write_bytes(b"".join(row.rpartition(b"\t")[0] + b"\n" for row in rows))
    task = files_of(cluster, part_file=None if known_by == "index" else locate(part))
    task = task._replace(index_file=None) if known_by == "part" else task
    assert told_of(task) == []
    places = damaged(cluster, 0, 2)
    assert [(path, offset) for path, offset, _ in told_of(task)] == [("cdx-00000.gz", one) for one in places]


def test_an_index_without_lines_for_a_shard_is_not_read(cluster: Path) -> None:
    absent = locate("/absent/cluster.idx")
    ((path, _, reason),) = told_of(files_of(cluster, index_file=absent, lines=ShardLines(0, 0, 1)))
    assert path == "cluster.idx"
    assert reason.startswith("block 1 of cdx-00000.gz is missing, expected ")


class Noted:
    """A run that only notes what it is asked: the shards with their lines, and the bytes to read."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[tuple[str, list[int] | None]], int]] = []

    def results(self, title: str, work: object, tasks: Sequence[Any], size: int) -> list[SimpleNamespace]:
        self.asked.append(([(one.shard.task.name, one.picked) for one in tasks], size))
        return [SimpleNamespace(looked_up=number) for number in range(len(tasks))]


def test_only_shards_without_faults_are_looked_through_and_only_a_whole_one_has_a_known_size(
    cluster: Path,
) -> None:
    task = files_of(cluster)
    sound = ReadShard(task, CheckedShard([], lines=6), [])
    faulty = ReadShard(task._replace(name="x"), CheckedShard([Fault(None, "x")], lines=6), [])
    run, size = Noted(), Path(task.place.local).stat().st_size
    places = ArchivePlaces(str(cluster))
    for sample, picked, wanted in ((None, None, size), (6, None, 0), (7, None, 0)):
        assert check_archives([faulty, sound], places, sample, cast("VerifyRun", run)) == 0
        assert run.asked.pop() == ([("cdx-00000.gz", picked)], wanted)
    assert check_archives([sound, sound], places, None, cast("VerifyRun", run)) == 0 + 1
    with pytest.raises(UsageError, match="neither a directory of archives"):
        check_archives([], ArchivePlaces("/absent"), None, cast("VerifyRun", run))


def test_a_shard_without_lines_has_no_records(tmp_path: Path) -> None:
    empty = tmp_path / "cdx-00000.gz"
    empty.write_bytes(gzip.compress(b"", mtime=0))
    task = ShardFiles(empty.name, locate(empty), None, None, ShardLines(0, 0, 0), False, None, 0, False)
    told = Told()
    run = VerifyRun(1, told, quiet=True)
    for sample in (None, 1):
        assert (
            check_archives([ReadShard(task, CheckedShard([]), [])], ArchivePlaces(str(tmp_path)), sample, run)
            == 0
        )
    assert told.items == []
