"""The lines of an export: which are asked for, what is checked, and how they are cut into tasks and batches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.commands.exporting import lines as module
from cdxmill.commands.exporting import ranges
from cdxmill.commands.exporting.lines import ExportedLines, in_batches, outage_as_stop
from cdxmill.commands.exporting.ranges import key_ranges
from cdxmill.errors import CorruptError, InputError, OutageError, StoppedError, UsageError
from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.exports import Exporting
from cdxmill.running.failures import Failure, Failures
from cdxmill.search import several
from cdxmill.stages.zipnum.secondary_index import DamagedCluster

from ..material.cdx_files import write_plain
from ..material.clusters import write_raw_cluster

LINES = [
    b'com,a)/%d 2020010100000%d {"url": "http://a.com/%d", "own": "%d"}' % (number, number, number, number)
    for number in range(6)
]
WHOLE = KeyRange(b"", b"\xff")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A cluster of six lines in blocks of two, with a cluster.json that says so."""
    monkeypatch.setattr("cdxmill.cluster.reader.ClusterReader.total_lines", lambda _: 6)
    return write_raw_cluster(tmp_path / "c", LINES, 2)


def asked(cluster: str = "c", **options: Any) -> Exporting:
    return Exporting(cluster, format="csv", output="t", **options)


def exported(
    cluster: str, query: str | None = None, part: KeyRange | None = None, **options: Any
) -> ExportedLines:
    return ExportedLines(cluster, query, asked(cluster, **options), Failures(printed=False), part)


@pytest.mark.parametrize(
    ("query", "part", "options", "is_whole"),
    [
        (None, None, {}, True),
        ("*", None, {}, True),
        ("a.com/*", None, {}, False),
        (None, WHOLE, {}, False),
        (None, None, {"from_ts": "1990"}, False),
        (None, None, {"to": "2100"}, False),
        (None, None, {"filter": "=own:1"}, False),
    ],
)
def test_the_number_of_lines_is_known_if_all_are_asked_for(
    query: str | None, part: KeyRange | None, options: dict[str, Any], is_whole: bool, cluster: str
) -> None:
    found = exported(cluster, query, part, **options)
    assert (found.url, found.is_whole, found.is_one) == (query or "*", is_whole, True)
    assert found.expected is None
    with found.opened():
        assert found.expected == (6 if is_whole else None)


