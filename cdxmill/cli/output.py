"""What a command leaves: its exit status, and bytes on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

OK, FAILED, USAGE, STOPPED = 0, 1, 2, 3
"""Exit statuses: all well; some inputs failed; wrong usage; no final output."""


class ClosedPipe(BaseException):
    """Whoever reads our output has enough (`| head`); click would take it for a failure of its own."""


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Where bytes are written. Raises ClosedPipe."""
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ClosedPipe from None
