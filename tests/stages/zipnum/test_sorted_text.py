"""A sorted text as blocks: all of its lines, each once, or a reason."""

from __future__ import annotations

import pytest

from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.stages.zipnum.block_pieces import Tables
from cdxmill.stages.zipnum.sorted_text import PAGE, BecameShorter, NotSorted, SortedPieces, TextIndex

LINES = [b"com,a)/%06d 2020 {}" % number for number in range(12_000)]
TEXT = b"".join(line + b"\n" for line in LINES)
assert len(TEXT) > 4 * PAGE


class File:
    """A text in memory, which may be shorter than its size says."""

    def __init__(self, text: bytes, size: int | None = None) -> None:
        self.text, self.size = text, len(text) if size is None else size

    def index(self) -> TextIndex:
        return TextIndex(lambda offset, size: self.text[offset : offset + size], self.size)

    def lines_of(self, block: BlockRef) -> list[bytes]:
        pieces = SortedPieces(block, lambda _, offset, size: self.text[offset : offset + size], Tables())
        return b"".join(pieces.opened(b"", b"\xff")).split(b"\n")[:-1]

    def lines(self) -> list[bytes]:
        return [line for block in self.index().blocks(b"") for line in self.lines_of(block)]


@pytest.mark.parametrize("text", [TEXT, TEXT[: PAGE - 3] + b"\n", b"com,a)/ 2020 {}\n", b""])
def test_the_blocks_have_all_lines(text: bytes) -> None:
    file = File(text)
    blocks = list(file.index().blocks(b""))
    assert [block.offset for block in blocks] == [0, *(one.offset + one.length for one in blocks)][
        : len(blocks)
    ]
    assert all(text[block.offset - 1 : block.offset] in (b"", b"\n") for block in blocks)
    assert file.lines() == text.split(b"\n")[:-1]
    for number in (0, 1, 5000, len(LINES) - 1):
        first = next(file.index().blocks(LINES[number]), None)
        if text == TEXT:
            assert first is not None
            assert LINES[number] in file.lines_of(first)


def test_a_header_blank_lines_and_lines_that_come_twice_are_not_given() -> None:
    assert File(b" CDX N b a\n\n" + TEXT).lines() == LINES
    assert File(b"".join(line + b"\n" + line + b"\n" for line in LINES)).lines() == LINES


@pytest.mark.parametrize("text", [b"\n", b" CDX N b a\n" * 3, b" CDX N b a\n\n\n"])
def test_a_text_may_have_no_line_of_a_capture(text: bytes) -> None:
    """Such as one that was changed while it was open."""
    assert File(text).lines() == []


@pytest.mark.parametrize("number", [1, 7, 4000, len(LINES) - 1])
def test_lines_that_are_not_sorted_are_found(number: int) -> None:
    changed = [*LINES]
    changed[number] = b"com,a)/!"
    with pytest.raises(NotSorted, match=r"the lines are not sorted near byte \d+"):
        File(b"".join(line + b"\n" for line in changed)).lines()


def test_lines_that_are_not_sorted_between_two_blocks_are_found() -> None:
    blocks = list(File(TEXT).index().blocks(b""))
    end = blocks[0].offset + blocks[0].length
    last = TEXT.rindex(b"\n", 0, end - 1) + 1
    changed = TEXT[:last] + TEXT[last : end - 1].replace(b"com,a", b"com,b") + TEXT[end - 1 :]
    with pytest.raises(NotSorted, match="near byte 0"):
        File(changed).lines_of(blocks[0])
    assert File(TEXT).lines_of(blocks[0])[-1] == TEXT[last : end - 1]


@pytest.mark.parametrize("kept", [0, 10, PAGE, len(TEXT) - 1, len(TEXT) - PAGE])
def test_a_file_that_became_shorter_is_reported_as_that(kept: int) -> None:
    with pytest.raises(BecameShorter, match="the file became shorter while it was read"):
        File(TEXT[:kept], len(TEXT)).lines()


