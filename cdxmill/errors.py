"""Every error that cdxmill raises on purpose.

    CdxmillError
    ├── UsageError          the options or settings are wrong; nothing was done
    │   └── HeldError       another run writes to the directory
    ├── InputError          one input cannot be read; the others can
    │   ├── AbsentError     it does not exist
    │   ├── CorruptError    a part of a cluster is corrupt; other parts can be read
    │   └── OutageError     a machine is at fault, and the input may be whole: no answer, a disk that fails
    │       ├── RefusedError    the rights do not suffice
    │       └── UntriedError    its server was given up
    └── StoppedError        the run cannot continue (disk full, storage gone)

A user sees `str(error)`, one line. Code tells errors apart by their type, never by their text.
Each error has the exit status of a program that it ends.
"""

from __future__ import annotations

from typing import ClassVar

OK, FAILED, USAGE, STOPPED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit statuses: success; damaged inputs; invalid usage; a machine at fault, so run it again; Ctrl-C."""


class CdxmillError(Exception):
    """Base of all errors. The text is one line: where, what happened, what to do."""

    status: ClassVar[int] = STOPPED


class UsageError(CdxmillError):
    """Wrong options, arguments or settings. Nothing was done."""

    status = USAGE


class HeldError(UsageError):
    """Another run writes to the directory. Later it may be free."""


class InputError(CdxmillError):
    """One input is missing, unreadable or corrupt as a whole, or from `offset` on."""

    status = FAILED

    def __init__(self, path: str, reason: str, hint: str = "", offset: int | None = None) -> None:
        self.path, self.reason, self.hint, self.offset = path, reason, hint, offset
        where = path if offset is None else f"{path}@{offset}"
        super().__init__(f"{where}: {reason}" + (f"; {hint}" if hint else ""))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str, int | None]]:
        """Pickle the type and its fields: workers send their errors to the parent process."""
        return type(self), (self.path, self.reason, self.hint, self.offset)


class AbsentError(InputError):
    """The file or object does not exist."""


def absent(url: str) -> AbsentError:
    """The error for a file that a remote storage does not have."""
    return AbsentError(url, "cannot be read (no such file)", "check the path")


class CorruptError(InputError):
    """A block or the index of a cluster is corrupt. Other blocks can be read."""


class OutageError(InputError):
    """A storage, a network, a disk or a right is at fault, and the input may be whole.

    Another try, or another machine, may read it. Nothing is built without such an input.
    """

    status: ClassVar[int] = STOPPED


class RefusedError(OutageError):
    """The file or object may exist, but the rights do not suffice to read it.

    S3 also answers 403 for a missing object if the bucket may not be listed.
    """


class UntriedError(OutageError):
    """Its server was given up before: it was not asked for this input. A later run may read it."""

    START: ClassVar[str] = "not requested, because "
    """The start of the reason, also where it is kept as text."""


class StoppedError(CdxmillError):
    """The run cannot continue. Finished work is kept, and a rerun continues from it."""


def of_named_file(error: InputError, option: str = "") -> CdxmillError:
    """The error for a file that the user named, with the `option` before it: wrong usage, unless a machine is at fault."""
    is_outage = isinstance(error, OutageError) and not isinstance(error, RefusedError)
    return (StoppedError if is_outage else UsageError)(f"{option}{error}")
