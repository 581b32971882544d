"""The secondary index of a ZipNum cluster -> its lines for each shard, and its faults.

Whether its lines match the blocks can only be checked with the shards.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import NamedTuple

from cdxmill.formats.clusters.zipnum import parse_index_line
from cdxmill.stages.lines.line_lists import split_lines
from cdxmill.stages.zipnum.check_shard import Fault

MOST_FAULTS = 20
"""Faults reported per file. Nobody reads more."""


class ShardLines(NamedTuple):
    """The lines of an index for one shard: their byte range, and the number of the first line."""

    start: int
    end: int
    number: int


class IndexReport(NamedTuple):
    """The lines of each shard by its name, in order, and the faults of the index.

    `numbered` if its lines have a fifth column with their number.
    """

    shards: dict[str, ShardLines]
    numbered: bool
    faults: list[Fault]


def scan_index(pieces: Iterable[bytes]) -> IndexReport:
    """Read an index given in `pieces`. Memory: one piece, and a little per shard."""
    scan = _IndexScan()
    for lines in split_lines(_watched(pieces, scan)):
        for line in lines:
            scan.take(line)
    if scan.last_byte not in (b"\n", b""):
        scan.report("the last line is truncated")
    is_numbered = 2 * scan.numbered > scan.lines
    if is_numbered:
        scan.faults += scan.misnumbered
    return IndexReport(scan.shards, is_numbered, scan.faults)


def _watched(pieces: Iterable[bytes], scan: _IndexScan) -> Iterable[bytes]:
    for piece in pieces:
        scan.last_byte = piece[-1:]
        yield piece


class _IndexScan:
    def __init__(self) -> None:
        self.shards: dict[str, ShardLines] = {}
        self.faults: list[Fault] = []
        self.misnumbered: list[Fault] = []
        self.lines = self.numbered = 0
        self.last_byte = b""
        self._pos = 0
        self._shard: bytes | None = None
        self._name = ""
        self._last = b""

    def take(self, line: bytes) -> None:
        """Take the next line, without its line end."""
        start, self._pos = self._pos, self._pos + len(line) + 1
        self.lines += 1
        try:
            block = parse_index_line(line)
        except ValueError:
            self.report(f"line {self.lines} is not an index line: {line[:80]!r}", start)
            return
        if line.endswith(b"\t%d" % self.lines) and line.count(b"\t") == 4:
            self.numbered += 1
        elif len(self.misnumbered) < MOST_FAULTS:
            self.misnumbered.append(Fault(start, f"line {self.lines} has the wrong number: {line[-20:]!r}"))
        if block.key < self._last:
            self.report(f"line {self.lines} is out of order: {block.key[:80]!r}", start)
        self._last = block.key
        if block.shard != self._shard:
            self._begin(block.shard, start)
        self.shards[self._name] = self.shards[self._name]._replace(end=self._pos)

    def _begin(self, shard: bytes, start: int) -> None:
        self._shard, self._name = shard, shard.decode("utf-8", "surrogateescape")
        if self._name in self.shards:
            self.report(f"line {self.lines}: the lines of {self._name} are not consecutive", start)
        else:
            self.shards[self._name] = ShardLines(start, start, self.lines)

    def report(self, reason: str, offset: int | None = None) -> None:
        """Add a fault, up to the limit."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(offset, reason))


def numbered(part: bytes, number: int) -> bytes:
    """The lines of a part as an index has them, numbered from `number`.

    >>> numbered(b"a 1\\tcdx-00000.gz\\t0\\t9\\n", 7)
    b'a 1\\tcdx-00000.gz\\t0\\t9\\t7\\n'
    """
    return b"".join(b"%b\t%d\n" % (line, count) for count, line in enumerate(part.split(b"\n")[:-1], number))


class WrongLine(NamedTuple):
    """A line of an index and the line expected there; empty if there is none. Number 0: only the end is wrong."""

    number: int
    found: bytes
    wanted: bytes


def wrong_line(text: bytes, wanted: bytes, strict: bool) -> WrongLine | None:
    """The first line of an index that is not the wanted one.

    Lines are equal if they name the same block or, if `strict`, if all their bytes are equal.
    """
    if text == wanted:
        return None
    lines = zip_longest(text.split(b"\n"), wanted.split(b"\n"), fillvalue=b"")
    for number, (have, want) in enumerate(lines, 1):
        if have != want and (strict or not _name_one_block(have, want)):
            return WrongLine(number, have, want)
    return None if text.count(b"\n") == wanted.count(b"\n") else WrongLine(0, b"", b"")


def _name_one_block(have: bytes, want: bytes) -> bool:
    try:
        return parse_index_line(have) == parse_index_line(want)
    except ValueError:
        return False
