"""Lines -> runs -> merged lines: the sorted set of what was put in, whatever the memory allows."""

from __future__ import annotations

import random
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.lines import merge_lines as merging
from cdxmill.stages.lines.line_lists import cut_blocks, distinct, group_lines
from cdxmill.stages.lines.merge_lines import (
    MOST_RUNS,
    fewer_runs,
    merge_lines,
    merge_runs,
    merge_slices,
    sort_lists,
)
from cdxmill.stages.lines.sort_lines import (
    BLOCK,
    LineSorter,
    Run,
    Slice,
    cut_run,
    read_slice,
    sort_captures,
    write_run,
)

from ...material.memory_files import MemoryFiles

words = st.binary(min_size=1, max_size=3).filter(lambda line: b"\n" not in line)
line = words | st.sampled_from([b"", b" CDX N b", b" CDW", b" CDY", b"x" * 70_000, b"\xff", b"\0", b"\r"])
lists_of_lines = st.lists(st.lists(line, max_size=12), max_size=12)


def expected(lists: list[list[bytes]]) -> list[bytes]:
    """What `LC_ALL=C sort -u` would print of them, without headers and empty lines."""
    return sorted({line for lines in lists for line in lines if line and not line.startswith(b" CDX")})


def sorted_runs_of(lists: list[list[bytes]], files: MemoryFiles, chunk: int) -> list[Run]:
    """Each list is an input."""
    sorter = LineSorter(files.create, "run", chunk)
    for lines in lists:
        sorter.begin()
        sorter.add(list(lines))
    return sorter.finish()


def joined(lists: object) -> list[bytes]:
    assert hasattr(lists, "__iter__")
    return [line for lines in lists for line in lines]


@given(lists_of_lines, st.integers(1, 2000))
def test_runs_merge_to_the_sorted_set_of_the_lines(lists: list[list[bytes]], chunk: int) -> None:
    files = MemoryFiles()
    runs = sorted_runs_of(lists, files, chunk)
    assert joined(merge_runs(runs, files.create, files.reader)) == expected(lists)
    kept = sum(1 for lines in lists for line in lines if line and not line.startswith(b" CDX"))
    assert sum(run.lines + run.duplicates for run in runs) == kept


@given(lists_of_lines)
def test_lists_of_lines_are_sorted_by_way_of_scratch_space(lists: list[list[bytes]]) -> None:
    files = MemoryFiles()
    assert joined(
        sort_lists([list(lines) for lines in lists], "run", files.create, files.reader)
    ) == expected(lists)


@given(lists_of_lines, st.integers(1, 2000), st.integers(1, 5))
def test_fewer_runs_hold_the_same_lines(lists: list[list[bytes]], chunk: int, most: int) -> None:
    files = MemoryFiles()
    runs = sorted_runs_of(lists, files, chunk)
    few = fewer_runs(runs, files.create, files.reader, most)
    assert len(few) <= most
    assert sum(run.lines + run.duplicates for run in few) == sum(run.lines + run.duplicates for run in runs)
    assert joined(merge_runs(few, files.create, files.reader)) == expected(lists)


def test_no_more_runs_are_merged_beforehand_than_must_be() -> None:
    files = MemoryFiles()
    runs = sorted_runs_of([[b"%03d" % number] for number in range(20)], files, 1)
    few = fewer_runs(runs, files.create, files.reader, 19)
    assert len(few) == 19
    assert len(set(few) & set(runs)) == 18


def test_more_runs_than_may_be_merged_at_once_give_the_same_lines() -> None:
    lines = [b"com,example)/%05d" % (number * 7919 % 10_007) for number in range(3 * MOST_RUNS)]
    files = MemoryFiles()
    runs = sorted_runs_of([[line] for line in lines], files, 1)
    assert len(runs) > 2 * MOST_RUNS
    assert joined(merge_runs(runs, files.create, files.reader)) == sorted(set(lines))


@given(lists_of_lines, st.sets(st.integers(0, 11)), st.integers(1, 2000))
def test_undo_forgets_an_input_and_no_line_of_another(
    lists: list[list[bytes]], undone: set[int], chunk: int
) -> None:
    files = MemoryFiles()
    sorter = LineSorter(files.create, "run", chunk)
    for number, lines in enumerate(lists):
        sorter.begin()
        for one in lines:
            sorter.add([one])
        if number in undone:
            sorter.undo()
    kept = [lines for number, lines in enumerate(lists) if number not in undone]
    assert joined(merge_runs(sorter.finish(), files.create, files.reader)) == expected(kept)


