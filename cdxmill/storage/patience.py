"""How often a failed request is repeated, and the waits between."""

from __future__ import annotations

import random
import time

from cdxmill.errors import InputError

TRIES = 8
"""With the waits below a server has about a minute to recover. After a longer outage, run cdxmill again."""
FIRST_WAIT = 0.5
"""Seconds before the second try. The wait doubles with each try: 0.5, 1, 2, ... 32."""
LONGEST_WAIT = 60.0
"""Seconds. A server may ask for more (Retry-After), but a process that waits for hours looks hung."""
PROGRESS = 1 << 16
"""Bytes. A try that received as many before it failed is not counted as a failed one."""


class TryAgain(Exception):
    """A try failed, but the next may succeed. `wait` is the time in seconds that the server asked for."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.reason, self.wait = reason, wait


class Tries:
    """Count the tries of one read of the file at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._failed = 0

    def failed(self, failure: TryAgain, gained: int) -> None:
        """Wait before the next try. Raises InputError if this was the last.

        `gained` bytes were received before the failure. With PROGRESS bytes or more the count starts again.
        """
        self._failed = 1 if gained >= PROGRESS else self._failed + 1
        if self._failed >= TRIES:
            raise InputError(
                self._url, f"did not answer ({failure.reason}) after {TRIES} tries", "run it again"
            )
        time.sleep(self._wait(failure.wait))

    def _wait(self, asked: float) -> float:
        """Seconds to wait. They are random, so that workers that failed together do not return together."""
        backoff = FIRST_WAIT * (1 << self._failed - 1) * random.uniform(0.5, 1)
        return max(min(backoff, LONGEST_WAIT), min(asked, LONGEST_WAIT) * random.uniform(1, 1.1))
