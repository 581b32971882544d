"""Texts that are needed often, of blocks, of sections or of answers: they are not made again. Bounded by their bytes.

A text is kept at its second hit. If the memory is full, it also has to be needed more than twice as often as the text that
would go. To add a text costs more than to find one saves, so random questions must not replace one random text by another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

_FEWEST = 64
"""Texts of which as many hits are counted as of this many, at least."""
_HITS = 10
"""Hits that are counted for each text that is kept. Then all counts are halved, so that what was hot long ago has to go."""
_PART = 8
"""No text takes more than this part of the memory."""
_KEYS = 8
"""The part of the memory for digests of keys. They take 4 bytes a line, and its text about 400."""
_KEYS_COUNTED, _BESIDE_KEYS = 1 << 10, 400
"""Bytes of this part for each hit that is counted, and what the keys of a section take beside their digests."""
_NEVER = -1 << 20
"""The count of a text that is too large. It is halved as the others are, so it is forgotten at last."""


class KeptTexts:
    """At most `most` bytes of texts, the least recently used of which go first. Threads may share it.

    For texts that are many and short, `counted` is the number of hits after which counts are halved, and `beside` the bytes that
    each one takes beside its own.
    """

    def __init__(self, most: int, counted: int | None = None, beside: int = 0) -> None:
        self._most, self._size = most, 0
        self._counts, self._beside = counted, beside
        self.largest = most // _PART
        """The most bytes that a text may have."""
        self._texts: OrderedDict[Hashable, bytes] = OrderedDict()
        self._hits: dict[Hashable, int] = {}
        self._counted = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> bytes | None:
        """The text of a key, None if it is not kept. This is a hit."""
        with self._lock:
            self._count(key)
            text = self._texts.get(key)
            if text is not None:
                self._texts.move_to_end(key)
            return text

    def _count(self, key: Hashable) -> None:
        self._hits[key] = self._hits.get(key, 0) + 1
        self._counted += 1
        if self._counted >= (self._counts or _HITS * max(_FEWEST, len(self._texts))):
            self._counted = 0
            self._hits = {one: half for one, hits in self._hits.items() if (half := int(hits / 2))}

    def is_wanted(self, key: Hashable) -> bool:
        """Whether the text of a key is not kept, and worth keeping."""
        with self._lock:
            if key in self._texts:
                return False
            hits = self._hits.get(key, 0)
            if not self._is_full():
                return hits >= 2
            return hits > 2 * max(1, self._hits.get(next(iter(self._texts)), 0))

    def _is_full(self) -> bool:
        """Whether there is no room for a text of the average size."""
        return bool(self._texts) and self._size + self._size // len(self._texts) > self._most

    def add(self, key: Hashable, text: bytes | None) -> None:
        """Keep a text. None, or one that is too large, is not kept, and not wanted again for a long time."""
        with self._lock:
            if text is None or len(text) > self.largest:
                self._hits[key] = _NEVER
                return
            self._drop(self._texts.pop(key, None))
            self._texts[key] = text
            self._size += len(text) + self._beside
            while self._size > self._most:
                self._drop(self._texts.popitem(last=False)[1])

    def _drop(self, text: bytes | None) -> None:
        if text is not None:
            self._size -= len(text) + self._beside


class BlockMemory:
    """At most `most` bytes of what is known of the blocks of all clusters: texts, and digests of the keys of texts."""

    def __init__(self, most: int) -> None:
        part = most // _KEYS
        self.keys = KeptTexts(part, part // _KEYS_COUNTED, _BESIDE_KEYS)
        self.texts = KeptTexts(most - part)
