"""Shards that stay open for the next read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from threading import Lock

import cachetools

from cdxmill.storage.location import Location


class OpenShard:
    """An open shard. `files` closes it; `holders` counts the cache and each read in progress."""

    def __init__(self, place: Location, read_at: Callable[[int, int], bytes], files: ExitStack) -> None:
        self.place, self.read_at, self.files = place, read_at, files
        self.holders = 0


class OpenShards:
    """Up to `most` open shards by name; the least recently used one is removed first. Threads may share it.

    The last holder of a shard closes it, so a shard that is removed during a read is closed after the read.
    """

    def __init__(self, most: int) -> None:
        self._lock = Lock()
        self._kept: cachetools.LRUCache[bytes, OpenShard] = cachetools.LRUCache(most)

    def borrow(self, name: bytes) -> OpenShard | None:
        """The open shard of this name, None if it is not open. It stays open until it is given back."""
        with self._lock:
            if name not in self._kept:
                return None
            shard = self._kept[name]
            shard.holders += 1
            return shard

    def give_back(self, shard: OpenShard) -> None:
        """End a `borrow`."""
        with self._lock:
            _release(shard)

    def add(self, name: bytes, shard: OpenShard) -> None:
        """Keep a shard open. It is closed at once if another thread has already added one of this name."""
        with self._lock:
            shard.holders += 1
            if name in self._kept:
                _release(shard)
                return
            while len(self._kept) >= self._kept.maxsize:
                _release(self._kept.popitem()[1])
            self._kept[name] = shard

    def remove(self, name: bytes, shard: OpenShard) -> None:
        """Stop keeping a shard open, unless another thread has replaced it."""
        with self._lock:
            if self._kept.get(name) is shard:
                del self._kept[name]
                _release(shard)

    def close(self) -> None:
        """Stop keeping any shard open."""
        with self._lock:
            while self._kept:
                _release(self._kept.popitem()[1])


def _release(shard: OpenShard) -> None:
    """Remove one holder. Requires: the lock is held."""
    shard.holders -= 1
    if not shard.holders:
        shard.files.close()
