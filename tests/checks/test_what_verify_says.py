"""The line that says what was checked, the findings about lines, their number, and where records are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.checks.against import difference_findings
from cdxmill.checks.claims import ClusterFiles, in_order
from cdxmill.checks.shards import ReadShard, ShardFiles, check_block_lines, check_order
from cdxmill.checks.verify_run import VerifyRun, limited
from cdxmill.commands.clusters.verify import Verified, verify
from cdxmill.errors import UsageError
from cdxmill.options.clusters import Verifying
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.merge_lines import Difference
from cdxmill.stages.zipnum.check_index import ShardLines
from cdxmill.stages.zipnum.check_shard import CheckedShard
from cdxmill.storage.location import locate

from ..material.clusters import write_raw_cluster
from .checking import Told, found

START = "9 lines in 3 blocks, 2 shards, 1.0 KiB: "
LINES = "lines, offsets and order were checked (a check of every byte needs cluster.json)"
OPEN = "; it is not proven that the cluster is complete"


@pytest.mark.parametrize(
    ("exact", "compared", "records", "faults", "wanted"),
    [
        (True, False, None, 0, "every byte was checked"),
        (True, True, None, 0, "every byte was checked, lines compared with the inputs"),
        (True, False, 0, 0, "every byte was checked, 0 records read"),
        (True, True, 1, 0, "every byte was checked, lines compared with the inputs, 1 record read"),
        (False, False, None, 0, LINES + OPEN),
        (False, True, None, 0, f"{LINES}, lines compared with the inputs"),
        (False, False, 2, 1, f"{LINES}{OPEN}, 2 records read; 1 error found"),
        (True, False, None, 3, "every byte was checked; 3 errors found"),
    ],
)
def test_the_summary_says_what_was_checked(
    exact: bool, compared: bool, records: int | None, faults: int, wanted: str
) -> None:
    assert str(Verified(2, 9, 3, 1024, exact, compared, records, faults)) == START + wanted


@pytest.mark.parametrize(
    ("difference", "wanted"),
    [
        (Difference(), []),
        (Difference(missing=1, first_missing=b"a"), ["1 line of the inputs missing; the first one: b'a'"]),
        (Difference(extra=2, first_extra=b"b"), ["2 lines not in the inputs; the first one: b'b'"]),
        (
            Difference(missing=3, first_missing=b"x" * 201, extra=1, first_extra=b"y" * 201),
            [
                f"3 lines of the inputs missing; the first one: {b'x' * 200!r}",
                f"1 line not in the inputs; the first one: {b'y' * 200!r}",
            ],
        ),
    ],
)
def test_missing_and_extra_lines_are_findings_with_the_first_one(
    difference: Difference, wanted: list[str]
) -> None:
    assert list(difference_findings("C", difference)) == [Failure("C", None, reason) for reason in wanted]


def test_of_each_file_20_findings_are_reported() -> None:
    numbers = {"a": 19, "b": 20, "c": 21, "d": 23}
    given = [Failure(path, number, "x") for path, count in numbers.items() for number in range(count)]
    wanted = [one for one in given if (one.offset or 0) < 20]
    wanted += [Failure("c", None, "1 more errors"), Failure("d", None, "3 more errors")]
    assert list(limited(given)) == wanted
    assert list(limited([])) == []


def test_results_are_in_the_order_of_their_tasks_and_findings_are_reported() -> None:
    told = Told()
    run = VerifyRun(1, told, quiet=True)
    results = run.results("reading", shard_of, [3, 1, 2], 9)
    assert [one.task.name for one in results] == ["3", "1", "2"]
    assert told.lines == ["x: 3", "x: 1", "x: 2"]
    assert run.results("reading", shard_of, [], 0) == []


def shard_of(number: int) -> ReadShard:
    """A shard of which the number is a finding."""
    return ReadShard(task_of(str(number)), CheckedShard([]), [Failure("x", None, str(number))])


def task_of(name: str, is_even: bool = True) -> ShardFiles:
    return ShardFiles(
        name, locate(f"/C/{name}"), None, None, ShardLines(0, 0, 0), False, None, 0, False, is_even
    )


def read(name: str, is_even: bool = True, **report: object) -> ReadShard:
    return ReadShard(task_of(name, is_even), CheckedShard([], **report), [])  # type: ignore[arg-type]


def filled(name: str, first: bytes, last: bytes) -> ReadShard:
    return read(name, lines=2, first=first, last=last)


LONG = b"b" * 90


@pytest.mark.parametrize(
    ("shards", "wanted"),
    [
        ([], []),
        ([filled("1", b"a", b"b"), filled("2", b"b1", b"c")], []),
        ([filled("1", b"a", b"b"), filled("2", b"b", b"c")], ["2: starts with b'b', but 1 ends with b'b'"]),
        (
            [filled("1", b"a", b"c"), read("2"), filled("3", b"b", b"c"), filled("4", b"b", b"d")],
            ["3: starts with b'b', but 1 ends with b'c'", "4: starts with b'b', but 3 ends with b'c'"],
        ),
        (
            [filled("1", b"a", LONG), filled("2", LONG, b"c")],
            [f"2: starts with {LONG[:80]!r}, but 1 ends with {LONG[:80]!r}"],
        ),
    ],
)
def test_shards_are_in_order(shards: list[ReadShard], wanted: list[str]) -> None:
    assert [(one.path, one.offset, one.reason) for one in check_order(shards)] == [
        (f"/C/{name}", 0, reason) for name, reason in (line.split(": ", 1) for line in wanted)
    ]


@pytest.mark.parametrize(
    ("blocks", "wanted"),
    [
        ([(3, 3), (3, 1), (0, 3), (0, 2)], []),
        ([(3, 4)], []),
        ([(0, 9), (3, 3)], []),
        ([(3, 3), (0, 4)], ["1: has 4 lines in a block, but other shards have 3"]),
        ([(3, 3), (3, 4)], ["1: has 4 lines in a block, but other shards have 3"]),
        ([(3, 3), (2, 2)], ["1: has 2 lines in a block, but other shards have 3"]),
        ([(3, 3), (2, 3)], ["1: has 3 lines in a block, but other shards have 3"]),
        ([(0, 0), (3, 3), (4, 1), (3, 3)], ["2: has 4 lines in a block, but other shards have 3"]),
    ],
)
def test_full_blocks_have_the_same_number_of_lines(blocks: list[tuple[int, int]], wanted: list[str]) -> None:
    shards = [
        read(str(number), block_lines=full, last_lines=last) for number, (full, last) in enumerate(blocks)
    ]
    assert [f"{one.path[3:]}: {one.reason}" for one in check_block_lines(shards)] == wanted
    uneven = [shard._replace(task=task_of(shard.task.name, is_even=False)) for shard in shards]
    assert list(check_block_lines(uneven)) == []
    first = read("x", is_even=False, block_lines=7, last_lines=7)
    assert [f"{one.path[3:]}: {one.reason}" for one in check_block_lines([first, *shards])] == wanted


def test_names_are_in_the_order_of_their_numbers() -> None:
    names = ["cdx-00010.gz", "cdx-00009-2.gz", "cdx-100000.gz", "cdx-00009.gz", "cdx-00009-10.gz"]
    assert in_order(names) == [
        *("cdx-00009.gz", "cdx-00009-2.gz", "cdx-00009-10.gz", "cdx-00010.gz", "cdx-100000.gz")
    ]
    assert in_order(["part-00010", "part-00002"]) == ["part-00002", "part-00010"]


LINE = b'com,a)/ 20200101000000 {"url": "http://a.com/", "filename": "a.warc", "offset": "0", "length": "9"}'


def test_records_are_read_where_the_user_or_the_cluster_says(tmp_path: Path) -> None:
    """A sample needs one of both. Without a sample, the list of archives alone is no reason to read them."""
    cluster = tmp_path / "C"
    write_raw_cluster(cluster, [LINE])
    (tmp_path / "archives").mkdir()
    with pytest.raises(UsageError, match=r"/C: has no archives\.tsv, so --sample needs --archives LOCATION$"):
        verify(Verifying(cluster, sample=1), Told())
    assert verify(Verifying(cluster), Told()).records is None
    (told,) = found(cluster, sample=1, archives=str(tmp_path / "archives"))
    assert told.startswith(f"{tmp_path}/archives/a.warc: cannot be read")
    (cluster / "archives.tsv").write_bytes(b"a.warc\t/absent/a.warc\n")
    assert verify(Verifying(cluster), Told()).records is None
    assert verify(Verifying(cluster, sample=1), Told()).records == 1
    (told,) = found(cluster, sample=1)
    assert told.startswith("/absent/a.warc: cannot be read")
    (told,) = found(cluster, archives=str(tmp_path / "archives"))
    assert told.startswith(f"{tmp_path}/archives/a.warc: cannot be read")


def test_a_cluster_is_known_by_its_index_whatever_its_name_or_by_its_shards(tmp_path: Path) -> None:
    write_raw_cluster(tmp_path / "C", [LINE])
    with pytest.raises(UsageError, match=r"not a regular expression and its replacement"):
        ClusterFiles(locate(tmp_path / "C"), ("(", "x"))
    (tmp_path / "D").mkdir()
    with pytest.raises(
        UsageError, match=r"/D: not a ZipNum cluster \(no cluster\.idx, cluster\.summary or cluster\.json\)"
    ):
        ClusterFiles(locate(tmp_path / "D"))
    (tmp_path / "C/cluster.idx").rename(tmp_path / "D/crawl.idx")
    shards = ClusterFiles(locate(tmp_path / "C"))
    assert (shards.index, shards.shards, shards.parts) == (None, ["cdx-00000.gz"], [])
    assert shards.locations_name is None
    (tmp_path / "D/crawl.loc").write_text("cdx-00000.gz\t../C/cdx-00000.gz\n")
    index = ClusterFiles(locate(tmp_path / "D/crawl.idx"))
    assert (index.index, index.shards, index.locations_name) == ("crawl.idx", [], "crawl.loc")
    assert index.shard("cdx-00000.gz") == locate(f"{tmp_path}/D/../C/cdx-00000.gz")
    assert index.path("x") == f"{tmp_path}/D/x"
    assert found(tmp_path / "D/crawl.idx") == []
