"""The names of the archives of an open prefix B-tree: only the groups that are needed are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from cachetools import LRUCache

from cdxmill.formats.tree.name_groups import GROUP, unpack_names
from cdxmill.formats.tree.tree_header import Header
from cdxmill.stages.prefix_tree.search_tree import DamagedTreeError
from cdxmill.stages.window import ReadAt

_MOST_AHEAD = 8 << 20
"""Most bytes that are read at once."""
_KEPT = 64 << 20
"""Memory for names: those of 300,000 archives of Common Crawl."""
_NAME_BYTES = 60
"""Memory for a name in a list, besides its own characters."""


class NamesInTree:
    """Names by number. `place` are the bytes of the file that have them; `read_at` takes its offsets.

    With `ahead`, neighbors are read too, from the second read on: who asks twice asks more often.
    """

    def __init__(self, header: Header, read_at: ReadAt, ahead: bool) -> None:
        end = 0 if header.last_block is None else header.offset(header.last_block + 1)
        self._offsets = list(accumulate(header.names, initial=end))
        self.place = range(end, self._offsets[-1])
        self.read_at = read_at
        self._archives, self._ahead = header.archives, ahead
        self._has_read = False
        self._groups: LRUCache[int, list[str]] = LRUCache(_KEPT, _memory_of)

    def of(self, numbers: Sequence[int]) -> list[str]:
        """The names of these archives. Raises DamagedTreeError."""
        known: dict[int, list[str]] = {}
        missing = []
        for group in {number // GROUP for number in numbers}:
            if (names := self._groups.get(group)) is None:
                missing.append(group)
            else:
                known[group] = names
        if missing:
            known |= self._read(sorted(missing))
        try:
            return [known[number // GROUP][number % GROUP] for number in numbers]
        except (KeyError, IndexError):
            reason = f"archive {max(numbers)} has no name: the file has {self._archives} of them"
            raise DamagedTreeError(reason, self.place.start) from None

    def _read(self, groups: list[int]) -> dict[int, list[str]]:
        """The names of groups, which are sorted."""
        found: dict[int, list[str]] = {}
        for run in self._runs(groups):
            start, end = self._window(run)
            data = self.read_at(start, end - start)
            if len(data) < end - start:
                raise DamagedTreeError("the file is truncated in or before the names of archives", start)
            for group in run:
                first, last = (offset - start for offset in self._offsets[group : group + 2])
                found[group] = self._groups[group] = self._unpacked(group, data[first:last])
        return found

    def _runs(self, groups: list[int]) -> Iterator[list[int]]:
        """Groups that one read gets. Those of one answer are read together, with what is between them."""
        run: list[int] = []
        for group in groups:
            if group >= len(self._offsets) - 1:
                break  # `of` notices it
            if run and self._offsets[group + 1] - self._offsets[run[0]] > _MOST_AHEAD:
                yield run
                run = []
            run.append(group)
        if run:
            yield run

    def _window(self, run: list[int]) -> tuple[int, int]:
        """The offsets between which is read."""
        start, end = self._offsets[run[0]], self._offsets[run[-1] + 1]
        if self._ahead and self._has_read:
            first = self.place.start + (start - self.place.start) // _MOST_AHEAD * _MOST_AHEAD
            start, end = first, min(max(end, first + _MOST_AHEAD), self.place.stop)
        self._has_read = True
        return start, end

    def _unpacked(self, group: int, data: bytes) -> list[str]:
        try:
            return unpack_names(data)
        except ValueError as error:
            raise DamagedTreeError(str(error), self._offsets[group]) from None


def _memory_of(names: list[str]) -> int:
    return min(_KEPT, sum(map(len, names)) + _NAME_BYTES * len(names))
