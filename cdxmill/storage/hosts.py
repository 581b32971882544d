"""What a run knows of each web server: when to ask it again, and whether it is given up.

All threads and processes of a run know the same, by a file without a name that they inherit. Its locks end with their
process. Nothing here waits for an answer: web/http_file asks before each request, and reports what came of it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

from cdxmill.errors import UsageError
from cdxmill.storage.optional import is_optional
from cdxmill.version import HOME, __version__

TROUBLES = 3
"""Files of a server that are refused, or given up after all tries, one after the other: then the server is given up."""
_BURST = 64
"""Requests without a wait: a lookup has fewer."""
_RATES = {"data.commoncrawl.org": 50.0, ".amazonaws.com": 50.0, "": 10.0}
"""Requests per second to the hosts of others, by the end of the name. Common Crawl serves a few thousand to all its users."""
_SLOTS = 64
"""Servers that are remembered. A further one takes the place of another, which begins anew."""
_REST, _LONG_REST = 60.0, 900.0
"""Seconds. Then a server that did not answer, or that refused, is asked again, with one try: a CDX server lives longer than an outage."""
_SLOT = struct.Struct("=Qdddd3IB83p")
"""136 bytes, so that a number is never read while half of it is written."""
_CONTACT = "CDXMILL_CONTACT"
_FRESH = 1.0
"""Seconds. An answer is noted again only after this time."""


_UNKNOWN = _SLOT.unpack(bytes(_SLOT.size))


class GivenUp(Exception):
    """No request is sent to this server any more. The text says why."""


@dataclass
class _Host:
    """What is known of a server. Times are those of the machine's clock, the same for all processes."""

    key: int = 0
    turn: float = 0.0
    """When the next request may be sent, if there were no burst."""
    pause: float = 0.0
    """Until when the server wants no request."""
    answered: float = 0.0
    """When it last gave an answer that can be used."""
    rests: float = 0.0
    """Until when nothing is asked of it, if it is given up."""
    troubled: tuple[int, ...] = (0, 0, 0)
    """The files that failed since then."""
    notes: int = 0
    """The notes that were printed."""
    why: str = ""
    """Why it is given up."""

    def packed(self) -> bytes:
        why = self.why.encode("utf-8", "replace")  # its first 82 bytes are kept
        times = self.turn, self.pause, self.answered, self.rests
        return _SLOT.pack(self.key, *times, *self.troubled, self.notes, why)

    @classmethod
    def unpacked(cls, data: bytes) -> _Host:
        key, turn, pause, answered, rests, *troubled, notes, why = _SLOT.unpack(data)
        return cls(key, turn, pause, answered, rests, tuple(troubled), notes, why.decode("utf-8", "replace"))

    def give_up(self, why: str, rest: float = _REST) -> None:
        self.why, self.rests = why, time.monotonic() + rest


class _Table:
    """The file. It is made before the first fork, so that processes share it."""

    def __init__(self) -> None:
        self._file = os.memfd_create("hosts") if hasattr(os, "memfd_create") else _unnamed_file()
        os.ftruncate(self._file, _SLOTS * _SLOT.size)
        self._map = mmap.mmap(self._file, 0)
        self._known: dict[str, tuple[int, int]] = {}
        self.lock = Lock()

    def at(self, number: int) -> _Host:
        return _Host.unpacked(self._map[number * _SLOT.size : (number + 1) * _SLOT.size])

    def now(self, host: str) -> tuple[Any, ...]:
        """The numbers and the text of a server, as they are packed: each request needs them."""
        number, key = self._known.get(host) or self._found(host)
        found = _SLOT.unpack_from(self._map, number * _SLOT.size)
        if found[0] != key:  # another server took the place, and this one may have another since
            number, key = self._found(host)
            found = _SLOT.unpack_from(self._map, number * _SLOT.size)
        return found if found[0] == key else _UNKNOWN

    def _found(self, host: str) -> tuple[int, int]:
        number, found = self.find(host)
        if self.at(number).key == found.key:
            self._known[host] = number, found.key
        return number, found.key

    def find(self, host: str) -> tuple[int, _Host]:
        """The place of a server, and what is known of it."""
        key = hash(host) & (1 << 64) - 1 | 1
        for step in range(_SLOTS):
            number = (key + step) % _SLOTS
            if (found := self.at(number)).key in (0, key):
                return number, found if found.key else _Host(key)
        return key % _SLOTS, _Host(key)

    @contextmanager
    def changing(self, host: str) -> Iterator[_Host]:
        """What is known of a server, to be changed by one thread at a time."""
        with self.lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                number, found = self.find(host)
                yield found
                self._map[number * _SLOT.size : (number + 1) * _SLOT.size] = found.packed()
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def begin(self) -> None:
        """Forget what an earlier run gave up. The limits of requests stay."""
        for number in range(_SLOTS):
            if (found := self.at(number)).key:
                new = _Host(found.key, found.turn, found.pause)
                self._map[number * _SLOT.size : (number + 1) * _SLOT.size] = new.packed()


_tables: list[_Table] = []


def _unnamed_file() -> int:
    import tempfile  # slow to import

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _table() -> _Table:
    if not _tables:
        _tables.append(_Table())
    return _tables[0]


def share() -> None:
    """Share what is known with the processes that are forked from now on."""
    _table()


def begin_run() -> None:
    """Forget which servers an earlier run of this process gave up."""
    for table in _tables:
        table.begin()


def _after_fork() -> None:
    for table in _tables:
        table.lock = Lock()  # a thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)


