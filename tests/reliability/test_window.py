"""The window returns the bytes of the file, for any order of requests."""

from __future__ import annotations

import random
import re

from cdxmill.stages.window import OVERLAP, Window


def window_of(data: bytes, chunk: int) -> Window:
    return Window(lambda offset, size: data[offset : offset + size], chunk)


def test_ranges_in_any_order_are_those_of_the_file() -> None:
    rng = random.Random(3)
    for _ in range(300):
        data = rng.randbytes(rng.choice((0, 1, 100, 1000, 4096)))
        window = window_of(data, rng.choice((1, 7, 100, 1024)))
        for _ in range(30):
            offset, size = rng.randrange(5000), rng.randrange(1, 300)
            look = rng.choice((window.get, window.peek))
            assert look(offset, size) == data[offset : offset + size]


def test_a_peek_does_not_move_the_view() -> None:
    reads: list[int] = []

    def read_at(offset: int, size: int) -> bytes:
        reads.append(offset)
        return bytes(10_000)[offset : offset + size]

    window = Window(read_at, 100)
    window.get(0, 10)
    window.peek(9000, 10)
    window.get(50, 10)
    assert reads == [0, 9000]


def test_the_end_is_found_after_any_requests() -> None:
    for size in (0, 1, 99, 100, 101, 200, 300, 6399, 6400, 6401):
        for before in ((), (0,), (size // 2,), (size + 5,)):
            window = window_of(bytes(size), 100)
            for offset in before:
                window.get(offset, 10)
            assert window.end() == size


def test_offsets_can_be_far_behind_the_end() -> None:
    window = Window(lambda offset, size: memoryview(bytes(10))[offset : offset + size].tobytes(), 100)
    assert window.get(10**30, 5) == window.peek(10**30, 5) == b""


def test_a_search_finds_a_match_across_two_reads() -> None:
    pattern = re.compile(rb"(?<=\n)start.{%d}end" % (OVERLAP - 100), re.S)
    match = b"\nstart" + bytes(OVERLAP - 100) + b"end"
    for before in range(0, 5 * OVERLAP, OVERLAP // 3):
        data = b"x" * before + match + b"x" * 1000
        assert window_of(data, 2 * OVERLAP).search(pattern, 0) == before + 1
        assert window_of(data, 2 * OVERLAP).search(pattern, before + 1) == before + 1
        assert window_of(data, 2 * OVERLAP).search(pattern, before + 2) == -1


def test_the_file_s_end_is_read_once() -> None:
    """Near the end of a file each request copied the rest of the buffer and read again without result."""
    reads = 0
    data = bytes(1000)

    def read_at(offset: int, size: int) -> bytes:
        nonlocal reads
        reads += 1
        return data[offset : offset + size]

    window = Window(read_at, 100_000)
    for offset in range(1000):
        window.at(offset, 5000)
    assert reads == 1
