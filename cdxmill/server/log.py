"""The access log: a line per request, in the combined format of web servers, with the query and the time."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

from cdxmill.errors import UsageError
from cdxmill.messages import printable

STDERR = "-"


class AccessLog:
    """The log at a path; `-` is stderr. Without a path, nothing is written. Lines of several workers do not mix. Raises UsageError."""

    def __init__(self, path: str | None) -> None:
        self._file: int | None = None
        if path == STDERR:
            self._file = os.dup(sys.stderr.fileno())
        elif path is not None:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            except OSError as error:
                raise UsageError(f"{path}: the log cannot be written ({error.strerror})") from None

    @property
    def is_open(self) -> bool:
        """Whether lines are written."""
        return self._file is not None

    def write(self, client: str, request: str, status: int, sent: int, seconds: float) -> None:
        """Write a line. A full disk costs the line, not the answer."""
        if self._file is None:
            return
        now = datetime.now(UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
        text = printable(request).replace('"', "%22")
        line = f'{client} - - [{now}] "{text}" {status} {sent} {seconds:.6f}\n'
        try:
            os.write(self._file, line.encode("utf-8", "replace"))
        except OSError:
            return

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
