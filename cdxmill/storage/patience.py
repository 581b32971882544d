"""Requests that fail: which may succeed later, how often and how long they are repeated (CDXMILL_PATIENCE), the waits between."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from cdxmill.errors import (
    AbsentError,
    InputError,
    OutageError,
    RefusedError,
    StoppedError,
    UntriedError,
    UsageError,
)
from cdxmill.messages import human_seconds, note, printable
from cdxmill.storage import hosts

Result = TypeVar("Result")

OVERLOADED = (429, 503)
"""HTTP statuses of a server that has too much to do, whatever it is asked for."""
BUSY = frozenset((429, 500, 502, 503, 504))
"""HTTP statuses of a server in trouble: the same request may succeed later."""
DOWNLOAD = "download the file and use the local copy"
"""The hint if a server does not support what cdxmill needs."""
CONNECT_SECONDS, READ_SECONDS = 20.0, 60.0
"""After a longer silence the request is repeated."""
TRIES = 8
"""With the waits below a server has about a minute to recover. After a longer outage, run cdxmill again."""
MORE_TRIES = 12
"""Of a server that has worked in this run: in about five minutes, so that a long run outlives an outage."""
FIRST_WAIT = 0.5
"""Seconds before the second try. The wait doubles with each try: 0.5, 1, 2, ... 32."""
LONGEST_WAIT = 60.0
"""Seconds. A server may ask for more (Retry-After), but a process that waits for hours looks hung."""
PROGRESS = 1 << 16
"""Bytes. When as many have arrived, the count of tries and the time start again."""
PATIENCE = 300.0
"""Seconds in which PROGRESS bytes, or all that was asked for, must arrive. CDXMILL_PATIENCE sets another time."""
_LATER = 5
"""If a server gave no answer for one file, and none before, it has this part of the patience for the next: 60 seconds."""
_SHOWN_FROM = 1.0
"""Seconds. Shorter waits are not shown."""
_LONG = 5.0
"""Seconds. After a try that took as long, the wait is shown, however short it is."""


def patience() -> float:
    """Seconds in which a server must make progress. Raises UsageError if CDXMILL_PATIENCE is not a number of seconds."""
    text = os.environ.get("CDXMILL_PATIENCE")
    if not text:
        return PATIENCE
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:
        raise UsageError(f"CDXMILL_PATIENCE={text}: must be a number of seconds, from 1 to 86400")
    return seconds


def timeouts(tries: int = 1) -> tuple[float, float]:
    """Seconds of silence after which a try fails, while connecting and while reading. `tries` fit into patience."""
    most = patience() / tries
    return min(CONNECT_SECONDS, most), min(READ_SECONDS, most)


class TryAgain(Exception):
    """A try failed, but the next may succeed. `wait` is the time in seconds that the server asked for.

    `host` is the web server, if the failure is not that of a file: no connection was made, or it is overloaded.
    """

    def __init__(self, reason: str, wait: float = 0.0, host: str = "") -> None:
        super().__init__(reason)
        self.reason, self.wait, self.host = reason, wait, host


class Pace:
    """Watch one answer that arrives: a server may send one byte before each timeout."""

    def __init__(self) -> None:
        self._patience = patience()
        self._since, self._gained = time.monotonic(), 0

    def arrived(self, size: int) -> None:
        """Count bytes. Raises TryAgain if fewer than PROGRESS arrived in the last CDXMILL_PATIENCE seconds."""
        self._gained += size
        now = time.monotonic()
        if self._gained >= PROGRESS:
            self._since, self._gained = now, 0
        elif now - self._since > self._patience:
            raise TryAgain("sends too slowly")


class Tries:
    """Count the tries of one read of the file at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._failed = self._gained = 0
        self._since = self._last = time.monotonic()
        self._is_host = True

    def failed(self, failure: TryAgain, gained: int) -> None:
        """Wait before the next try. Raises InputError if this was the last, or if patience is over.

        `gained` bytes were received before the failure. With PROGRESS bytes or more the count starts again.
        """
        now = time.monotonic()
        self._gained += gained
        if self._gained >= PROGRESS:
            self._failed, self._gained, self._since, self._is_host = 0, 0, now, True
        self._failed += 1
        self._is_host = self._is_host and failure.host != ""
        spent = now - self._since
        most = self._most(failure)
        if self._failed >= most or spent >= self._patience(failure):
            self._give_up(failure)
            tries = "again" if most < TRIES else f"after {most} tries"
            much = tries if self._failed >= most else f"for {max(1, spent):.0f} s"
            raise OutageError(self._url, f"did not answer ({failure.reason}) {much}", "run it again")
        wait = self._wait(failure.wait)
        if wait >= _SHOWN_FROM or now - self._last >= _LONG:
            _show(f"{self._url}: {failure.reason}; try {self._failed + 1} of {most} in {wait:.0f} s")
        if spent + wait >= _LONG:
            self._note(failure, spent, most)
        time.sleep(wait)
        self._last = time.monotonic()

    def _most(self, failure: TryAgain) -> int:
        """The number of tries: one if the server was given up before, and is asked again after its rest."""
        if failure.host == hosts.host_of(self._url) and hosts.was_given_up(failure.host):
            return 1
        return MORE_TRIES if self._is_host and hosts.has_answered(failure.host) else TRIES

    def _patience(self, failure: TryAgain) -> float:
        """Seconds in which the file must make progress."""
        host = failure.host or hosts.host_of(self._url)
        return patience() / _LATER if hosts.is_silent(host) else patience()

    def _give_up(self, failure: TryAgain) -> None:
        """Note that this file was given up. Perhaps its server is, then."""
        if host := failure.host or hosts.host_of(self._url):
            hosts.failed(host, self._url, failure.reason, self._since if self._is_host else None)

    def _note(self, failure: TryAgain, spent: float, most: int) -> None:
        """Say in logs, too, that a server is asked again and how long, once for all files: nobody else sees the wait."""
        host = failure.host or hosts.host_of(self._url) or self._url
        waits = sum(min(FIRST_WAIT * (1 << number - 1), LONGEST_WAIT) for number in range(self._failed, most))
        left = min(max(waits, failure.wait), patience() - spent)
        if not _is_watched() and hosts.is_first(host, hosts.TROUBLED):
            note(f"{host}: {failure.reason}; tried again for up to {human_seconds(left)}")

    def _wait(self, asked: float) -> float:
        """Seconds to wait. They are random, so that workers that failed together do not return together."""
        import random  # slow to import

        backoff = FIRST_WAIT * (1 << self._failed - 1) * random.uniform(0.5, 1)
        return max(min(backoff, LONGEST_WAIT), min(asked, LONGEST_WAIT) * random.uniform(1, 1.1))


