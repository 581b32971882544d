"""What went wrong: reported as it happens, counted for the exit status, and kept for the caller."""

from __future__ import annotations

from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.messages import say
from cdxmill.running.progress import Progress

KEPT = 10_000
"""Failures that are kept; any further ones are only counted and printed."""


class Failure(NamedTuple):
    """One thing that went wrong: where, why, and what the user can do; `offset` is None for a whole file.

    >>> str(Failure("a.warc.gz", 17, "gzip CRC32 mismatch", "fetch the file again"))
    'a.warc.gz@17: gzip CRC32 mismatch; fetch the file again'
    """

    path: str
    offset: int | None
    reason: str
    hint: str = ""

    @classmethod
    def from_error(cls, error: InputError) -> Failure:
        """A file that cannot be read."""
        return cls(error.path, None, error.reason, error.hint)

    def __str__(self) -> str:
        where = self.path if self.offset is None else f"{self.path}@{self.offset}"
        return f"{where}: {self.reason}" + (f"; {self.hint}" if self.hint else "")


class Failures:
    """The failures of a command: each is printed on stderr, counted, and kept in `items`.

    Without `printed` nothing is printed.
    """

    def __init__(self, *, printed: bool = True) -> None:
        self._printed = printed
        self._progress: Progress | None = None
        self.count = 0
        self.items: list[Failure] = []
        """The first KEPT of them."""
        self.inputs: set[str] = set()
        """The paths that they concern."""

    def show_on(self, progress: Progress) -> None:
        """Print around this step's progress bar from now on."""
        self._progress = progress

    def add(self, path: str, offset: int | None, reason: str, hint: str = "") -> None:
        """Report a failure by its parts."""
        self.report(Failure(path, offset, reason, hint))

    def report(self, failure: Failure) -> None:
        """Report a failure: `path@offset: reason; hint`."""
        self.count += 1
        self.inputs.add(failure.path)
        if len(self.items) < KEPT:
            self.items.append(failure)
        self.note(str(failure))

    def note(self, text: str) -> None:
        """Print a line on stderr; it does not count as a failure."""
        if not self._printed:
            return
        if self._progress is not None:
            self._progress.failures = self.count
            self._progress.say(text)
        else:
            say(text)
