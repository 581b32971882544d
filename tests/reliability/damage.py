"""Random damage to the bytes of a file, and which ranges it does not change."""

from __future__ import annotations

import random
from typing import NamedTuple


class Damaged(NamedTuple):
    """A file after damage: `size` new bytes replace the bytes [begin, end) of the old file."""

    data: bytes
    begin: int
    end: int
    size: int
    what: str

    def new_offset(self, begin: int, end: int) -> int | None:
        """The new offset of the old range [begin, end); None if the damage is inside it or touches it."""
        if end < self.begin:
            return begin
        if begin > self.end:
            return begin + self.size - (self.end - self.begin)
        return None


def cut(data: bytes, at: int) -> Damaged:
    """The file is truncated at `at`."""
    return Damaged(data[:at], at, len(data), 0, f"cut at {at}")


def flip(data: bytes, bit: int) -> Damaged:
    """One bit is flipped."""
    at, changed = bit // 8, bytearray(data)
    changed[at] ^= 1 << bit % 8
    return Damaged(bytes(changed), at, at + 1, 1, f"bit {bit % 8} of {at} flipped")


def replaced(data: bytes, begin: int, end: int, new: bytes, what: str) -> Damaged:
    """The bytes [begin, end) are replaced."""
    return Damaged(data[:begin] + new + data[end:], begin, end, len(new), f"{what} at {begin}-{end}")


def at_random(data: bytes, rng: random.Random, edges: list[int]) -> Damaged:
    """A range deleted, inserted, duplicated, overwritten or zeroed; often one that starts or ends at one of `edges`."""
    begin, end = sorted(_offset(data, rng, edges) for _ in range(2))
    kind = rng.randrange(6)
    if kind == 0:
        return replaced(data, begin, end, b"", "deletion")
    if kind == 1:
        return replaced(data, begin, begin, rng.randbytes(rng.choice((1, 4, 50, 3000))), "insertion")
    if kind == 2:
        return replaced(data, end, end, data[begin:end], f"copy of {begin}-{end}")
    if kind == 3:
        at = _offset(data, rng, edges)
        return replaced(data, at, at, data[begin:end], f"copy of {begin}-{end}")
    end = min(end, begin + rng.choice((1, 8, 100, 5000)))
    if kind == 4:
        return replaced(data, begin, end, bytes(end - begin), "zeros")
    return replaced(data, begin, end, rng.randbytes(end - begin), "overwriting")


def _offset(data: bytes, rng: random.Random, edges: list[int]) -> int:
    edge = rng.choice(edges)
    near = [edge, edge - rng.randrange(40), edge + rng.randrange(40)]
    return max(0, min(len(data), rng.choice([*near, rng.randrange(len(data)), rng.randrange(len(data))])))
