"""How long a server in trouble is waited for, and how often it is asked again."""

from __future__ import annotations

import random
import time

from cdxmill.errors import InputError

TRIES = 8
"""With the waits below a server has about a minute to come back; an outage of hours is for another run."""
FIRST_WAIT = 0.5
"""Seconds before the second try; they double from try to try: 0.5, 1, 2, ... 32."""
LONGEST_WAIT = 60.0
"""Seconds. A server may ask for more (Retry-After): whoever waits for hours looks hung."""
GOOD_WAY = 1 << 16
"""Bytes that a try brought before it was cut, from which on it is not one in vain."""


class TryAgain(Exception):
    """A try failed, but the next one may not; `wait` is what the server asks for, in seconds."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.reason, self.wait = reason, wait


class Tries:
    """The tries of one read of the file at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._failed = 0

    def failed(self, failure: TryAgain, gained: int) -> None:
        """Wait before the next try. Raises InputError where this was the last.

        `gained` bytes came before the failure: one that got on its way starts the count anew.
        """
        self._failed = 1 if gained >= GOOD_WAY else self._failed + 1
        if self._failed >= TRIES:
            raise InputError(
                self._url, f"did not answer ({failure.reason}) after {TRIES} tries", "run it again"
            )
        time.sleep(self._wait(failure.wait))

    def _wait(self, asked: float) -> float:
        """Seconds, spread so that workers that failed together do not come back together."""
        backoff = FIRST_WAIT * (1 << self._failed - 1) * random.uniform(0.5, 1)
        return max(min(backoff, LONGEST_WAIT), min(asked, LONGEST_WAIT) * random.uniform(1, 1.1))
