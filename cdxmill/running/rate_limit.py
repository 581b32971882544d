"""A limit on requests per second, shared by the processes of a run."""

from __future__ import annotations

import time
from multiprocessing import get_context


class RateLimit:
    """Turns that are at least 1/`rate` seconds apart; without a rate, at once. Make it before processes are forked."""

    def __init__(self, rate: float | None) -> None:
        self._gap = 0.0 if rate is None else 1 / rate
        self._next = get_context("fork").Value("d", 0.0) if rate is not None else None

    def wait(self) -> None:
        """Wait for the next turn."""
        if self._next is None:
            return
        with self._next.get_lock():  # the clock is that of the machine, the same for all processes
            now = time.monotonic()
            turn = max(now, self._next.value)
            self._next.value = turn + self._gap
        time.sleep(turn - now)
