"""The secondary index of a cluster, searched by bisection over the pages of its file. It is never read whole.

The first key of each page that was read is remembered, so later searches read fewer pages.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Lock
from typing import NamedTuple

from cdxmill.formats.clusters.zipnum import BEYOND, BlockRef, NumberedBlock, parse_numbered_line
from cdxmill.stages.window import ReadAt


class BlockSequence:
    """Parses lines and compares each with the one before. `last` is the last line's block, None before the first."""

    def __init__(self) -> None:
        self.last: NumberedBlock | None = None

    def take(self, line: bytes) -> BlockRef:
        """The block of the next line.

        Raises ValueError if the line is corrupt or out of order, or if lines before it are missing: by the
        numbers of the lines, or by the byte ranges of the blocks of one shard.
        """
        found = parse_numbered_line(line)
        if self.last is not None:
            reason = _fault(self.last, found)
            if reason is not None:
                raise ValueError(reason)
        self.last = found
        return found.block


def _fault(last: NumberedBlock, found: NumberedBlock) -> str | None:
    (key, shard, offset, length), number = last
    block = found.block
    if block.key < key:
        return f"out of order: {block.key[:80]!r} comes after {key[:80]!r}"
    if number is not None and found.number != number + 1:
        return f"{block.key[:80]!r} has the number {found.number}, expected {number + 1}"
    if block.shard == shard and block.offset != offset + length:
        expected = offset + length
        return (
            f"{block.key[:80]!r} is at {block.offset} of its shard, but the block before ends at {expected}"
        )
    return None


LOCAL_PAGE = 1 << 12
"""Bytes. About 40 lines; a larger page takes longer to split, and a smaller one is not read faster."""
REMOTE_PAGE = 1 << 16
"""Bytes. A request for 64 KiB takes as long as one for less, and smaller pages need more requests."""
_REMEMBERED = 1 << 16
"""Pages whose first keys are remembered. They take about 10 MB."""
_HELD = 4 << 20
"""Bytes of pages whose lines are kept. In memory they take about three times as much."""


class DamagedCluster(ValueError):
    """A block or the index of a cluster is corrupt. `reason` does not name the block."""

    hint = "check it with cdxmill verify, or build the cluster again"

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason or text


class Start(NamedTuple):
    """The first line that begins in a page: its offset and key. Without one, the end of the file and `BEYOND`."""

    offset: int
    key: bytes


class _Page(NamedTuple):
    """The number of a page, and the offset of the first line that begins in it."""

    number: int
    offset: int


class _Head(NamedTuple):
    """Whole lines and their keys, the start of the next line, and the offset where reading stopped."""

    lines: list[bytes]
    keys: list[bytes]
    rest: bytes
    end: int


def _key(line: bytes) -> bytes:
    key = line[: line.find(b"\t")]
    return key.replace(b"\x08\2", b"\t").replace(b"\x08\1", b"\x08") if b"\x08" in key else key


