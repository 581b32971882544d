"""Every error that cdxmill raises on purpose.

    CdxmillError
    ├── UsageError      the call cannot be carried out as asked
    ├── InputError      one input cannot be read; the others can
    └── StoppedError    the run cannot go on (disk full, storage gone)

A user sees `str(error)`, one line. `cli` alone maps them to exit statuses.
"""

from __future__ import annotations


class CdxmillError(Exception):
    """Base of all; its text is one line: what, where, why, what to do."""


class UsageError(CdxmillError):
    """Wrong options, arguments or settings: nothing was done."""


class InputError(CdxmillError):
    """One input is absent, unreadable or damaged as a whole."""

    def __init__(self, path: str, reason: str, hint: str = "") -> None:
        self.path, self.reason, self.hint = path, reason, hint
        super().__init__(f"{path}: {reason}" + (f"; {hint}" if hint else ""))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        """Workers send their errors to the parent process."""
        return InputError, (self.path, self.reason, self.hint)


class StoppedError(CdxmillError):
    """The run cannot go on; what is finished stays, and a rerun goes on from it."""
