"""What is wrong with the blocks of a shard: each fault with its block and offset, and exact limits."""

from __future__ import annotations

import gzip
import hashlib
from itertools import accumulate

import pytest

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.zipnum import BlockRef, format_part_line, key_of
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.window import CHUNK
from cdxmill.stages.zipnum import check_shard as module
from cdxmill.stages.zipnum.check_shard import (
    BlockRule,
    CheckedBlock,
    CheckedShard,
    Fault,
    ShardBlock,
    check_shard,
    read_blocks,
    read_texts,
)

Blocks = list[list[bytes]]
SMALL: Blocks = [[b"a 1", b"b 1"], [b"c 1", b"d 1"], [b"e 1"]]


def members(blocks: Blocks, section_lines: int = 0) -> list[bytes]:
    compressor = Compressor("zlib", 6, section_lines)
    return [compressor.compress_block(len(lines), text_of(lines), key_of(lines[0])) for lines in blocks]


def lengths_of(data: list[bytes]) -> dict[int, int]:
    starts = [0, *accumulate(map(len, data))]
    return dict(zip(starts, map(len, data), strict=False))


def checked(
    data: list[bytes],
    rule: BlockRule = BlockRule(),  # noqa: B008
    lengths: dict[int, int] | None = None,
) -> CheckedShard:
    whole = b"".join(data)
    lengths = lengths_of(data) if lengths is None else lengths

    def read_at(offset: int, size: int) -> bytes:
        assert size <= 64 << 20  # whatever the index says
        return whole[offset : offset + size]

    return check_shard(read_at, "cdx-00007.gz", lengths, rule)


def told(shard: CheckedShard, data: list[bytes]) -> list[str]:
    """The faults. Each is at the start of its block."""
    starts = [0, *accumulate(map(len, data))]
    for fault in shard.faults:
        assert fault.offset == starts[int(fault.reason.split(":")[0].removeprefix("block ")) - 1]
    return [fault.reason for fault in shard.faults]


@pytest.mark.parametrize("lengths", [None, {}, {0: 5, 3: 9}, {0: 10**12}])
def test_the_contents_of_a_valid_shard_do_not_depend_on_the_index(lengths: dict[int, int] | None) -> None:
    data = members(SMALL)
    whole = b"".join(data)
    starts = [0, *accumulate(map(len, data))]
    refs = [
        BlockRef(key_of(lines[0]), b"cdx-00007.gz", start, len(block))
        for lines, start, block in zip(SMALL, starts, data, strict=False)
    ]
    assert checked(data, BlockRule(2), lengths) == CheckedShard(
        faults=[],
        size=len(whole),
        lines=5,
        blocks=3,
        sha256=hashlib.sha256(whole).hexdigest(),
        part=b"".join(map(format_part_line, refs)),
        block_lines=2,
        last_lines=1,
        first=b"a 1",
        last=b"e 1",
    )


def test_a_shard_without_lines_is_one_empty_member() -> None:
    empty = gzip.compress(b"", mtime=0)
    found = checked([empty])
    assert (found.faults, found.size, found.lines, found.blocks) == ([], len(empty), 0, 0)
    assert (found.block_lines, found.last_lines, found.first, found.last, found.part) == (0, 0, b"", b"", b"")
    assert told(checked([empty, empty]), [empty, empty]) == ["block 1: has no lines", "block 2: has no lines"]
    data = [*members(SMALL[:1]), empty]
    assert told(checked(data), data) == ["block 2: has no lines"]
    data = [empty, *members(SMALL[:1])]
    assert told(checked(data), data) == ["block 1: has no lines"]
    assert checked([]).size == 0


FOUR = [[b"%b %d" % (letter, number) for number in range(4)] for letter in (b"a", b"b", b"c")]


@pytest.mark.parametrize(
    ("sizes", "rule", "faults"),
    [
        ((4, 4, 4), BlockRule(), []),
        ((4, 4, 3), BlockRule(), []),
        ((3, 3, 4), BlockRule(), ["block 3: has 4 lines, expected at most 3"]),
        ((4, 3, 4), BlockRule(), ["block 2: has 3 lines, expected 4"]),
        ((3, 4, 1), BlockRule(), ["block 2: has 4 lines, expected 3"]),
        ((4, 4, 4), BlockRule(4), []),
        ((4, 4, 1), BlockRule(4), []),
        ((4, 4, 4), BlockRule(5), ["block 1: has 4 lines, expected 5", "block 2: has 4 lines, expected 5"]),
        (
            (4, 2, 3),
            BlockRule(2),
            ["block 1: has 4 lines, expected 2", "block 3: has 3 lines, expected at most 2"],
        ),
        ((4, 3, 2), BlockRule(4, even=False), []),
        ((1, 4, 4), BlockRule(4, even=False), []),
        (
            (4, 3, 4),
            BlockRule(3, even=False),
            ["block 1: has 4 lines, expected at most 3", "block 3: has 4 lines, expected at most 3"],
        ),
        ((1, 4, 2), BlockRule(None, even=False), []),
    ],
)
def test_blocks_have_as_many_lines_as_the_rule_says(
    sizes: tuple[int, ...], rule: BlockRule, faults: list[str]
) -> None:
    blocks = [lines[:size] for lines, size in zip(FOUR, sizes, strict=True)]
    data = members(blocks)
    found = checked(data, rule)
    assert told(found, data) == faults
    assert (found.block_lines, found.last_lines, found.lines) == (sizes[0], sizes[-1], sum(sizes))


