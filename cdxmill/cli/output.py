"""What a command returns and prints: its exit status, bytes on stdout, its summary on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

OK, FAILED, USAGE, STOPPED = 0, 1, 2, 3
"""Exit statuses: success; some inputs failed; invalid usage; no final output."""


class ClosedPipe(BaseException):
    """The reader of stdout has closed it (`| head`). click would report an OSError as its own failure."""


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """The stream for bytes on stdout. Raises ClosedPipe."""
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ClosedPipe from None


def print_summary(summary: object, *, quiet: bool) -> None:
    """Print the closing lines of a command on stderr, unless `quiet`."""
    if not quiet:
        print(summary, file=sys.stderr)


def print_error(text: str) -> None:
    """Print one line on stderr."""
    print("cdxmill: " + text.replace("\n", " "), file=sys.stderr)
