"""What a command prints: bytes on stdout, its summary on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from cdxmill.errors import StoppedError
from cdxmill.messages import say, say_lines, write_advice


class ClosedPipe(BaseException):
    """The reader of stdout has closed it (`| head`). click would report an OSError as its own failure."""


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """The stream for bytes on stdout. Raises ClosedPipe, or StoppedError if it cannot be written."""
    if sys.stdout is None:
        raise StoppedError("stdout: cannot be written (it is closed)")
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ClosedPipe from None
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        discard_output()
        raise StoppedError(
            f"stdout: cannot be written ({os.strerror(error.errno)}); {write_advice(error.errno)}"
        ) from None


def discard_output() -> None:
    """Discard what Python would write to stdout at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_summary(summary: object, *, quiet: bool) -> None:
    """Print the closing lines of a command on stderr, unless `quiet`."""
    if not quiet:
        say_lines(str(summary))


def print_error(text: str) -> None:
    """Print one line on stderr."""
    say(f"cdxmill: {text}")