@lru_cache(maxsize=1024)
def host_of(url: str) -> str:
    """The host and port of an http URL, the bucket of an s3 URL; "" for others.

    >>> host_of("https://Host:8080/a?b"), host_of("s3://bucket/a"), host_of("hdfs://node/a")
    ('host:8080', 's3://bucket', '')
    """
    scheme, _, rest = url.partition("://")
    if scheme.lower() == "s3":
        return f"s3://{rest.partition('/')[0]}"
    if scheme.lower() not in ("http", "https"):
        return ""
    return re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[2].lower()


def is_polite() -> bool:
    """Whether the hosts of others are treated as such. Raises UsageError for an invalid CDXMILL_POLITE."""
    setting = os.environ.get("CDXMILL_POLITE", "on")
    if setting not in ("", "on", "off"):
        raise UsageError(f"CDXMILL_POLITE={setting}: must be on or off")
    return setting != "off"


def user_agent() -> str:
    """What requests say of who sends them. Raises UsageError for an invalid CDXMILL_CONTACT."""
    return _agent(os.environ.get(_CONTACT, ""))


@lru_cache(maxsize=4)
def _agent(contact: str) -> str:
    """Who asks: the program, and whom to write to. Raises UsageError for a contact that no header can have."""
    if not all(" " <= letter <= "~" and letter not in "()\\" for letter in contact):
        raise UsageError(
            f"{_CONTACT}={contact}: use printable ASCII without brackets, such as an e-mail address"
        )
    return f"cdxmill/{__version__} (+{HOME}{contact and '; '}{contact})"


def rate_of(host: str) -> float:
    """Requests per second that a host of others gets at most.

    >>> rate_of("data.commoncrawl.org"), rate_of("archive.example:8080")
    (50.0, 10.0)
    """
    name = host.partition(":")[0]
    return next(rate for ending, rate in _RATES.items() if name.endswith(ending))


def wait_for_turn(host: str, rate: float | None) -> float:
    """Wait until a request may be sent. With a `rate`, requests after a burst are spread: it is their number per second.

    Returns the seconds. Raises GivenUp, also after a wait.
    """
    table, waited = _table(), 0.0
    until = _until(table, host, rate)
    while (left := until - time.monotonic()) > 0:
        time.sleep(left)
        waited += left
        pause = _pause(table, host)  # another worker may have been told to wait
        if pause <= until:
            break
        until = pause
    return waited


def _until(table: _Table, host: str, rate: float | None) -> float:
    pause = _pause(table, host)
    if rate is None:
        return pause
    with table.changing(host) as found:
        now = time.monotonic()
        found.turn = max(found.turn, now) + 1 / rate
        return max(found.pause, found.turn - _BURST / rate)


def _pause(table: _Table, host: str) -> float:
    """Until when the server wants no request. Raises GivenUp."""
    _, _, pause, _, rests, *_, why = table.now(host)
    if why and time.monotonic() < rests:
        raise GivenUp(why.decode("utf-8", "replace"))
    return float(pause)


def answered(host: str) -> None:
    """Note an answer that shows that the server works."""
    _, _, _, last, _, _, _, trouble, notes, _ = _table().now(host)
    now = time.monotonic()
    if trouble or notes & TROUBLED or now - last > _FRESH:
        with _table().changing(host) as found:
            found.answered, found.troubled, found.notes = now, (0, 0, 0), found.notes & ~TROUBLED
            found.why = ""


def has_answered(host: str) -> bool:
    """Whether a server has worked in this run."""
    return _table().find(host)[1].answered > 0


def is_silent(host: str) -> bool:
    """Whether a file of a server was given up, and the server has not worked in this run."""
    found = _table().find(host)[1]
    return any(found.troubled) and not found.answered


def was_given_up(host: str) -> bool:
    """Whether a server was given up, and has not worked since."""
    return bool(_table().find(host)[1].why)


def pause(host: str, seconds: float) -> None:
    """Note that the server wants no request for some seconds."""
    with _table().changing(host) as found:
        found.pause = max(found.pause, time.monotonic() + seconds)


def refused(host: str, url: str, status: int) -> None:
    """Note that the server refuses a file. TROUBLES of them in a row, and the server is given up. A `host` of "" is none."""
    if host and is_polite() and not is_optional():
        _count(host, url, f"refused {TROUBLES} files in a row ({status})", _LONG_REST)


def failed(host: str, url: str, reason: str, since: float | None) -> None:
    """Note that a file was given up after all tries.

    If all tries `since` that time have failed because of the server, it is given up, else after TROUBLES files in a row.
    """
    is_dead = since is not None and _table().find(host)[1].answered + _FRESH < (since + time.monotonic()) / 2
    if is_dead:
        with _table().changing(host) as found:
            found.give_up(f"did not answer ({reason})")
    elif is_polite():
        _count(host, url, f"did not answer for {TROUBLES} files in a row ({reason})")


def _count(host: str, url: str, why: str, rest: float = _REST) -> None:
    mark = hash(url) & (1 << 32) - 1 | 1
    with _table().changing(host) as found:
        if mark not in found.troubled:
            found.troubled = (*found.troubled[1:], mark)
        if all(found.troubled):
            found.give_up(found.why or why, rest)


TROUBLED, SLOWED, WHOLE = 1, 2, 4
"""Notes about a server that are printed once: it is asked again, requests are spread, it has no ranges."""


def is_first(host: str, note: int) -> bool:
    """Whether a note about a server was not printed yet. The first is printed again after the next answer."""
    if _table().find(host)[1].notes & note:
        return False
    with _table().changing(host) as found:
        is_new = not found.notes & note
        found.notes |= note
    return is_new
