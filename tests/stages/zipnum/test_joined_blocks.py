"""Which blocks are read together: neighbors of one shard, up to a size, and few at first where few may be needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdxmill.formats.clusters.zipnum import BEYOND, MAX_BLOCK, BlockRef
from cdxmill.stages.zipnum.block_pieces import JOINED, check_length
from cdxmill.stages.zipnum.find_lines import joined
from cdxmill.stages.zipnum.kept_keys import key_digests, may_have, plain_key
from cdxmill.stages.zipnum.secondary_index import BlockSequence, DamagedCluster


def neighbors(lengths: list[int], shard: bytes = b"a") -> Iterator[BlockRef]:
    offset = 0
    for number, length in enumerate(lengths):
        yield BlockRef(b"%03d" % number, shard, offset, length)
        offset += length


def sizes(blocks: Iterator[BlockRef], few: bool = False) -> list[int]:
    return [len(run) for run in joined(blocks, few)]


def test_few_blocks_are_read_at_first_and_twice_as_many_each_time() -> None:
    assert sizes(neighbors([10] * 20), few=True) == [2, 4, 8, 6]
    assert sizes(neighbors([10] * 20)) == [20]
    assert sizes(neighbors([])) == []


@pytest.mark.parametrize(
    ("lengths", "runs"),
    [
        ([JOINED // 2, JOINED // 2, 1], [2, 1]),
        ([JOINED // 2, JOINED // 2 + 1, 1], [1, 2]),
        ([JOINED + 1, 1, 1], [1, 2]),
        ([JOINED, 1], [1, 1]),
    ],
)
def test_blocks_that_are_read_together_have_a_largest_size(lengths: list[int], runs: list[int]) -> None:
    assert sizes(neighbors(lengths)) == runs


def test_only_neighbors_of_one_shard_are_read_together() -> None:
    first, second, third = neighbors([10, 10, 10])
    assert sizes(iter([first, third])) == [1, 1]
    assert sizes(iter([second, first])) == [1, 1]
    assert sizes(iter([first, second._replace(shard=b"b")])) == [1, 1]
    assert sizes(iter([first, second, third])) == [3]


def test_a_block_has_a_largest_length() -> None:
    check_length(BlockRef(b"k", b"a", 0, MAX_BLOCK))
    with pytest.raises(DamagedCluster, match=r"a@7: the block is corrupt \(1073741825 bytes are too many"):
        check_length(BlockRef(b"k", b"a", 7, MAX_BLOCK + 1))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"b 1\tc\t15\t5\t4", None),
        (b"a 1\tc\t15\t5\t4", None),
        (b"b 1\td\t0\t5\t4", None),
        (b"b 1\td\t7\t5\t4", None),
        (b"a 0\tc\t15\t5\t4", "out of order: b'a 0' comes after b'a 1'"),
        (b"b 1\tc\t15\t5\t5", "has the number 5, expected 4"),
        (b"b 1\tc\t15\t5", "has the number None, expected 4"),
        (b"b 1\tc\t16\t5\t4", "is at 16 of its shard, but the block before ends at 15"),
        (b"b 1\tc\t10\t5\t4", "is at 10 of its shard, but the block before ends at 15"),
        (b"garbage", "not a line of a ZipNum index"),
    ],
)
def test_a_line_of_an_index_follows_the_one_before_it(line: bytes, reason: str | None) -> None:
    sequence = BlockSequence()
    assert sequence.take(b"a 1\tc\t10\t5\t3") == (b"a 1", b"c", 10, 5)
    if reason is None:
        sequence.take(line)
        assert sequence.last is not None
        assert sequence.last.number == 4
        return
    with pytest.raises(ValueError, match=reason):
        sequence.take(line)


def test_an_index_without_numbers_has_only_the_order_of_its_blocks() -> None:
    sequence = BlockSequence()
    for line in (b"a\tc\t0\t5", b"a\tc\t5\t5\t7", b"b\td\t0\t1\t8"):
        sequence.take(line)
    with pytest.raises(ValueError, match="has the number None"):
        sequence.take(b"c\td\t1\t1")


@pytest.mark.parametrize(
    ("low", "high", "key"),
    [
        (b"com,a)/", b"com,a)/!", b"com,a)/"),
        (b"com,a)/ 2020", b"com,a)/ 2021", b"com,a)/"),
        (b"com,a)/", b"com,b", None),
        (b"", BEYOND, None),
        (b"com,\x07", b"com,\x07!", None),
        (b"com,\n", b"com,\n!", None),
        (b"com,\x21", b"com,\x21!", b"com,!"),
    ],
)
def test_only_a_key_without_control_characters_is_told_from_others(
    low: bytes, high: bytes, key: bytes | None
) -> None:
    assert plain_key(low, high) == key


def test_digests_have_the_keys_of_all_lines() -> None:
    keys = [b"com,%d)/" % number for number in range(200)]
    digests = key_digests(b"".join(b"%b 2020 {}\n" % key for key in keys for _ in range(2)))
    assert digests is not None
    assert len(digests) == 4 * (len(keys) + 1)  # and that of the empty text after the last line end
    assert all(may_have(digests, key) for key in keys)
    assert not any(may_have(digests, key + b"x") for key in keys)
    assert not may_have(b"", b"a")
    for byte in (0, 9, 11, 31):
        assert key_digests(b"com,%c)/ 2020 {}\n" % byte) is None
    assert key_digests(b"a\x7f\xff b\n") is not None
