"""Blocks that are read before they are asked for: exactly their bytes, a few reads at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.search.many import READS, ReadAhead

SHARDS = {b"a": bytes(range(256)) * 4, b"b": bytes(range(255, -1, -1)) * 4}


def block(shard: bytes, offset: int, length: int) -> BlockRef:
    return BlockRef(b"", shard, offset, length)


class Reads:
    """Reads of shards in memory, done at once. `asked` has their ranges, `direct` those that nobody has read ahead."""

    def __init__(self, runs: list[list[BlockRef]]) -> None:
        self.asked: list[tuple[bytes, int, int]] = []
        self.begun = 0
        self.ahead = ReadAhead(iter(runs), self.read, self.submit)

    def read(self, shard: bytes, offset: int, size: int) -> bytes:
        self.asked.append((shard, offset, size))
        return SHARDS[shard][offset : offset + size]

    def submit(self, read: Callable[..., bytes], *args: object) -> Future[bytes]:
        done: Future[bytes] = Future()
        done.set_result(read(*args))
        self.begun += 1
        return done

    def check(self, shard: bytes, offset: int, size: int) -> None:
        assert self.ahead.read(shard, offset, size) == SHARDS[shard][offset : offset + size]


def test_a_run_is_read_from_its_first_block_to_the_end_of_its_last() -> None:
    reads = Reads([[block(b"a", 100, 10), block(b"a", 110, 30), block(b"a", 150, 5)], [block(b"b", 7, 3)]])
    for place in (
        (b"a", 100, 10),
        (b"a", 110, 30),
        (b"a", 150, 5),
        (b"a", 100, 55),
        (b"b", 7, 3),
        (b"b", 9, 1),
    ):
        reads.check(*place)
    assert reads.asked == [(b"a", 100, 55), (b"b", 7, 3)]


@pytest.mark.parametrize("place", [(b"a", 99, 2), (b"a", 109, 2), (b"b", 100, 10), (b"a", 0, 1)])
def test_what_no_run_has_is_read_directly(place: tuple[bytes, int, int]) -> None:
    reads = Reads([[block(b"a", 100, 10)], [block(b"b", 0, 3)]])
    reads.check(*place)
    assert reads.asked[-1] == place
    reads.check(b"a", 100, 10)
    reads.check(*place)
    assert reads.asked.count(place) == 2


def test_some_runs_are_begun_at_a_time_and_left_out_ones_are_passed() -> None:
    reads = Reads([[block(b"a", 10 * number, 10)] for number in range(3 * READS)])
    reads.check(b"a", 0, 10)
    assert reads.begun == READS
    reads.check(b"a", 30, 10)
    reads.check(b"a", 0, 10)
    assert reads.asked[-1] == (b"a", 0, 10), "it is over"
    reads.check(b"a", 10 * READS, 10)
    assert reads.begun <= 3 * READS
    assert len(reads.asked) == reads.begun + 1
