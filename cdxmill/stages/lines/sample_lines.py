"""A uniform sample of lines: the `size` lines of least priority (bottom-k sampling).

The priority of a line depends on the seed, the text of its file and its position there, and on nothing else. So the sample is
the same however the files are divided among tasks, and whatever their names are: on one machine, on Hadoop and on Spark.

    band 0      priorities from 1/2 to 1    every window of the text has lines for it
    band 1      from 1/4 to 1/2             a third of the windows
    ...
    band 16     below 2**-16                one window of 65536

A window of the text, of WINDOW bytes, is in the last band that draws it. Each band draws the distances between its windows,
so windows of bands that have become too high are not looked at: of a billion lines, a few hundred thousand are.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from hashlib import shake_128
from struct import Struct

from cdxmill.formats.clusters.zipnum import key_of
from cdxmill.stages.lines.line_lists import Piece, is_capture_line

Sample = list[tuple[float, bytes]]
"""(priority, `<urlkey> <timestamp>`) of lines."""

WINDOW = 128
"""Bytes of text that are searched or skipped at once. CDX lines are longer, so mostly one line begins there, or none."""
_LAST = 16
"""The number of the last band. Of 10 billion lines it has 150,000."""
_HEAD = 4096
"""Bytes at the start of a text that tell it from others: that of a CDX file has the offsets of its first captures."""
_DRAWS = Struct(f">{2 + _LAST}Q")
"""The seed of a text, and the first number that each band draws. Small files need no more, so one hash makes all of them."""
_MASK, _STEP = (1 << 64) - 1, 0x9E3779B97F4A7C15
_FLOOR = [0.5 ** (band + 1) for band in range(_LAST)] + [0.0]
"""The lowest priority of each band."""
_CHANCE = [floor / (1 - floor) for floor in _FLOOR[:-1]] + [0.5**_LAST]
"""The part of the windows that a band draws: of those that no later band has, the right part is in it."""
_LOG_PASSED = [math.log1p(-chance) if chance < 1 else -math.inf for chance in _CHANCE]


class Reservoir:
    """Keeps `size` of the lines that pass: those of least priority.

    Lines whose priority is not below `ceiling` are skipped. That saves time if several reservoirs will be merged, and far
    more lines pass than are kept.
    """

    def __init__(self, size: int, seed: str, ceiling: float = 1.0) -> None:
        self.size, self.seed, self.ceiling = size, seed, ceiling
        self._kept: Sample = []
        self._new: Sample = []  # of the present input
        self._before = ceiling

    def begin(self) -> None:
        """Mark the start of an input."""
        self._kept += self._new
        self._new = []
        if len(self._kept) > 2 * self.size:
            self._kept, self.ceiling = self._least(self._kept)
        self._before = self.ceiling

    def undo(self) -> None:
        """Forget all lines since `begin`."""
        self._new, self.ceiling = [], self._before

    def add(self, priority: float, key: bytes) -> None:
        """Keep the key of a line, until `size` lines with lower priorities are known."""
        self._new.append((priority, key))
        if len(self._new) > 2 * self.size:
            self._new, self.ceiling = self._least(self._new)

    def _least(self, found: Sample) -> tuple[Sample, float]:
        """The `size` entries of least priority, and the ceiling for what follows."""
        found = sorted(found)[: self.size]
        return found, min(self.ceiling, found[-1][0]) if found else 0.0

    def sample(self) -> Sample:
        """What was kept, in order of priority."""
        return sorted(self._kept + self._new)[: self.size]


class TextSampler:
    """Lets all lines of a text pass a reservoir; the text comes in pieces that are cut anywhere."""

    def __init__(self, reservoir: Reservoir) -> None:
        self._reservoir = reservoir
        self._head: bytearray | None = bytearray()
        """The text until there is enough of it to know its seed."""
        self._seed = 0
        self._next: list[tuple[int, int]] = []
        """The next window of each band: a heap of window and minus the band, so that the last band comes first."""
        self._states: dict[int, int] = {}
        self._position = 0
        """That of what has begun."""
        self._begun: list[bytes | bytearray] = [b"\n"]
        """The line end before a line, and what has come of the line."""

    def add(self, piece: bytes | bytearray) -> None:
        """The next piece of the text."""
        if not self._reservoir.size:
            return
        if self._head is not None:
            self._head += piece
            if len(self._head) < _HEAD:
                return
            piece = self._start(self._head)
        first, last = piece.find(b"\n"), piece.rfind(b"\n")
        if first < 0:
            self._begun.append(piece)
            return
        line = b"".join((*self._begun, piece[: first + 1]))
        self._pass(line, 0, len(line) - 1)
        self._pass(piece, first, last)
        self._begun = [piece[last:]]

    def end(self) -> None:
        """The text is complete: its last line may have no LF."""
        if self._head:
            self._head += b"\n" * (not self._head.endswith(b"\n"))
            piece = self._start(self._head)
            text = b"\n" + piece
            self._pass(text, 0, len(text) - 1)
            return
        line = b"".join(self._begun)
        if len(line) > 1:
            self._pass(line + b"\n", 0, len(line))

    def _start(self, piece: bytearray) -> bytearray:
        """Begin to draw windows; returns the text so far."""
        self._head = None
        hashed = shake_128(self._reservoir.seed.encode() + b"\0" + piece[:_HEAD])
        self._seed, *draws = _DRAWS.unpack(hashed.digest(_DRAWS.size))
        for band, floor in enumerate(_FLOOR):
            if floor < self._reservoir.ceiling:
                self._states[band] = draws[band]
                self._next.append((_distance(draws[band], band), -band))
        heapq.heapify(self._next)
        return piece

    def _skip(self, band: int) -> int:
        """Draw the number of windows before the next one of a band."""
        state = self._states[band] = (self._states[band] + _STEP) & _MASK
        return _distance(_mixed(state), band)

    def _pass(self, text: bytes | bytearray, start: int, end: int) -> None:
        """Let the lines pass that begin after a line end in `text[start:end]`. A line is in the window of that line end.

        Requires: a line end in `text[end:]`.
        """
        shift = start - self._position  # from a position in the whole text to one in this text
        self._position += end - start
        while self._next:
            window, band = self._next[0][0], -self._next[0][1]
            low, high = window * WINDOW + shift, (window + 1) * WINDOW + shift
            if low >= end:
                break
            if _FLOOR[band] < self._reservoir.ceiling:
                self._search(text, max(low, start), min(high, end), band, shift)
            if high > end:  # the window continues in the next text
                break
            while (
                self._next and self._next[0][0] == window
            ):  # also that of bands before: a line is in one band
                self._advance()

    def _advance(self) -> None:
        """Draw the next window of the band that is first in the heap; a band that has become too high is dropped."""
        window, band = self._next[0][0], -self._next[0][1]
        if _FLOOR[band] < self._reservoir.ceiling:
            heapq.heapreplace(self._next, (window + 1 + self._skip(band), -band))
        else:
            heapq.heappop(self._next)

    def _search(self, text: bytes | bytearray, low: int, high: int, band: int, shift: int) -> None:
        find, reservoir, floor = text.find, self._reservoir, _FLOOR[band]
        width = floor or 0.5**_LAST
        at = find(b"\n", low, high)
        while at >= 0:
            line = bytes(text[at + 1 : find(b"\n", at + 1)])
            if is_capture_line(line):
                priority = floor + width * _fraction(_mixed(self._seed ^ ((at - shift) * _STEP)))
                if priority < reservoir.ceiling:
                    reservoir.add(priority, key_of(line))
            at = find(b"\n", at + 1, high)


def _mixed(number: int) -> int:
    """64 bits that look random: the function of splitmix64."""
    number &= _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def _fraction(number: int) -> float:
    """A number from 0 to below 1, of 64 bits."""
    return (number >> 11) * 2.0**-53


def _distance(number: int, band: int) -> int:
    """The windows before the next one of a band, from 64 random bits."""
    return int(math.log(1 - _fraction(number)) / _LOG_PASSED[band])


def sampled(pieces: Iterable[Piece], reservoir: Reservoir) -> Iterator[Piece]:
    """The pieces of a text, cut anywhere, whose lines pass `reservoir` then."""
    sampler = TextSampler(reservoir)
    for piece in pieces:
        sampler.add(piece)
        yield piece
    sampler.end()


def add_pieces(pieces: Iterable[bytes | bytearray], reservoir: Reservoir) -> None:
    """Let all lines of a text pass `reservoir`."""
    for _ in sampled(pieces, reservoir):
        pass


def merge_samples(samples: Iterable[Sample], size: int) -> Sample:
    """The `size` entries of least priority."""
    merged: Sample = []
    for sample in samples:
        merged += sample
        if len(merged) > size:
            merged = sorted(merged)[:size]
    return merged
