"""A lock on a remote output directory, where no file can be locked: DIRECTORY/.lock says who writes, and since when.

The run renews it from time to time. A lock that was not renewed for an hour is that of a killed run, and so is one of a
process of this machine that has ended. Two runs that begin in the same moment both write the lock, and the later one
has it; the other one stops before it finishes its first file.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cdxmill.errors import AbsentError, InputError, StoppedError, UsageError
from cdxmill.running.lock import LOCK
from cdxmill.storage.location import Location

RENEWED = 300.0
"""Seconds after which a lock is checked and renewed during a run. It costs two requests."""
_STALE = 3600.0
"""Seconds. A file of the largest size is uploaded in less."""


@contextmanager
def hold_remote(directory: Location) -> Iterator[Callable[[float], None]]:
    """Hold a remote directory. Yields a function that raises StoppedError if another run has taken it, and renews the lock.

    It does nothing if it did that in the last seconds, whose number it takes. Raises UsageError if another run holds it.
    """
    path = directory / LOCK
    lock = _Lock(path)
    lock.take(directory)
    try:
        yield lock.check
    finally:
        with suppress(InputError, StoppedError):
            if _read(path).get("run") == lock.run:
                path.remove()


class _Lock:
    def __init__(self, path: Location) -> None:
        self._path, self.run = path, os.urandom(8).hex()

    def take(self, directory: Location) -> None:
        """Write the lock. Raises UsageError if another run has it."""
        found = _read(self._path)
        if found and not _is_stale(found):
            who = f"process {found.get('process')} on {found.get('host')} since {found.get('since')}"
            hint = f"wait until it ends, or delete {self._path} if it was killed"
            raise UsageError(f"{directory}: another run writes to this directory ({who}); {hint}")
        self._since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        self._write()

    def check(self, seconds: float) -> None:
        """Raise StoppedError if another run has taken the lock; else renew it. Not if that was `seconds` ago or less."""
        if time.monotonic() - self._renewed <= seconds:
            return
        if _read(self._path).get("run") != self.run:
            raise StoppedError(
                f"{self._path}: another run has taken this directory; run it again when that ends"
            )
        if time.monotonic() - self._renewed > RENEWED:
            self._write()

    def _write(self) -> None:
        known = {"run": self.run, "process": os.getpid(), "host": socket.gethostname(), "since": self._since}
        with self._path.write_atomic() as file:
            file.write(json.dumps({**known, "renewed": time.time()}).encode() + b"\n")
        self._renewed = time.monotonic()


def _read(path: Location) -> dict[str, Any]:
    """The content of a lock; {} if there is none, or if it cannot be understood."""
    try:
        found = json.loads(path.read_bytes())
    except (AbsentError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_stale(found: dict[str, Any]) -> bool:
    """Whether the run that wrote the lock was killed."""
    with suppress(KeyError, TypeError, ValueError):
        if found["host"] == socket.gethostname() and not _is_running(int(found["process"])):
            return True
        return time.time() - float(found["renewed"]) > _STALE
    return True


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
