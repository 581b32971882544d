"""How many requests a client may send: a bucket of tokens for each address, in a table that all workers share.

The table is a file that workers map. A client has the row that the hash of its address says; a row is tokens, the time at which
there were as many, and the hash. If two clients have one row, the later one takes it over with a full bucket: then a limit is weaker, and
nobody is refused in place of others. Workers lock the row's byte of the file.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

_ROWS = 1 << 16
"""Clients that are remembered."""
_ROW = struct.Struct("<dd8s")
_BURST = 10.0
"""Seconds whose requests may come at once."""


class ClientLimits:
    """At most `rate` requests a second of each client, over some seconds. Workers that give the same `file` count together.

    Clocks must be the same in all processes, as those of `time.monotonic` are on one machine.
    """

    def __init__(self, rate: float, file: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._most, self._now = rate, max(1.0, rate * _BURST), now
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, _ROWS * _ROW.size)
        self._table = mmap.mmap(self._file, _ROWS * _ROW.size)

    def wait(self, client: str) -> float:
        """Seconds until the client may ask again; 0 if it may ask now, and then that is counted."""
        name = blake2b(client.encode("utf-8", "surrogateescape"), digest_size=8).digest()
        place = int.from_bytes(name, "little") % _ROWS * _ROW.size
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, place)
        try:
            return self._count(name, place)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def _count(self, name: bytes, place: int) -> float:
        now = self._now()
        left, since, owner = _ROW.unpack_from(self._table, place)
        if owner != name:
            left, since = self._most, now
        left = min(self._most, left + max(0.0, now - since) * self._rate)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate
        _ROW.pack_into(self._table, place, left if wait else left - 1, now, name)
        return wait

    def close(self) -> None:
        """Give the table back."""
        self._table.close()
        os.close(self._file)