@pytest.mark.parametrize("size", [3, 4])
def test_one_block_alone_has_any_number_of_lines_up_to_the_rule(size: int) -> None:
    data = members([FOUR[0]])
    found = checked(data, BlockRule(size))
    assert told(found, data) == (["block 1: has 4 lines, expected at most 3"] if size == 3 else [])
    assert (found.block_lines, found.last_lines) == (0, 4)


@pytest.mark.parametrize(
    ("blocks", "faults"),
    [
        ([[b"a", b"b"], [b"b!", b"c"]], []),
        ([[b"a", b"b"], [b"b", b"c"]], ["block 2: line 1 repeats the previous line, b'b'"]),
        ([[b"a", b"c"], [b"b", b"c"]], ["block 2: line 1 is out of order: b'b' after b'c'"]),
        ([[b"a", b"c", b"b"]], ["block 1: line 3 is out of order: b'b' after b'c'"]),
        ([[b"a", b"a", b"b"]], ["block 1: line 2 repeats the previous line, b'a'"]),
        ([[b"", b"a"]], ["block 1: line 1 is empty"]),
        ([[b"a"], [b"", b"b"]], ["block 2: line 1 is empty"]),
        ([[b"b", b"a"], [b"a"]], ["block 1: line 2 is out of order: b'a' after b'b'", "block 2: line 1 repeats the previous line, b'a'"]),
        ([[b"x" * 99, b"x" * 81]], [f"block 1: line 2 is out of order: {b'x' * 80!r} after {b'x' * 80!r}"]),
        ([[b"x" * 99, b"x" * 99]], [f"block 1: line 2 repeats the previous line, {b'x' * 80!r}"]),
    ],
)  # fmt: skip
def test_lines_are_sorted_and_distinct(blocks: Blocks, faults: list[str]) -> None:
    data = [gzip.compress(text_of(lines), mtime=0) for lines in blocks]
    assert told(checked(data, BlockRule(None, even=False)), data) == faults


@pytest.mark.parametrize(
    ("section_lines", "wanted", "faults"),
    [
        (2, 2, []),
        (0, 0, []),
        (2, 0, []),
        (0, 2, ["block 1: has 1 section, expected 2"]),
        (2, 1, ["block 1: has 2 sections, expected 4"]),
        (2, 4, ["block 1: has 2 sections, expected 1"]),
    ],
)
def test_blocks_have_the_sections_of_their_compressor(
    section_lines: int, wanted: int, faults: list[str]
) -> None:
    data = members(FOUR[:1], section_lines)
    assert told(checked(data, BlockRule(None, wanted)), data) == faults


def test_after_a_corrupt_block_the_index_says_where_the_next_one_is() -> None:
    data = members([lines[:] for lines in FOUR])
    bad = [data[0], data[1][:-8] + bytes(8), data[2]]
    whole = b"".join(bad)
    at = [0, len(data[0]), len(data[0]) + len(data[1])]
    found = list(read_blocks(lambda pos, size: whole[pos : pos + size], lengths_of(bad)))
    assert [type(one) for one in found] == [CheckedBlock, Fault, CheckedBlock]
    assert found[0] == CheckedBlock(1, 0, len(data[0]), FOUR[0], [0])
    assert isinstance(found[1], Fault)
    assert found[1].offset == at[1]
    assert found[1].reason.startswith("block 2: ")
    assert found[2] == CheckedBlock(3, at[2], len(data[2]), FOUR[2], [0])
    for lengths in ({}, {0: 1}, {0: len(data[0]), at[1]: len(data[1])}):
        found = list(read_blocks(lambda pos, size: whole[pos : pos + size], lengths))
        assert [type(one) for one in found] == [CheckedBlock, Fault]


def test_a_last_line_without_a_line_end_is_a_fault() -> None:
    data = [gzip.compress(b"a 1\nb 1", mtime=0), gzip.compress(b"c 1\n", mtime=0)]
    found = checked(data)
    assert told(found, data) == ["block 1: its last line has no line end"]
    assert (found.lines, found.first) == (1, b"c 1")


@pytest.mark.parametrize("check_sections", [True, False])
def test_sections_are_checked_only_if_they_are_asked_for(check_sections: bool) -> None:
    data = b"".join(members(FOUR, 2))
    found = list(read_texts(lambda at, size: data[at : at + size], {}, CHUNK, check_sections))
    assert [len(one.sections) for one in found if isinstance(one, ShardBlock)] == (
        [2, 2, 2] if check_sections else [1, 1, 1]
    )
    assert [one.text for one in found if isinstance(one, ShardBlock)] == list(map(text_of, FOUR))


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_block_without_sections_is_one_from_its_start(
    quick: bool, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not quick:
        monkeypatch.setattr(module, "_QUICK_CONTENT", 10)
    data = members(FOUR)
    whole = b"".join(data)
    lengths = lengths_of(data) if known else {}
    found = list(read_blocks(lambda at, size: whole[at : at + size], lengths))
    starts = [0, *accumulate(map(len, data))]
    assert found == [
        CheckedBlock(number, starts[number - 1], len(data[number - 1]), lines, [0])
        for number, lines in enumerate(FOUR, 1)
    ]


def test_a_block_that_is_not_read_the_quick_way_has_a_largest_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUICK_CONTENT", 10)
    data = members(FOUR)
    size = len(text_of(FOUR[0]))
    assert told(checked(data), data) == []
    monkeypatch.setattr(module, "MAX_BLOCK", size)
    assert told(checked(data), data) == []
    monkeypatch.setattr(module, "MAX_BLOCK", size - 1)
    assert told(checked(data), data) == [
        f"block {number}: it has more than 0 GiB, which readers refuse" for number in (1, 2, 3)
    ]
