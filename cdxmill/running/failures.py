"""What went wrong: reported as it happens, counted for the exit status, and kept for the caller."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cdxmill.errors import FAILED, OK, STOPPED, InputError, OutageError, StoppedError, UntriedError
from cdxmill.messages import count, say
from cdxmill.regex import regex
from cdxmill.running.progress import Progress

KEPT = 10_000
"""Failures that are kept; any further ones are only counted and printed."""

SHOWN = 10
"""Notes of a kind that are printed, and failures of a kind in one input; any further ones are counted."""
_VARIABLE = regex(r"'[^']*'|\"[^\"]*\"|\d+")


def kind_of(reason: str) -> str:
    """A reason without the numbers and names in it.

    >>> kind_of("record 17 claims 'x' and 20 bytes")
    'record N claims N and N bytes'
    """
    return _VARIABLE.sub("N", reason)


class Failure(NamedTuple):
    """One thing that went wrong: where, why, and what the user can do; `offset` is None for a whole file.

    >>> str(Failure("a.warc.gz", 17, "gzip CRC32 mismatch", "fetch the file again"))
    'a.warc.gz@17: gzip CRC32 mismatch; fetch the file again'
    """

    path: str
    offset: int | None
    reason: str
    hint: str = ""
    is_outage: bool = False
    """Whether a machine is at fault, and not the data."""

    @classmethod
    def from_error(cls, error: InputError, path: str | None = None) -> Failure:
        """A file that cannot be read; `path` is its name in messages."""
        name = error.path if path is None else path
        return cls(name, error.offset, error.reason, error.hint, isinstance(error, OutageError))

    def __str__(self) -> str:
        where = self.path if self.offset is None else f"{self.path}@{self.offset}"
        return f"{where}: {self.reason}" + (f"; {self.hint}" if self.hint else "")


def stop_at_outage(failures: Iterable[Failure]) -> None:
    """Raise StoppedError if a machine was at fault for one of them: an engine may try the task again on another one."""
    for failure in failures:
        if failure.is_outage:
            raise StoppedError(str(failure))


class Failures:
    """The failures of a command: each is printed on stderr, counted, and kept in `items`.

    Without `printed` nothing is printed. `write` takes the lines in place of stderr.
    """

    def __init__(self, *, printed: bool = True, write: Callable[[str], object] | None = None) -> None:
        self._printed, self._write = printed, write
        self._progress: Progress | None = None
        self.count = 0
        self.items: list[Failure] = []
        """The first KEPT of them."""
        self.inputs: set[str] = set()
        """The paths that they concern."""
        self.outages = 0
        """How many of them are faults of a machine."""
        self._untried = Counter[str]()
        """The number of failures whose server was given up before, by their reason."""
        self._kinds: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        """The number of "notes" and "failures" of each path and kind, of those that are not all printed."""

    @property
    def status(self) -> int:
        """The exit status: 3 if a machine was at fault, so that another run may succeed; 1 if only data are damaged."""
        return STOPPED if self.outages else FAILED if self.count else OK

    def show_on(self, progress: Progress) -> None:
        """Print around this step's progress bar from now on."""
        self._progress = progress

    def add(self, path: str, offset: int | None, reason: str, hint: str = "") -> None:
        """Report a failure by its parts."""
        self.report(Failure(path, offset, reason, hint))

    def report(self, failure: Failure) -> None:
        """Report a failure: `path@offset: reason; hint`."""
        if self._count(failure):
            self._print(str(failure))

    def report_listed(self, path: str, found: Iterable[Failure]) -> None:
        """Report the failures of one input that a file lists, too. After SHOWN of a kind, they are only counted."""
        for failure in found:
            if self._count(failure):
                self._print_some("failures", path, kind_of(failure.reason), str(failure))
        self._print_rest("failures")

    def report_one_listed(self, failure: Failure, reason: str = "", where: str = "") -> None:
        """Report a failure that may be one of many. `reason` is the part of its reason that others share.

        After SHOWN of a kind in a path, they are only counted (see `close_listed`). If each has a path of its own,
        `where` is what they share.
        """
        if self._count(failure, reason):
            self._print_some(
                "failures", where or failure.path, kind_of(reason or failure.reason), str(failure)
            )

    def close_listed(self) -> None:
        """Print how many failures of each path and kind were only counted, and how many inputs were not requested."""
        self._print_rest("failures")
        for reason, number in self._untried.items():
            self._print(f"{count(number, 'failure')}: {reason}; run it again later")
        self._untried.clear()

    def note(self, text: str) -> None:
        """Print a line on stderr; it does not count as a failure."""
        self._print(text)

    def note_one(self, where: str, reason: str) -> None:
        """Print a note about one record. After SHOWN of a kind, they are only counted (see `close_notes`)."""
        self._print_some("notes", "note", kind_of(reason), f"{where}: note: {reason}")

    def close_notes(self) -> None:
        """Print how many notes of each kind were only counted."""
        self._print_rest("notes")

    def _count(self, failure: Failure, reason: str = "") -> bool:
        """Count a failure. Whether it is printed: those of a server that was given up are one line in the end."""
        self.count += 1
        self.outages += failure.is_outage
        if self._progress is not None:
            self._progress.failures = self.count
        self.inputs.add(failure.path)
        if len(self.items) < KEPT:
            self.items.append(failure)
        is_untried = failure.reason.startswith(UntriedError.START)
        if is_untried:
            self._untried[reason or failure.reason] += 1
        return not is_untried

    def _print_some(self, what: str, path: str, kind: str, text: str) -> None:
        kinds = self._kinds[what]
        kinds[path, kind] += 1
        if kinds[path, kind] <= SHOWN:
            self._print(text)

    def _print_rest(self, what: str) -> None:
        for (path, kind), number in self._kinds.pop(what, {}).items():
            if number > SHOWN:
                self._print(f"{path}: {number - SHOWN} more {what} of this kind: {kind}")

    def _print(self, text: str) -> None:
        if not self._printed:
            return
        if self._write is not None:
            self._write(text)
        elif self._progress is not None:
            self._progress.say(text)
        else:
            say(text)
