"""When lines are spilled to runs, and what happens to runs that are merged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdxmill.errors import StoppedError
from cdxmill.stages.lines import merge_lines as merge_module
from cdxmill.stages.lines.merge_lines import (
    SortedLists,
    fewer_runs,
    merge_lines,
    merge_slices,
    sorted_lists,
)
from cdxmill.stages.lines.sort_lines import BLOCK, LineSorter, Run, cut_runs, has_lines

from ...material.memory_files import MemoryFiles


def test_lines_are_spilled_when_they_take_as_much_memory_as_they_may() -> None:
    """Python adds 41 bytes to each line."""
    files = MemoryFiles()
    sorter = LineSorter(files.create, "run", 1000)
    for number in range(9):
        sorter.add([b"%059d" % number])
    assert sorter.runs == []
    sorter.add([b"9" * 58])
    assert sorter.runs == []
    sorter.add([b"a" * 59])
    assert [(run.name, run.lines) for run in sorter.runs] == [("run-00000.run", 11)]
    assert sorter.take() == []


def test_an_input_is_spilled_apart_from_those_before_it_so_that_it_can_be_undone() -> None:
    files = MemoryFiles()
    sorter = LineSorter(files.create, "run", 1000)
    sorter.begin()
    sorter.add([b"1" * 59] * 5)
    sorter.begin()
    sorter.add([b"2" * 59, b"3" * 59] * 3)
    assert [(run.lines, run.duplicates) for run in sorter.runs] == [(1, 4)]
    sorter.add([b"4" * 59] * 4)
    assert len(sorter.runs) == 2
    sorter.undo()
    assert [(run.lines, run.duplicates) for run in sorter.finish()] == [(1, 4)]


def test_lines_that_fit_into_memory_are_not_spilled() -> None:
    files = MemoryFiles()
    sorter = LineSorter(files.create, "run", 1000)
    sorter.add([b"b", b"a", b"", b" CDX N", b"b"])
    assert list(sorted_lists(sorter, files.create, files.reader)) == [[b"a", b"b"]]
    assert not files


@pytest.mark.parametrize("most", [1, 3, 9, 10])
def test_runs_that_were_merged_are_named_so_that_they_can_be_deleted(most: int) -> None:
    files, deleted = MemoryFiles(), list[str]()
    sorter = LineSorter(files.create, "run", 1)
    for number in range(10):
        sorter.add([b"%d" % number, b"same"])
    runs = list(sorter.runs)
    few = fewer_runs(runs, files.create, files.reader, most, deleted.extend)
    assert len(few) == most
    assert {run.name for run in runs} == {*deleted, *(run.name for run in few)} & {run.name for run in runs}
    assert not {*deleted} & {run.name for run in few}
    assert sum(run.lines + run.duplicates for run in few) == 20
    merged = [run for run in few if run not in runs]
    assert all((run.lines, run.duplicates) == (12 - most, 10 - most) for run in merged)


@pytest.mark.parametrize("lists", [[[b"b"], [b"a"]], [[b"a", b"c"], [b"b"]], [[b"a"], []]])
def test_a_source_that_is_not_sorted_stops_the_merge(lists: list[list[bytes]]) -> None:
    with pytest.raises(StoppedError, match="inputs were changed while they were read; run it again"):
        list(merge_lines([iter(lists)]))


def test_slices_that_only_have_lines_beyond_their_bounds_have_none() -> None:
    files = MemoryFiles()
    sorter = LineSorter(files.create, "run", 1)
    sorter.add([b"a", b"d"])
    parts = cut_runs(sorter.finish(), [b"b", b"c"], files.reader)
    assert [[has_lines(files.reader, one) for one in part] for part in parts] == [[True], [False], [True]]


def test_lists_are_taken_up_to_a_bound() -> None:
    source = SortedLists([[b"a", b"b", b"c"], [b"d"]])
    taken: list[bytes] = []
    assert (source.next(), source.ahead(1), source.ahead(2), source.ahead(9)) == (b"a", b"a", b"b", b"c")
    assert source.take(b"b", taken)
    assert taken == [b"a", b"b"]
    assert source.take_below(b"c") == []
    assert source.take_below(b"cc") == [b"c"]
    assert source.next() == b"d"
    assert source.take_below(None) == [b"d"]
    assert source.next() is None
    assert not source.lines


@pytest.mark.parametrize("size", [1, 2, 3, 4096])
@pytest.mark.parametrize(
    ("sources", "merged"),
    [
        ([], b""),
        ([[]], b""),
        ([[], [[b"a"]]], b"a"),
        ([[[b"a"], [b"a", b"b"]]], b"ab"),
        ([[[b"a", b"c"], [b"c"]], [[b"b"], [b"c", b"d"]], [[b"c"]]], b"abcd"),
        ([[[b"a", b"b", b"c", b"d"]], [[b"z"]], [[b"b"], [b"x", b"y"]], []], b"abcdxyz"),
    ],
    ids=range(6),
)
def test_sources_are_merged_in_rounds_of_any_size(
    sources: list[list[list[bytes]]], merged: bytes, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_module, "_ROUND", size)
    found = merge_lines(iter(one) for one in sources)
    assert b"".join(line for lines in found for line in lines) == merged


@pytest.mark.parametrize("number", [1, 64, 65, 100, 2000])
def test_many_slices_are_read_in_smaller_lists(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them together take about as much memory as a few."""
    sizes: list[int] = []

    def read_slice(open_run: object, part: object, size: int) -> Iterator[list[bytes]]:
        del open_run, part
        sizes.append(size)
        return iter([[b"a"]])

    monkeypatch.setattr(merge_module, "read_slice", read_slice)
    slices = [Run("r", 0, 0, 1, 0, 0).whole()] * number
    assert [line for lines in merge_slices(slices, MemoryFiles().reader) for line in lines] == [b"a"]
    assert sizes == [max(BLOCK, min(1 << 20, (64 << 20) // number))] * number
