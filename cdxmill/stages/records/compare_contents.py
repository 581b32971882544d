"""The contents of two archives, compared record by record: what only one of them has.

A record has the blank lines that follow it, wherever its member or frame ends. So it is the same in archives that were
compressed in different ways.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from cdxmill.capture import Damage
from cdxmill.stages.records.check_digests import SeenDigests, watched
from cdxmill.stages.records.read_contents import Content

_AHEAD = 1000
"""Records in which the next equal one is searched after a difference."""


class RecordSum(NamedTuple):
    """A record: its number, from 1, its offset in the archive, and the size and SHA-256 of its bytes with blank ones after it."""

    number: int
    offset: int
    size: int
    sha256: bytes

    @property
    def key(self) -> tuple[int, bytes]:
        """What equal records have in common."""
        return self.size, self.sha256


class OtherRecords(NamedTuple):
    """Neighbouring records of two archives. Where both have some, each record is another one."""

    old: list[RecordSum]
    new: list[RecordSum]


def parts_of(
    contents: Iterable[Content | Damage],
    damaged: Callable[[Damage], object],
    seen: Callable[[Content, SeenDigests], object] = lambda content, found: None,
) -> Iterator[RecordSum]:
    """The records of an archive. `damaged` gets what cannot be read, `seen` what was found out about each record."""
    number, last = 0, None
    offset, size, sums = 0, 0, hashlib.sha256()
    for item in contents:
        if isinstance(item, Damage):
            damaged(item)
            continue
        if item.records or last is None:
            if last is not None:
                yield RecordSum(number, offset, size, sums.digest())
            number, offset, size, sums = number + 1, item.offset, 0, hashlib.sha256()
        last = item
        size += item.size
        for _ in watched(item, _teller(item, seen), sums.update).pieces():
            pass
    if last is not None:
        yield RecordSum(number, offset, size, sums.digest())


def _teller(
    content: Content, seen: Callable[[Content, SeenDigests], object]
) -> Callable[[SeenDigests], object]:
    return lambda found: seen(content, found)


def differences(old: Iterator[RecordSum], new: Iterator[RecordSum]) -> Iterator[int | OtherRecords]:
    """The size of each record that both archives have, and their differences, in order."""
    ours, theirs = deque[RecordSum](), deque[RecordSum]()
    while True:
        _fill(ours, old, 1)
        _fill(theirs, new, 1)
        if not ours and not theirs:
            return
        if ours and theirs and ours[0].key == theirs[0].key:
            theirs.popleft()
            yield ours.popleft().size
            continue
        _fill(ours, old, _AHEAD)
        _fill(theirs, new, _AHEAD)
        first, second = _next_same(ours, theirs)
        yield OtherRecords(
            [ours.popleft() for _ in range(first)],
            [theirs.popleft() for _ in range(second)],
        )


def _fill(held: deque[RecordSum], more: Iterator[RecordSum], size: int) -> None:
    held.extend(islice(more, max(size - len(held), 0)))


def _next_same(old: Iterable[RecordSum], new: deque[RecordSum]) -> tuple[int, int]:
    """The positions of the first records that are equal; the lengths of both if none are."""
    places: dict[tuple[int, bytes], int] = {}
    for number, part in enumerate(new):
        places.setdefault(part.key, number)
    found = [(number, places[part.key]) for number, part in enumerate(old) if part.key in places]
    return min(found, key=sum, default=(sum(1 for _ in old), len(new)))
