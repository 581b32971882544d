"""An exception that nobody expected while a record was read: whether the record is to blame, and what is reported of it.

`scan`, `count` and the jobs ask here, so that a bad record costs that record and not the run.
"""

from __future__ import annotations

from cdxmill.errors import CdxmillError

_OF_MACHINE = (OSError, MemoryError, ImportError, CdxmillError)
"""What the disk, the network, the memory or the installation raises, whatever record is read."""
SKIPPED = "the record is skipped"
"""What happened to a record that took too long, or too much memory."""
HINT = "the record is skipped; report it to the maintainers of cdxmill"
"""What the user can do."""


def blame_record(error: Exception) -> str:
    """The reason why a record cannot be used. Raises `error` again if the machine is to blame."""
    if isinstance(error, _OF_MACHINE):
        raise error
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return f"unexpected {type(error).__name__}: {' '.join(str(error).split()) or 'no text'}"
