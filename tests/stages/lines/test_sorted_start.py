"""Texts in order become runs without becoming lines; what follows the first line out of order is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.lines import sorted_input
from cdxmill.stages.lines.merge_lines import sorted_lists
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.lines.sorted_input import SortedStart

from ...material.memory_files import MemoryFiles

BATCH = 40
keys = st.integers(0, 99).map(lambda number: b"com,a)/%02d 2020 {}" % number)
texts = st.tuples(
    st.sampled_from([b"", b" CDX N b a\n"]), st.lists(keys), st.lists(keys), st.sampled_from([b"", b"\n"])
)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_input, "BATCH", BATCH)


def cut(text: bytes, size: int) -> Iterator[bytes]:
    """A generator, as readers of files are: it can be closed, and then has no rest."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


@given(texts, st.integers(1, 200))
def test_blocks_have_the_lines_in_order_and_the_rest_follows(
    given_text: tuple[bytes, list[bytes], list[bytes], bytes], size: int
) -> None:
    header, first, more, end = given_text
    lines = sorted(first) + more
    text = header + b"\n".join(lines) + (end if lines else b"")
    start = SortedStart(cut(text, size))
    blocks = list(start)
    rest = b"".join(start.rest())
    passed = b"".join(bytes(block.text) for block in blocks)
    found = passed.splitlines()
    assert found == sorted(found)
    assert [block.lines for block in blocks] == [block.text.count(b"\n") for block in blocks]
    assert all(block.text.endswith(b"\n") for block in blocks)
    assert [*found, *(line for line in rest.splitlines() if line != header[:-1])] == lines


def test_a_text_in_order_is_passed_on_whole() -> None:
    text = b"".join(b"com,a)/%02d 2020 {}\n" % number for number in range(50))
    start = SortedStart(cut(text[:-1], 100))
    assert b"".join(bytes(block.text) for block in start) == text
    assert list(start.rest()) == []


def test_an_undone_input_leaves_no_run_when_lines_before_it_are_spilled_after_its_run() -> None:
    scratch = MemoryFiles()
    sorter = LineSorter(scratch.create, "x", chunk=300)
    sorter.begin()
    sorter.add([b"com,before)/ 2020 {}"])
    sorter.begin()
    text = b"".join(b"com,a)/%02d 2020 {}\n" % number for number in range(50)) + b"com,a)/00 2020 {}\n"
    rest = b"".join(sorter.add_sorted(cut(text, 100)))
    sorter.add(rest.splitlines() * 20)
    sorter.undo()
    assert [run.lines for run in sorter.finish()] == [1]


def test_the_lines_in_order_are_a_run_and_come_with_the_others() -> None:
    scratch = MemoryFiles()
    sorter = LineSorter(scratch.create, "x", chunk=10_000)
    sorter.begin()
    lines = [b"com,a)/%02d 2020 {}" % number for number in range(50)]
    for piece in sorter.add_sorted(
        cut(b"".join(line + b"\n" for line in [*lines, lines[7], b"com,b)/ 2020 {}"]), 100)
    ):
        sorter.add(piece.splitlines())
    assert sum(run.lines for run in sorter.runs) >= 40
    assert sum(run.duplicates for run in sorter.runs) == 0
    found = sorted_lists(sorter, scratch.create, scratch.reader)
    assert [line for some in found for line in some] == [*lines, b"com,b)/ 2020 {}"]