def test_a_cdx_file_and_overlays_have_no_known_number(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = exported(str(write_plain(tmp_path / "a.cdxj", LINES)))
    with file.opened():
        assert (file.is_whole, file.expected) == (True, None)
    monkeypatch.setattr("cdxmill.cluster.reader.ClusterReader.overlays", [1])
    merged = exported(cluster)
    with merged.opened():
        assert (merged.is_whole, merged.expected) == (True, None)


@pytest.mark.parametrize(
    ("query", "options", "expected"),
    [
        (None, {}, [0, 1, 2, 3, 4, 5]),
        ("a.com/3", {}, [3]),
        ("a.com/*", {"from_ts": "20200101000002", "to": "20200101000004"}, [2, 3, 4]),
        (None, {"filter": ["=own:1"]}, [1]),
        ("a.com/", {"match_type": "host", "filter": "!=own:1"}, [0, 2, 3, 4, 5]),
        ("b.com/", {}, []),
    ],
)
@pytest.mark.parametrize("is_file", [False, True])
def test_the_lines_are_those_of_the_query(
    query: str | None,
    options: dict[str, Any],
    expected: list[int],
    is_file: bool,
    cluster: str,
    tmp_path: Path,
) -> None:
    place = str(write_plain(tmp_path / "a.cdxj", LINES)) if is_file else cluster
    found = exported(place, query, **options)
    assert [line for lines in found.lists() for line in lines] == [LINES[number] for number in expected]
    assert (found.count, found.has_skipped) == (len(expected), False)


def test_a_part_has_the_lines_of_its_keys(cluster: str) -> None:
    found = exported(cluster, "a.com/*", KeyRange(b"com,a)/2", b"com,a)/4"), filter="!own:3")
    assert [line for lines in found.lists() for line in lines] == [LINES[2]]


def test_a_field_that_no_line_has_is_refused_once(cluster: str, tmp_path: Path) -> None:
    """Not in a part: whether the first lines have it is found out before."""
    unknown: dict[str, Any] = {"filter": "mine:1"}
    for place in (cluster, str(write_plain(tmp_path / "a.cdxj", LINES))):
        found = exported(place, **unknown)
        with pytest.raises(UsageError, match=r"unknown field 'mine', which .* does not have"), found.opened():
            pass
        with pytest.raises(UsageError, match="unknown field 'mine'"):
            list(found.lists())
        part = exported(place, part=WHOLE, **unknown)
        with part.opened():
            assert [line for lines in part.lists() for line in lines] == []


def test_several_sources_are_read_in_order(tmp_path: Path) -> None:
    one, other = (write_plain(tmp_path / f"{name}.cdxj", LINES[name::2]) for name in range(2))
    found = exported(f"{one},{other}")
    assert not found.is_one
    assert [line for lines in found.lists() for line in lines] == LINES
    assert found.count == 6
    some = exported(f"{one},{other}", "a.com/*", filter="own:4")
    assert [line for lines in some.lists() for line in lines] == [LINES[4]]


def test_an_error_of_several_sources_ends_the_export(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def lookup_named(*args: Any) -> Iterator[Any]:
        given.extend(args)
        yield SimpleNamespace(error=None, lists=[[b"a"], [b"b", b"c"]])
        yield SimpleNamespace(error=InputError("x", "is corrupt"), lists=[[b"d"]])

    monkeypatch.setattr(several, "lookup_named", lookup_named)
    found = exported("x,y", "a.com", from_ts="2020")
    lists = found.lists()
    assert [next(lists), next(lists)] == [[b"a"], [b"b", b"c"]]
    with pytest.raises(InputError, match="x: is corrupt"):
        next(lists)
    assert found.count == 3
    assert (given[:2], given[2].from_ts) == (["x,y", ["a.com"]], "2020")
    given[3](InputError("x", "r"))
    assert found.has_skipped


@pytest.mark.parametrize(
    ("name", "is_one", "place"),
    [
        ("CC-MAIN-2024-22", True, "http://h/cc-index/collections/CC-MAIN-2024-22/indexes"),
        ("CC-MAIN-2024-*", False, "CC-MAIN-2024-*"),
        ("CC-MAIN-2024-22,CC-MAIN-2024-26", False, "CC-MAIN-2024-22,CC-MAIN-2024-26"),
        ("-", False, "-"),
        ("c", True, "c"),
    ],
)
def test_a_crawl_by_name_is_its_index(
    name: str, is_one: bool, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDXMILL_COMMONCRAWL", "http://h")
    found = exported(name)
    assert (found.is_one, found._place, found.cluster) == (is_one, place, name)


@pytest.mark.parametrize(
    ("expected", "count", "has_skipped", "is_bad"),
    [
        (None, 0, False, False),
        (6, 6, False, False),
        (6, 5, False, True),
        (6, 7, False, True),
        (0, 1, False, True),
        (6, 5, True, False),
    ],
)
def test_the_lines_are_counted(expected: int | None, count: int, has_skipped: bool, is_bad: bool) -> None:
    found = exported("c")
    found.expected, found.count, found.has_skipped = expected, count, has_skipped
    if is_bad:
        with pytest.raises(CorruptError, match=f"c: has {count} lines?, but its cluster.json has {expected}"):
            found.check()
    else:
        found.check()


def test_a_line_that_cannot_be_read_is_reported(cluster: str, tmp_path: Path) -> None:
    path = str(write_plain(tmp_path / "a.cdxj", [b"com,a)/0 2020 {[}", *LINES]))
    found = exported(path, filter="own:1")
    assert [line for lines in found.lists() for line in lines] == [LINES[1]]
    assert found.has_skipped
    (failure,) = found.failures.items
    assert (failure.path, failure.offset, failure.hint) == (path, None, "the line is skipped")
    other = exported(cluster)
    other._skip(CorruptError("c/x", "is corrupt", "fetch it", 7))
    assert other.failures.items == [Failure("c/x", 7, "is corrupt", "fetch it")]


def test_a_corrupt_block_is_skipped(cluster: str) -> None:
    shard = Path(cluster, "cdx-00000.gz")
    data = bytearray(shard.read_bytes())
    data[20] ^= 255
    shard.write_bytes(data)
    found = exported(cluster)
    assert [line for lines in found.lists() for line in lines] == LINES[2:]
    assert (found.has_skipped, found.expected, found.count) == (True, 6, 4)
    found.check()
    assert [failure.offset for failure in found.failures.items] == [0]


def test_a_machine_at_fault_stops_an_export(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoppedError, match="c: no answer"), outage_as_stop():
        raise OutageError("c", "no answer")
    with pytest.raises(InputError, match="c: is corrupt"), outage_as_stop():
        raise InputError("c", "is corrupt")

    def fails(*_: object) -> None:
        raise OutageError("c", "no answer")

    monkeypatch.setattr(module, "open_searched", fails)
    for found in (lambda: list(exported("c").lists()), lambda: key_ranges(exported("c"), 9).__enter__()):
        with pytest.raises(StoppedError, match="c: no answer"):
            found()


@pytest.mark.parametrize(
    ("sizes", "most", "most_bytes", "expected"),
    [
        ([], 3, 9, []),
        ([[]], 3, 9, []),
        ([[1, 1], [1]], 3, 9, [[1, 1, 1]]),
        ([[1], [1], [1], [1]], 3, 9, [[1, 1, 1], [1]]),
        ([[1, 1, 1, 1, 1, 1, 1]], 3, 9, [[1, 1, 1], [1, 1, 1], [1]]),
        ([[4, 5], [1]], 9, 9, [[4, 5], [1]]),
        ([[4, 4], [1]], 9, 9, [[4, 4, 1]]),
        ([[4], [4], [2], [3]], 9, 9, [[4, 4], [2, 3]]),
        ([[4], [6, 3]], 9, 9, [[4], [6, 3]]),
        ([[20], [1]], 9, 9, [[20], [1]]),
        ([[1], [20]], 9, 9, [[1], [20]]),
        ([[9], [9]], 9, 9, [[9], [9]]),
        ([[1], [1]], 1, 9, [[1], [1]]),
        ([[5, 5], [4, 5], [1]], 9, 9, [[5], [5, 4], [5, 1]]),
        ([[3, 3, 3], [0], [0]], 9, 9, [[3, 3, 3, 0, 0]]),
    ],
)
def test_a_batch_has_at_most_so_many_lines_and_bytes(
    sizes: list[list[int]], most: int, most_bytes: int, expected: list[list[int]]
) -> None:
    lists = [[b"x" * size for size in some] for some in sizes]
    before = [list(some) for some in lists]
    found = list(in_batches(lists, most, most_bytes))
    assert [[len(line) for line in batch] for batch in found] == expected
    assert lists == before


def open_blocks(keys: list[bytes], block_lines: int | None, is_changed: bool = False) -> Any:
    blocks = [BlockRef(key, b"s", 0, 1) for key in keys]
    index = SimpleNamespace(blocks=lambda low: iter(blocks))
    reader = SimpleNamespace(
        index=index, block_lines=lambda: block_lines, has_changed=lambda: is_changed, overlays=()
    )
    return SimpleNamespace(reader=reader)


@pytest.mark.parametrize(
    ("keys", "block_lines", "most", "cuts"),
    [
        ("", 10, 10, ""),
        ("b", 10, 10, ""),
        ("bcde", 10, 10, "cde"),
        ("bcde", 10, 19, "cde"),
        ("bcdef", 10, 20, "df"),
        ("bcdef", 10, 1, "cdef"),
        ("bcde", 10, 100, ""),
        ("bcde", None, 3000, "cde"),
        ("bcde", None, 6000, "d"),
        ("bcde", 0, 5999, "cde"),
        ("bccde", 10, 10, "cde"),
        ("aaabc", 10, 10, "bc"),
        ("bcyz", 10, 10, "cy"),
    ],
)
def test_a_task_begins_with_a_block(keys: str, block_lines: int | None, most: int, cuts: str) -> None:
    opened = open_blocks([key.encode() for key in keys], block_lines)
    found = ranges._cut(opened, KeyRange(b"a", b"z"), most)
    ends = [b"a", *(cut.encode() for cut in cuts), b"z"]
    assert found == [KeyRange(low, high) for low, high in pairwise(ends)]


def test_what_has_no_index_of_blocks_is_one_task(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is not even opened."""
    monkeypatch.setattr(ExportedLines, "opened", None)
    path = str(write_plain(tmp_path / "a.cdxj", LINES))
    for place in (path, f"{path},{cluster}"):
        lines = exported(place, "a.com/*")
        with key_ranges(lines, 1) as found:
            assert found == [lines.keys]


def test_a_cluster_is_cut_at_its_blocks(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "BLOCK_LINES", 2)
    with key_ranges(exported(cluster), 2) as found:
        ends = [b"", b"com,a)/2 20200101000002", b"com,a)/4 20200101000004"]
        assert [keys.low for keys in found] == ends
    one = exported(cluster, "a.com/3", from_ts="2020", to="2020")
    with key_ranges(one, 2) as found:
        assert found == [KeyRange(*one.narrowed()[:2])]


def test_a_cluster_that_was_changed_stops_the_export(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = "cdxmill.cluster.reader.ClusterReader.has_changed"
    monkeypatch.setattr(changed, lambda _: False)
    with key_ranges(exported(cluster), 2) as found:
        assert found
    with (
        pytest.raises(StoppedError, match="c: it was changed while it was exported; run it again"),
        key_ranges(exported(cluster), 2),
    ):
        monkeypatch.setattr(changed, lambda _: True)


def test_a_damaged_index_is_corrupt_input(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise DamagedCluster("its index is out of order")

    monkeypatch.setattr(ranges, "_cut", fails)
    with pytest.raises(CorruptError, match="c: its index is out of order"), key_ranges(exported(cluster), 2):
        pass
    found = exported(cluster)
    with pytest.raises(CorruptError, match="c: a block"), found.opened():
        raise DamagedCluster("a block")
