"""What is counted and summed while the records of an archive pass: the proof of the new archive is made of it."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from cdxmill.capture import Damage
from cdxmill.formats.proof import Sum
from cdxmill.stages.records.check_digests import SeenDigests, watched
from cdxmill.stages.records.read_contents import Content

_WRONG = "compare it with another copy; use --any-digest if the crawler wrote wrong digests"


class Ledger:
    """Counts the records of an archive by type, sums their bytes, and checks their digests.

    `wrong` gets each record whose bytes do not have its digest. `file_name` is what the first record says.
    """

    def __init__(self, wrong: Callable[[Damage], object]) -> None:
        self._wrong, self._sum, self._size = wrong, hashlib.sha256(), 0
        self.kinds: Counter[str] = Counter()
        self.digests = self.wrong_digests = 0
        self.file_name: str | None = None

    def watch(self, contents: Iterable[Content | Damage]) -> Iterator[Content | Damage]:
        """The same items. Each content is counted when its last byte was read."""
        for item in contents:
            yield item if isinstance(item, Damage) else watched(item, self._counter(item), self._add)

    def content(self) -> Sum:
        """The size and SHA-256 of all bytes."""
        return Sum(self._size, self._sum.hexdigest())

    def _add(self, piece: bytes | bytearray) -> None:
        self._size += len(piece)
        self._sum.update(piece)

    def _counter(self, content: Content) -> Callable[[SeenDigests], None]:
        def count(seen: SeenDigests) -> None:
            if not content.records:
                return
            if not self.kinds and seen.kind == "warcinfo" and (name := seen.headers.get(b"warc-filename")):
                self.file_name = os.fsdecode(name)
            self.kinds[seen.kind] += 1
            self.digests += seen.checked
            if seen.wrong:
                self.wrong_digests += 1
                self._wrong(Damage(content.offset, f"{seen.wrong}; the record is written as it is", _WRONG))

        return count
