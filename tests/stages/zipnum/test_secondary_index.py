"""An index that is searched by its pages gives what a search of all its lines gives, and reads few pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.clusters.zipnum import BlockRef, format_part_line
from cdxmill.stages.zipnum.secondary_index import DamagedCluster, SecondaryIndex

KEYS = st.lists(
    st.binary(max_size=3).map(lambda key: key.translate(bytes(b"ab\t\x08 "[byte % 5] for byte in range(256))))
    | st.integers(1, 99).map(lambda size: b"a" * size),
    max_size=25,
).map(sorted)


def rows(keys: list[bytes]) -> list[bytes]:
    return [format_part_line(BlockRef(key, b"c", 10 * number, 10)) for number, key in enumerate(keys)]


class Reads:
    """An index in memory, and the offsets that were read."""

    def __init__(self, data: bytes, page: int) -> None:
        self.data, self.page = data, page
        self.offsets: list[int] = []
        self.index = SecondaryIndex(self.read_at, len(data), page)

    def read_at(self, offset: int, size: int) -> bytes:
        assert size > 0 and 0 <= offset < len(self.data)
        assert offset // self.page == (offset + size - 1) // self.page, "one page at a time"
        self.offsets.append(offset)
        return self.data[offset : offset + size]


@given(KEYS, st.integers(1, 70), st.binary(max_size=3) | st.sampled_from([b"a" * 50, b"\xff" * 8, b"b\t"]))
def test_a_search_begins_with_the_last_line_below_its_key(keys: list[bytes], page: int, low: bytes) -> None:
    lines = [row[:-1] for row in rows(keys)]
    index = Reads(b"".join(rows(keys)), page).index
    first = max(sum(key < low for key in keys) - 1, 0)
    for _ in range(2):
        assert list(index.lines(low)) == lines[first:]
        assert [block.key for block in index.blocks(low)] == keys[first:]
        assert index.last_before(low) == (lines[first] if lines else None)
        assert index.last_line() == (lines[-1] if lines else None)
        index.check_ends()


def test_a_second_search_reads_only_what_it_does_not_know() -> None:
    keys = [b"%05d" % number for number in range(4000)]
    reads = Reads(b"".join(rows(keys)), 512)
    assert next(reads.index.lines(b"01999x")) == rows(keys)[1999][:-1]
    assert len(reads.offsets) < 12
    reads.offsets.clear()
    assert next(reads.index.lines(b"01999x")) == rows(keys)[1999][:-1]
    assert reads.offsets == []
    next(reads.index.lines(b"02000x"))
    assert len(reads.offsets) < 3
    reads.offsets.clear()
    reads.index.check_ends()
    assert len(reads.offsets) < 4


def test_only_some_megabytes_of_pages_are_kept() -> None:
    keys = [b"%03d" % number + b"x" * 100_000 for number in range(130)]
    reads = Reads(b"".join(rows(keys)), 4 << 20)
    for low, is_read in ((b"060y", True), (b"060y", False), (b"100y", True), (b"060y", True)):
        reads.offsets.clear()
        assert next(reads.index.lines(low))[:3] == low[:3]
        assert bool(reads.offsets) == is_read


def test_the_reason_of_damage_may_leave_out_where_it_is() -> None:
    assert DamagedCluster("a@7: corrupt", "corrupt").reason == "corrupt"
    assert DamagedCluster("a@7: corrupt").reason == str(DamagedCluster("a@7: corrupt")) == "a@7: corrupt"


@pytest.mark.parametrize("page", [16, 64, 4096])
def test_the_last_block_is_checked_only_where_a_search_reaches_it(page: int) -> None:
    index = Reads(b"".join(rows([b"a", b"b", b"c", b"d"])), page).index
    seen: list[bytes] = []
    index.check_last = lambda last: seen.append(last.block.key)
    blocks = index.blocks(b"a")
    assert [next(blocks).key for _ in range(4)] == [b"a", b"b", b"c", b"d"]
    assert seen == []
    assert list(blocks) == []
    assert seen == [b"d"]
    assert list(Reads(b"", page).index.blocks(b"a")) == []


@pytest.mark.parametrize("page", [16, 64, 4096])
def test_damage_is_found_where_it_is_read(page: int) -> None:
    whole = rows([b"a", b"b", b"c", b"d"])
    for data, reason in (
        (b"".join(whole)[:-1], "the index is truncated: its last line has no line end"),
        (b"".join([*whole[:2], whole[0], whole[3]]), "not sorted|out of order"),
        (
            b"".join([*whole[:2], b"garbage\n", whole[3]]),
            "not sorted|out of order|not a line of a ZipNum index",
        ),
        (b"".join([*whole[:2], whole[3]]), "but the block before ends at 20"),
    ):
        with pytest.raises(DamagedCluster, match=reason):
            list(Reads(data, page).index.blocks(b""))


def test_lines_of_a_page_that_are_not_sorted_are_no_answer() -> None:
    """A search in them would miss some."""
    lines = rows([b"a", b"c", b"b", b"d"])
    with pytest.raises(DamagedCluster, match="the index is not sorted after b'a'"):
        list(Reads(b"".join(lines), 4096).index.lines(b"b"))


@pytest.mark.parametrize(("low", "first", "wrong"), [(b"99999", 300, b"00000"), (b"00001", 100, b"99999")])
def test_pages_that_are_not_sorted_are_found_by_a_search_that_sees_them(
    low: bytes, first: int, wrong: bytes
) -> None:
    keys = [b"%05d" % number for number in range(400)]
    keys[first - 20 : first + 20] = [wrong] * 40
    index = Reads(b"".join(rows(keys)), 256).index
    with pytest.raises(
        DamagedCluster, match=rf"the index is not sorted: b'{wrong.decode()}' is out of order"
    ):
        next(index.lines(low))


def test_an_index_that_becomes_shorter_is_damaged() -> None:
    reads = Reads(b"".join(rows([b"%05d" % number for number in range(400)])), 512)
    lines = reads.index.lines(b"")
    next(lines)
    reads.data = reads.data[:1000]
    with pytest.raises(DamagedCluster, match="it became shorter while cdxmill read it"):
        list(lines)


@pytest.mark.parametrize("swapped", [(0, 3999), (3998, 3999), (0, 1)])
def test_the_order_of_the_first_line_and_the_last_page_is_checked_with_few_reads(
    swapped: tuple[int, int],
) -> None:
    lines = rows([b"%05d" % number for number in range(4000)])
    first, second = swapped
    lines[first], lines[second] = lines[second], lines[first]
    reads = Reads(b"".join(lines), 512)
    if swapped == (0, 1):
        reads.index.check_ends()
    else:
        with pytest.raises(DamagedCluster, match="the index is not sorted"):
            reads.index.check_ends()
    assert len(reads.offsets) <= 3
