"""A clock that stands until it is set."""

from __future__ import annotations


class Clock:
    """The time that a test sets, in place of the module time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        """The time that was set."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """The time passes at once."""
        self.now += seconds
