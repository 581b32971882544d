"""Texts of blocks or sections that were needed twice: they are not read and inflated again. Bounded by their bytes.

A text is kept at its second hit. If all were kept at the first, random questions would pay for a cache that seldom helps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

_FEWEST = 64
"""Keys that are remembered, at least, until they come again. Otherwise, as many as there are texts: so of random questions,
about as many add a text as find one, and to add one costs less than to find one saves."""
_PART = 8
"""No text takes more than this part of the memory."""


class KeptTexts:
    """At most `most` bytes of texts, the least recently used of which go first. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._texts: OrderedDict[Hashable, bytes] = OrderedDict()
        self._young: set[Hashable] = set()
        self._old: set[Hashable] = set()
        self._lock = Lock()

    def get(self, key: Hashable) -> bytes | None:
        """The text of a key, None if it is not kept."""
        with self._lock:
            text = self._texts.get(key)
            if text is not None:
                self._texts.move_to_end(key)
            return text

    def is_wanted(self, key: Hashable) -> bool:
        """Whether the text of a key, which is not kept, was asked for before: then it is worth keeping."""
        with self._lock:
            if key in self._young or key in self._old:
                return True
            self._young.add(key)
            if len(self._young) >= max(_FEWEST, len(self._texts)):
                self._old, self._young = self._young, set()
            return False

    def add(self, key: Hashable, text: bytes) -> None:
        """Keep a text."""
        if len(text) * _PART > self._most:
            return
        with self._lock:
            self._size += len(text) - len(self._texts.pop(key, b""))
            self._texts[key] = text
            while self._size > self._most:
                self._size -= len(self._texts.popitem(last=False)[1])
