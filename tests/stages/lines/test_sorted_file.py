"""Sorted gzip files as runs: read from any place that was noted, and taken only where they are sorted."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.lines import sorted_input
from cdxmill.stages.lines.merge_lines import merge_runs, merge_slices
from cdxmill.stages.lines.sort_lines import LineSorter, cut_runs
from cdxmill.stages.lines.sorted_input import SeekPoints, note_seek_points, read_between
from cdxmill.stages.window import MemberError, Window

from ...material.memory_files import MemoryFiles

word = st.binary(min_size=1, max_size=6).filter(lambda line: b"\n" not in line and line > b" CDY")
line = word | st.builds(lambda start: start + b"x" * 3000, word)
sorted_lines = st.lists(line, min_size=1, max_size=40).map(sorted)
cuts = st.lists(st.integers(0, 20_000), max_size=12)
SOME = 1 << 20


def packed(text: bytes, cuts: Sequence[int]) -> bytes:
    """As gzip members that end anywhere, some of them empty."""
    bounds = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return b"".join(gzip.compress(text[low:high], 1) for low, high in pairwise(bounds))


def noted(data: bytes, most: int = SOME) -> tuple[bytes, SeekPoints | None]:
    """The text that was shown, and the places."""
    pieces: list[bytes] = []
    seek_points = note_seek_points(
        Window(lambda offset, size: data[offset : offset + size]), most, pieces.append
    )
    return b"".join(pieces), seek_points


@pytest.fixture(autouse=True, scope="module")
def _close_together() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_input, "APART", 0)
        yield patch


@given(sorted_lines, cuts, st.sampled_from([b"\n", b""]))
def test_the_text_between_places_starts_with_the_line_that_was_noted(
    lines: list[bytes], cuts: list[int], end: bytes
) -> None:
    text = b"\n".join(lines) + end
    data = packed(text, cuts)
    shown, places = noted(data)
    assert shown == text
    assert places is not None
    assert places.lines == len(lines)
    bounds = [*(place for place, _ in places.firsts), places.stop]
    parts = [
        b"".join(read_between(lambda offset, size: data[offset : offset + size], low, high))
        for low, high in pairwise(bounds)
    ]
    assert b"".join(parts) == text
    assert [part.split(b"\n")[0] for part in parts] == [first for _, first in places.firsts]


@given(sorted_lines, sorted_lines, cuts, st.lists(word, max_size=4, unique=True).map(sorted))
def test_sorted_files_and_spilled_lines_merge_and_are_cut_as_one(
    lines: list[bytes], others: list[bytes], cuts: list[int], points: list[bytes]
) -> None:
    files = MemoryFiles()
    data = files["/input.cdx.gz"] = packed(b"".join(line + b"\n" for line in lines), cuts)
    sorter = LineSorter(files.create, "run", 200)
    _, places = noted(data)
    assert places is not None
    sorter.adopt("/input.cdx.gz", places)
    sorter.add(others)
    runs = sorter.finish()
    expected = sorted({*lines, *others})
    merged = merge_runs(runs, files.create, files.reader)
    assert [line for part in merged for line in part] == expected
    bounds = zip([b"", *points], [*points, b"\xff" * 9], strict=True)
    assert [
        [line for some in merge_slices(part, files.reader) for line in some]
        for part in cut_runs(runs, points, files.reader)
    ] == [[line for line in expected if low <= line < high] for low, high in bounds]


def test_slices_know_how_many_bytes_they_take_on_disk() -> None:
    """Both have the block at which they are cut."""
    lines = [random.Random(number).randbytes(50).hex().encode() for number in range(9000)]
    lines.sort()
    files = MemoryFiles()
    data = files["/input.cdx.gz"] = packed(
        b"".join(line + b"\n" for line in lines), range(0, 900_000, 50_000)
    )
    sorter = LineSorter(files.create, "run")
    _, places = noted(data)
    assert places is not None
    sorter.adopt("/input.cdx.gz", places)
    sorter.add(lines)
    for run in sorter.finish():
        size = len(data) if run.source else run.footer
        sizes = [one.packed() for (one,) in cut_runs([run], [lines[4500]], files.reader)]
        assert run.whole().packed() == size
        assert size <= sum(sizes) < size + 70_000
        assert max(sizes) < size * 2 / 3


@pytest.mark.parametrize(
    "text",
    [
        b"b\na\n",
        b" CDX N b a\na\n",
        b"\na\n",
        b"a\n\n",
        b"a\nb\na",
        b"a\nc\nb\nd\n",
        b"aaaaaaaaa\naaaaaaaa\n",
        b"a\xff\na\x7f\n",
        b"a\n" + b"b" * 9000 + b"\n" + b"b" * 8999 + b"\n",
        b"",
        b" CDX N b",
    ],
)
@pytest.mark.parametrize("cuts", [[], [1], [2, 3], [4]])
def test_what_is_not_sorted_captures_alone_is_no_run(text: bytes, cuts: list[int]) -> None:
    assert noted(packed(text, cuts))[1] is None


@pytest.mark.parametrize("line", [b"a\n", b"com,example)/ 2020 {}\n"])
def test_equal_lines_stay_in_order_however_many_they_are(line: bytes) -> None:
    text = line * 100_000
    shown, places = noted(packed(text, range(0, len(text), 7919)), len(text))
    assert shown == text
    assert places is not None
    assert places.lines == 100_000


def test_members_that_are_too_large_are_noticed_early() -> None:
    text = b"".join(b"%09d\n" % number for number in range(400_000))
    assert noted(packed(text, [10, 20]), 300_000)[1] is None
    shown, places = noted(packed(text, []), 300_000)
    assert places is None
    assert len(shown) < len(text) / 4
    assert noted(packed(text, range(0, len(text), 250_000)), 300_000)[1] is not None


def test_a_damaged_file_is_no_run() -> None:
    data = packed(b"a\nb\nc\n", [2, 4])
    with pytest.raises(MemberError):
        noted(data[:-3])


def test_places_in_another_file_are_noticed() -> None:
    lines = [b"%06d" % number for number in range(5000)]
    text = b"".join(line + b"\n" for line in lines)
    data = packed(text, [7000, 14_000, 21_000, 28_000])
    _, places = noted(data)
    assert places is not None
    others = [packed(text, [1000, 9000]), packed(text[:9000], [7000]), data[: places.firsts[1][0] >> 40], b""]
    for other in others:
        with pytest.raises(MemberError):
            list(read_between(lambda offset, size: other[offset : offset + size], 0, places.stop))  # noqa: B023
