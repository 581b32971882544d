"""What the start scripts of the jobs share: they end as `cdxmill` does, with a line on stderr and its exit statuses."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

from cdxmill.messages import say


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP exit by an exception, so that the engine ends its tasks and temporary files are removed."""
    signal.signal(signal.SIGTERM, _exit)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # nohup ignores it
        signal.signal(signal.SIGHUP, _exit)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def fail(reason: object, status: int) -> int:
    """Print the reason in one line. Returns the status."""
    say(str(reason).replace("\n", " "))
    return status