def wait_for_turn(url: str, host: str, rate: float | None = None) -> float:
    """As `hosts.wait_for_turn`, before a request for `url`. Raises UntriedError if the server is given up."""
    try:
        return hosts.wait_for_turn(host, rate)
    except hosts.GivenUp as why:
        raise UntriedError(url, f"{UntriedError.START}{host} {why}", "run it again later") from None


def persistently(url: str, attempt: Callable[[], Result]) -> Result:
    """The result of `attempt`. It is repeated if it raises TryAgain; raises InputError after all tries."""
    tries = Tries(url)
    while True:
        try:
            return attempt()
        except TryAgain as failure:
            tries.failed(failure, 0)


def read_range(url: str, offset: int, end: int, read: Callable[[int, bytearray], bool]) -> bytes:
    """The bytes from `offset` to `end`, in as many requests as it takes.

    `read(first, data)` appends those from `first` on to `data`. It returns False if the file ends before `first`.
    """
    data = bytearray()
    tries = Tries(url)
    while offset + len(data) < end:
        before = len(data)
        try:
            if not read(offset + before, data):
                break
        except TryAgain as failure:
            tries.failed(failure, len(data) - before)
    return bytes(data)


def refusal(url: str, status: int, reason: str, absent_hint: str) -> InputError:
    """The error for an HTTP status; `absent_hint` is its hint if the file does not exist.

    >>> refusal("http://host/a", 404, "cannot be read (404 Not Found)", "check the URL")
    AbsentError('http://host/a: cannot be read (404 Not Found); check the URL')
    """
    if status in (404, 410):
        return AbsentError(url, reason, absent_hint)
    if status in (401, 403):
        return RefusedError(url, reason, "check the access rights")
    return InputError(url, reason)


@contextmanager
def stops(url: str, done: str) -> Iterator[None]:
    """Turn InputError into StoppedError, `url: cannot be <done>: ...`: a run cannot continue without its output."""
    try:
        yield
    except InputError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise StoppedError(f"{url}: cannot be {done}: {error.reason}{hint}") from None


def _show(text: str) -> None:
    """Print a line if somebody watches: logs get the error only. The line replaces that of a progress bar."""
    with suppress(OSError, ValueError):
        if _is_watched():
            print(f"\r\x1b[K{printable(text)}", file=sys.stderr, flush=True)


def _is_watched() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
