"""The secondary index of a cluster, searched by bisection over pages of the file, never read whole.

What is learned of a page, the first key that starts in it, is remembered: the next question begins
with what the ones before it have read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from cdxmill.formats.zipnum_index import BlockRef, parse_index_line
from cdxmill.stages.window import ReadAt

LOCAL_PAGE = 1 << 12
"""Bytes: about 40 lines, split faster than a larger page and read as fast as a smaller one."""
REMOTE_PAGE = 1 << 16
"""Bytes: a request takes as long for 64 KiB as for less, and more pages would take more requests."""
_REMEMBERED = 1 << 16
"""Pages whose first keys are kept: about 10 MB."""
_HELD = 4 << 20
"""Bytes of pages whose lines are kept, which take about three times as much."""


class DamagedCluster(ValueError):
    """A block or the index of a cluster is not what it should be."""


class _Start(NamedTuple):
    """Where the first line of a page begins, the file's end where none does; and its key."""

    offset: int
    key: bytes


class _Head(NamedTuple):
    """Whole lines with their keys, the start of the next one, and the offset up to which this was read."""

    lines: list[bytes]
    keys: list[bytes]
    rest: bytes
    end: int


class SecondaryIndex:
    """An index of `size` bytes, read by `read_at`, a page at a time."""

    def __init__(self, read_at: ReadAt, size: int, page: int = LOCAL_PAGE) -> None:
        self._read_at, self._size, self._page = read_at, size, page
        self._starts: dict[int, _Start] = {}
        self._heads: dict[int, _Head] = {}

    def blocks(self, low: bytes) -> Iterator[BlockRef]:
        """All blocks from the one on in which `low` may lie. Raises DamagedCluster."""
        last: BlockRef | None = None
        for line in self.lines(low):
            block = _parsed(line)
            if last is not None and block.key < last.key:
                raise DamagedCluster(
                    f"the index is not sorted: {_shown(block.key)} is behind {_shown(last.key)}"
                )
            yield block
            last = block

    def lines(self, low: bytes) -> Iterator[bytes]:
        """The lines from the last on whose key is below `low`; from the first on where there is none."""
        head = self._head(self._find_page(low))
        while head.end < self._size and (not head.keys or head.keys[-1] < low):
            # the last one is below `low`: it stays, for the next may not be
            head = self._read_head(head.end, b"".join(line + b"\n" for line in head.lines[-1:]) + head.rest)
        yield from head.lines[max(bisect_left(head.keys, low) - 1, 0) :]
        yield from self._from(head.end, head.rest)

    def _find_page(self, low: bytes) -> int:
        """Where the first line begins of the page in which, or behind which, the lines of `low` are."""
        pages = max(1, -(-self._size // self._page))
        left, right = 0, pages  # the first line of page `left` is below `low`, or `left` is 0
        while right - left > 1:
            middle = (left + right) // 2
            if self._start(middle, left, right).key < low:
                left = middle
            else:
                right = middle
        return self._start(left, left, right).offset

    def _head(self, pos: int) -> _Head:
        """What is read from `pos` on to the end of its page; remembered, for the next question may be for it, too."""
        head = self._heads.get(pos)
        if head is None:
            while len(self._heads) >= max(1, _HELD // self._page):
                del self._heads[next(iter(self._heads))]
            head = self._heads[pos] = self._read_head(pos, b"")
        return head

    def _read_head(self, pos: int, before: bytes) -> _Head:
        """The lines of `before`, which was read up to `pos`, and of the rest of the page. Raises DamagedCluster."""
        data = self._rest_of_page(pos)
        end = pos + len(data)
        *lines, rest = (before + data).split(b"\n")
        if rest and end >= self._size:
            lines, rest = [*lines, rest], b""
        keys = list(map(_key, lines))
        if keys != sorted(keys):
            raise DamagedCluster(f"the index is not sorted behind {_shown(keys[0])}")
        return _Head(lines, keys, rest, end)

    def check_ends(self) -> None:
        """Raise DamagedCluster where the first line, and those of the last page, are not in order: two reads."""
        last = max(0, -(-self._size // self._page) - 1)
        keys = [self._start(0, 0, last).key]
        keys += map(_key, self._from(self._start(last, 0, last).offset, b""))
        if keys != sorted(keys):
            raise DamagedCluster(
                f"the index is not sorted: its last lines are below its first, {_shown(keys[0])}"
            )

    def last_line(self) -> bytes | None:
        """The last line; None in an empty index."""
        return self.last_before(_BEYOND)

    def last_before(self, high: bytes) -> bytes | None:
        """The last line whose key is below `high`; the first of all where there is none, None in an empty index."""
        return next(self.lines(high), None)

    def _from(self, pos: int, rest: bytes) -> Iterator[bytes]:
        """The lines of `rest`, which was read before `pos`, and those from `pos` on."""
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
            yield rest

    def _rest_of_page(self, pos: int) -> bytes:
        """The bytes from `pos` to the end of its page."""
        wanted = min(self._page - pos % self._page, self._size - pos)
        data = self._read_at(pos, wanted) if wanted else b""
        if len(data) < wanted:
            raise DamagedCluster("the index is cut: it has become shorter while it was read")
        return data

    def _start(self, page: int, left: int, right: int) -> _Start:
        known = self._starts.get(page)
        if known is not None:
            return known
        found = self._first_line(page)
        before, behind = self._starts.get(left), self._starts.get(right)
        if (before is not None and before.key > found.key) or (behind is not None and behind.key < found.key):
            raise DamagedCluster(f"the index is not sorted: {_shown(found.key)} is in the wrong place")
        if len(self._starts) < _REMEMBERED:
            self._starts[page] = found
        return found

    def _first_line(self, page: int) -> _Start:
        """The first line that begins behind a line end in this page; of page 0 the very first."""
        pos, rest = page * self._page, b""
        while page and pos < self._size:
            data = self._rest_of_page(pos)
            end = data.find(b"\n")
            if end >= 0:
                rest, pos = data[end + 1 :], pos + end + 1
                break
            pos += len(data)
        line = next(self._from(pos + len(rest), rest), None)
        return _Start(self._size, _BEYOND) if line is None else _Start(pos, _key(line))


_BEYOND = b"\xff" * 8
"""Right of all keys, which are UTF-8."""


def _key(line: bytes) -> bytes:
    key = line[: line.find(b"\t")]
    return key.replace(b"\x08\2", b"\t").replace(b"\x08\1", b"\x08") if b"\x08" in key else key


def _parsed(line: bytes) -> BlockRef:
    try:
        return parse_index_line(line)
    except ValueError as error:
        raise DamagedCluster(f"the index is damaged: {error}") from None


def _shown(key: bytes) -> str:
    return repr(key[:80])