def test_pages_of_two_texts_one_after_the_other_are_not_sorted() -> None:
    index = File(TEXT + TEXT).index()
    pages = 2 * len(TEXT) // PAGE
    assert File(TEXT).index().are_sorted(range(len(TEXT) // PAGE))
    assert not index.are_sorted([0, pages // 2 - 1, pages // 2 + 1, pages])
    assert index.are_sorted([0, 1, pages // 2 - 1])


@pytest.mark.parametrize("size", [20, 9000])
def test_pages_are_compared_by_the_lines_that_begin_in_them(size: int) -> None:
    lines = [b"com,a)/%06d 2020 {%b}\n" % (number, b"x" * size) for number in range(600_000 // (size + 20))]
    for given, is_sorted in ((lines, True), (lines[::-1], False)):
        file = File(b"".join(given))
        assert file.index().are_sorted(range(len(file.text) // PAGE)) is is_sorted


def test_the_key_of_a_block_is_its_first_line_but_the_file_may_begin_with_a_header() -> None:
    blocks = list(File(TEXT).index().blocks(b""))
    first_lines = [TEXT[block.offset : TEXT.index(b"\n", block.offset)] for block in blocks]
    assert [block.key for block in blocks] == [b"", *first_lines[1:]]
    assert all(block.shard == b"" for block in blocks)


def test_a_line_that_fills_several_pages_is_found_once() -> None:
    text = b"com,a)/ 2020 {}\n" * (3 * PAGE // 16)
    file = File(b"com,a)/ 1 {}\n" + text + b"com,b)/ 2020 {}\n")
    assert file.lines() == [b"com,a)/ 1 {}", b"com,a)/ 2020 {}", b"com,b)/ 2020 {}"]
    assert file.index().are_sorted(range(3))


@pytest.mark.parametrize("low", [b"", b"com,a)/000001", b"com,a)/005000", b"com,a)/9"])
@pytest.mark.parametrize("page", range(1, 8))
def test_pages_out_of_order_are_found_whichever_were_looked_at_before(page: int, low: bytes) -> None:
    """The first line that begins in the page is that of a later one."""
    lines = [b"com,a)/%06d 2020 {%060d}" % (number, 0) for number in range(6500)]
    size = len(lines[0]) + 1
    assert 8 * PAGE < size * len(lines) < 9 * PAGE
    first = -(-page * PAGE // size)
    lines[first] = b"com,b" + lines[first][5:]
    index = File(b"".join(line + b"\n" for line in lines)).index()
    with pytest.raises(NotSorted, match=r"the lines are not sorted near byte \d+"):
        list(index.blocks(b""))
    with pytest.raises(NotSorted):
        list(index.blocks(low))
        list(index.blocks(b""))


def test_the_first_line_of_a_page_is_mostly_known_from_its_first_bytes() -> None:
    reads: list[tuple[int, int]] = []

    def read_at(offset: int, size: int) -> bytes:
        reads.append((offset, size))
        return TEXT[offset : offset + size]

    index = TextIndex(read_at, len(TEXT))
    assert index.are_sorted(range(4))
    assert reads == [(page * PAGE, 1 << 12) for page in range(4)]
    for page in range(4):
        start = TEXT.rindex(b"\n", 0, page * PAGE + 4000) if page else 0
        found = index._first_key(page)
        assert found == TEXT[(TEXT.find(b"\n", page * PAGE) + 1) if page else 0 :].split(b"\n", 1)[0]
        assert found in TEXT[: start + 4000]


def test_a_block_that_became_shorter_is_reported_as_that() -> None:
    file = File(TEXT)
    block = next(file.index().blocks(b""))
    for missing in (1, block.length):
        file.text = TEXT[: block.length - missing]
        with pytest.raises(BecameShorter):
            file.lines_of(block)
    file.text = TEXT[: block.length]
    assert file.lines_of(block) == LINES[: len(file.lines_of(block))]
