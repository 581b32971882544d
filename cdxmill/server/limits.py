"""How many requests a client may send: a bucket of tokens for each address."""

from __future__ import annotations

import time
from collections.abc import Callable

from cachetools import LRUCache

_MOST = 100_000
"""Clients that are remembered."""
_BURST = 10.0
"""Seconds whose requests may come at once."""


class ClientLimits:
    """At most `rate` requests a second of each client, over some seconds."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._most, self._now = rate, max(1.0, rate * _BURST), now
        self._clients: LRUCache[str, tuple[float, float]] = LRUCache(_MOST)

    def wait(self, client: str) -> float:
        """Seconds until the client may ask again; 0 if it may ask now, and then that is counted."""
        now = self._now()
        left, since = self._clients.get(client, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        if left < 1:
            self._clients[client] = (left, now)
            return (1 - left) / self._rate
        self._clients[client] = (left - 1, now)
        return 0.0