class SecondaryIndex:
    """An index of `size` bytes. `read_at` reads one page at a time, `key` is the key of a line."""

    def __init__(
        self, read_at: ReadAt, size: int, page: int = LOCAL_PAGE, key: Callable[[bytes], bytes] = _key
    ) -> None:
        self._read_at, self._size, self._page = read_at, size, page
        self.check_last: Callable[[NumberedBlock], None] = lambda _: None
        """Called with the last block of the index when `blocks` reaches it. Raises DamagedCluster if it is not the last."""
        self._key = key
        self._starts: dict[int, Start] = {}
        self._heads: dict[int, _Head] = {}
        self._lock = Lock()

    def blocks(self, low: bytes) -> Iterator[BlockRef]:
        """All blocks from the one that may contain `low`. Raises DamagedCluster."""
        sequence = BlockSequence()
        for line in self.lines(low):
            try:
                block = sequence.take(line)
            except ValueError as error:
                raise DamagedCluster(f"the index is corrupt: {error}") from None
            yield block
        if sequence.last is not None:
            self.check_last(sequence.last)

    def lines(self, low: bytes) -> Iterator[bytes]:
        """The lines from the last one whose key is < `low`, or from the first line if no key is."""
        head = self._head(self._find_page(low).offset)
        while head.end < self._size and (not head.keys or head.keys[-1] < low):
            # the next line may be >= `low`, so the last one is kept
            head = self._read_head(head.end, b"".join(line + b"\n" for line in head.lines[-1:]) + head.rest)
        yield from head.lines[max(bisect_left(head.keys, low) - 1, 0) :]
        yield from self._from(head.end, head.rest)

    def _find_page(self, low: bytes) -> _Page:
        """The page where the search for `low` starts."""
        pages = max(1, -(-self._size // self._page))
        left, right = 0, pages  # the first key of page `left` is < `low`, or `left` is 0
        while right - left > 1:
            middle = (left + right) // 2
            if self._start(middle, left, right).key < low:
                left = middle
            else:
                right = middle
        return _Page(left, self._start(left, left, right).offset)

    def _head(self, pos: int) -> _Head:
        """The lines from `pos` to the end of its page. They are kept for the next search."""
        head = self._heads.get(pos)
        if head is None:
            head = self._read_head(pos, b"")
            with self._lock:
                while len(self._heads) >= max(1, _HELD // self._page):
                    del self._heads[next(iter(self._heads))]
                self._heads[pos] = head
        return head

    def _read_head(self, pos: int, before: bytes) -> _Head:
        """The lines of `before`, which ends at `pos`, and of the rest of the page. Raises DamagedCluster."""
        data = self._rest_of_page(pos)
        end = pos + len(data)
        *lines, rest = (before + data).split(b"\n")
        if rest and end >= self._size:
            raise _truncated(rest)
        keys = list(map(self._key, lines))
        if keys != sorted(keys):
            raise DamagedCluster(f"the index is not sorted after {_shown(keys[0])}")
        return _Head(lines, keys, rest, end)

    def check_ends(self) -> None:
        """Check the order of the first line and the lines of the last page, with two reads. Raises DamagedCluster."""
        last = max(0, -(-self._size // self._page) - 1)
        keys = [self._start(0, 0, last).key]
        keys += map(self._key, self._from(self._start(last, 0, last).offset, b""))
        wrong = next((later for earlier, later in pairwise(keys) if later < earlier), None)
        if wrong is not None:
            raise DamagedCluster(f"the index is not sorted: {_shown(wrong)} is out of order")

    def last_line(self) -> bytes | None:
        """The last line. None in an empty index."""
        return self.last_before(BEYOND)

    def last_before(self, high: bytes) -> bytes | None:
        """The last line whose key is < `high`, or the first line if no key is. None in an empty index."""
        return next(self.lines(high), None)

    def _from(self, pos: int, rest: bytes) -> Iterator[bytes]:
        """The lines of `rest`, which ends at `pos`, and the lines from `pos`."""
        while True:
            lines = rest.split(b"\n")
            rest = lines.pop()
            yield from lines
            if pos >= self._size:
                break
            data = self._rest_of_page(pos)
            pos += len(data)
            rest += data
        if rest:
            raise _truncated(rest)

    def _rest_of_page(self, pos: int) -> bytes:
        """The bytes from `pos` to the end of its page."""
        wanted = min(self._page - pos % self._page, self._size - pos)
        data = self._read_at(pos, wanted) if wanted else b""
        if len(data) < wanted:
            raise DamagedCluster("the index is truncated: it became shorter while cdxmill read it")
        return data

    def _start(self, page: int, left: int, right: int) -> Start:
        known = self._starts.get(page)
        if known is not None:
            return known
        found = self._first_line(page)
        before, behind = self._starts.get(left), self._starts.get(right)
        if (before is not None and before.key > found.key) or (behind is not None and behind.key < found.key):
            raise DamagedCluster(f"the index is not sorted: {_shown(found.key)} is out of order")
        if len(self._starts) < _REMEMBERED:
            self._starts[page] = found
        return found

    def _first_line(self, page: int) -> Start:
        """The first line that begins after a line end in this page, or the first line of page 0."""
        pos, rest = page * self._page, b""
        while page and pos < self._size:
            data = self._rest_of_page(pos)
            end = data.find(b"\n")
            if end >= 0:
                rest, pos = data[end + 1 :], pos + end + 1
                break
            pos += len(data)
        line = next(self._from(pos + len(rest), rest), None)
        return Start(self._size, BEYOND) if line is None else Start(pos, self._key(line))


def _truncated(line: bytes) -> DamagedCluster:
    return DamagedCluster(f"the index is truncated: its last line has no line end, {line[-80:]!r}")


def _shown(key: bytes) -> str:
    return repr(key[:80])