@given(lists_of_lines, st.lists(line, max_size=5, unique=True).map(sorted), st.integers(1, 2000))
def test_slices_are_what_belongs_between_the_split_points(
    lists: list[list[bytes]], points: list[bytes], chunk: int
) -> None:
    files = MemoryFiles()
    runs = sorted_runs_of(lists, files, chunk)
    bounds = list(zip([None, *points], [*points, None], strict=True))
    cuts = [cut_run(files.reader(run.name), run, points) for run in runs]
    parts = [
        [Slice(run, *cut[number], *bounds[number]) for run, cut in zip(runs, cuts, strict=True) if cut[number][0] < cut[number][1]]
        for number in range(len(bounds))
    ]  # fmt: skip
    shards: list[list[bytes]] = [[] for _ in bounds]
    for one in expected(lists):
        shards[bisect_right(points, one)].append(one)
    assert [joined(merge_slices(part, files.reader)) for part in parts] == shards


@given(st.lists(st.lists(words, max_size=9).map(sorted), max_size=6), st.integers(1, 4), st.integers(1, 30))
def test_sorted_sources_merge_in_lists_and_rounds_of_any_size(
    sources: list[list[bytes]], size: int, lines_a_round: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "_ROUND", lines_a_round)
        merged = merge_lines(
            iter([source[start : start + size] for start in range(0, len(source), size)])
            for source in sources
        )
        assert joined(merged) == sorted({line for source in sources for line in source})


def test_rounds_are_neither_small_nor_large_however_the_sources_lie() -> None:
    apart = [[b"%03d %05d" % (source, line) for line in range(2000)] for source in range(100)]
    mixed = [[b"%05d %03d" % (line, source) for line in range(2000)] for source in range(100)]
    for sources in (apart, mixed):
        rounds = [len(lines) for lines in merge_lines(iter([source]) for source in sources)]
        assert sum(rounds) == 200_000
        assert len(rounds) < 200
        assert max(rounds) < 20_000


@given(st.lists(line, max_size=20))
def test_captures_are_sorted_without_headers_and_empty_lines(lines: list[bytes]) -> None:
    assert distinct(sort_captures(list(lines))) == expected([lines])


@given(st.lists(st.binary(max_size=9), max_size=30), st.integers(0, 12))
def test_groups_are_all_lines_in_order_and_none_is_too_large(lines: list[bytes], size: int) -> None:
    groups = list(group_lines(lines, size))
    assert joined(groups) == lines
    assert all(len(group) == 1 or sum(map(len, group)) <= size for group in groups)


def test_blocks_stay_small_where_a_short_line_comes_before_long_ones() -> None:
    files = MemoryFiles()
    lines = [b"a", *(b"b%03d" % number + b"x" * 30_000 for number in range(400))]
    with files.create("run") as file:
        run = write_run(file, "run", cut_blocks([lines], 3000))
    lists = list(read_slice(files.reader, run.whole(), BLOCK))
    assert joined(lists) == lines
    assert max(sum(map(len, part)) for part in lists) <= 2 * BLOCK


def test_a_merge_of_many_runs_holds_a_bounded_share_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "WORKING_SET", 4 << 20)
    files = MemoryFiles()
    lists = [[b"%09d " % (number * 40 + run) + b"x" * 490 for number in range(2000)] for run in range(40)]
    runs = sorted_runs_of(lists, files, 1 << 19)
    merged = merge_slices([run.whole() for run in runs], files.reader)
    sizes = [sum(map(len, lines)) for lines in merged]
    assert sum(sizes) == 40 * 2000 * 500
    assert max(sizes) <= 2 * merging.WORKING_SET


def test_runs_are_read_by_ranges_and_a_slice_reads_its_blocks_alone() -> None:
    store = MemoryFiles()
    source = random.Random(5)
    lines = [b"%06d " % number + source.randbytes(60).hex().encode() for number in range(20_000)]
    with store.create("run") as file:
        run = write_run(file, "run", cut_blocks([lines], 3000))
    read: list[tuple[int, int]] = []

    def counting(offset: int, size: int) -> bytes:
        read.append((offset, size))
        return store["run"][offset : offset + size]

    (_, (start, end), _) = cut_run(counting, run, [lines[10_000], lines[10_010]])
    found = joined(
        read_slice(lambda _: counting, Slice(run, start, end, lines[10_000], lines[10_010]), BLOCK)
    )
    assert found == lines[10_000:10_010]
    assert sum(size for _, size in read) < len(store["run"]) / 10
    assert max(size for _, size in read) <= BLOCK, "more is read ahead than was asked for"
