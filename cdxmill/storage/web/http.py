"""Files of web servers, read in ranges, or whole if the server does not support ranges."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import IO

from urllib3 import BaseHTTPResponse

from cdxmill.errors import AbsentError, InputError, RefusedError
from cdxmill.messages import note
from cdxmill.storage import hosts
from cdxmill.storage.interface import Entry
from cdxmill.storage.local import read_fully, stopping
from cdxmill.storage.optional import optional
from cdxmill.storage.own import open_own
from cdxmill.storage.patience import Tries, TryAgain, persistently
from cdxmill.storage.web.connections import give_back, pieces_of
from cdxmill.storage.web.http_file import HttpFile, range_of

_SPOOL = Path(tempfile.gettempdir())
_COMPLETE = 0o100
"""The bit of a file's mode that shows that it is downloaded: it changes in one step."""


@contextmanager
def open_ranges(url: str) -> Iterator[Callable[[int, int], bytes]]:
    """Open a file (see `Location.open_ranges`). If the server does not support ranges, it is downloaded to a temporary file.

    That is done once, as far as the file is read. Raises StoppedError if the temporary file cannot be written.
    """
    file = HttpFile(url)
    first = file.first_answer()
    if first.status == 200:
        with closing(_Whole(file, first)) as whole:
            yield whole.read_at
    else:
        give_back(first)
        yield file.read_at


def shared_path(url: str, directory: Path) -> Path:
    """Where `open_once` keeps a file."""
    return directory / f"whole-{hashlib.sha256(os.fsencode(url)).hexdigest()[:32]}"


@contextmanager
def open_once(url: str, directory: Path) -> Iterator[Callable[[int, int], bytes]]:
    """Open a file whose server does not support ranges. One process downloads it to `directory`, the others wait for it.

    The last process that closes it deletes it. Raises as `open_ranges` does.
    """
    path = shared_path(url, directory)
    with stopping(path):
        directory.mkdir(parents=True, exist_ok=True)
        handle = open_own(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _is_complete(handle):
            with suppress(BlockingIOError):  # another process downloads it
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.fstat(handle).st_mode & _COMPLETE:
                    _download(url, path, handle)
                    os.fchmod(handle, 0o600 | _COMPLETE)
        yield lambda offset, size: read_fully(handle, offset, size)
    finally:
        with suppress(OSError):  # another process reads it
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        os.close(handle)


def _is_complete(handle: int) -> bool:
    """Wait until no process downloads it. Whether one has; then it is held, so that nobody deletes it."""
    fcntl.flock(handle, fcntl.LOCK_SH)
    return bool(os.fstat(handle).st_mode & _COMPLETE)


def _download(url: str, path: Path, target: int) -> None:
    if hosts.is_first(host := hosts.host_of(url), hosts.WHOLE):
        note(f"{host}: does not support ranges, so whole archives are downloaded")
    file = HttpFile(url)
    with closing(_Whole(file, file.first_answer(), target, path)) as whole:
        whole.read_at(1 << 62, 1)


def _open_spool(target: int | None) -> IO[bytes]:
    if target is None:
        return tempfile.TemporaryFile()
    os.ftruncate(target, 0)  # a download that failed
    return os.fdopen(os.dup(target), "w+b")


def status(url: str) -> Entry | None:
    """The size of a file, 0 if it is unknown, and 0 as its time. None if it does not exist or is refused.

    Refused is not told from missing, because buckets behind HTTP answer 403 for both. Raises InputError if the
    server does not answer: the file may exist.
    """
    file = HttpFile(url)
    try:
        with optional():
            give_back(file.first_answer())
    except (AbsentError, RefusedError):
        return None
    return file.entry()


def look(url: str, size: int) -> tuple[Entry, bytes]:
    """The size of a file, 0 if unknown, and its first `size` bytes. Raises InputError.

    They are fewer if the server answers with a shorter range, as HTTP allows (RFC 9110, 14.2).
    """
    file = HttpFile(url)
    size = max(size, 1)  # a file of unknown size is empty if it has no first byte

    def attempt() -> tuple[Entry, bytes]:
        with closing(file.ask(0, size - 1)) as answer:
            return file.entry(), _head(file, answer, size)

    return persistently(url, attempt)


class _Whole:
    """A file whose server does not support ranges. The part read so far is in a temporary file.

    Threads may share it. They read one after the other.
    """

    def __init__(
        self, file: HttpFile, answer: BaseHTTPResponse, target: int | None = None, place: Path = _SPOOL
    ) -> None:
        """`target` is an open file, at `place`, to be written in place of a temporary one."""
        self._file = file
        self._answer: BaseHTTPResponse | None = answer
        self._coming = self._content(answer, 0)
        self._have, self._ended, self._end = 0, False, -1
        self._lock = Lock()
        self._place = place
        try:
            with stopping(self._place):
                self._spool = _open_spool(target)
        except BaseException:
            answer.close()
            raise

    def close(self) -> None:
        """Close the connection, and delete the temporary file."""
        self._disconnect()
        self._spool.close()

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`. The bytes before them are fetched first if that has not been done."""
        with self._lock:
            return self._read_at(offset, size)

    def _read_at(self, offset: int, size: int) -> bytes:
        tries = Tries(self._file.url)
        while self._have < offset + size and not self._ended:
            before = self._have
            try:
                self._fetch(offset + size)
            except TryAgain as failure:
                self._disconnect()
                tries.failed(failure, self._have - before)
        if offset >= self._have:
            return b""
        with stopping(self._place):
            self._spool.seek(offset)
            return self._spool.read(size)

    def _fetch(self, end: int) -> None:
        """Write to the temporary file until it has `end` bytes, or the file ends."""
        if self._answer is None:
            self._answer = self._file.ask()
            self._coming = self._content(self._answer, self._have)
        for piece in self._coming:
            with stopping(self._place):
                self._spool.seek(self._have)
                self._spool.write(piece)
            self._have += len(piece)
            if self._have >= end:
                return
        if self._have < (self._file.size or 0):
            raise TryAgain("connection lost")
        if self._file.size is not None and self._have > self._file.size:
            raise InputError(self._file.url, "has changed while it was read", "run it again")
        if not self._is_sure(self._answer) and self._end != self._have:
            self._end = self._have
            raise TryAgain("the server reports no size, so the end is asked for again")
        self._ended = True

    def _is_sure(self, answer: BaseHTTPResponse) -> bool:
        """Whether a truncated answer would have been noticed. Without a size, an end is sure if it is seen twice."""
        is_chunked = answer.headers.get("transfer-encoding", "").lower().endswith("chunked")
        return self._file.size is not None or is_chunked

    def _content(self, answer: BaseHTTPResponse, start: int) -> Iterator[bytes]:
        """Yield the file's bytes from `start` on."""
        for piece in pieces_of(self._file.url, answer):
            rest = piece[start:]
            start -= len(piece) - len(rest)
            if rest:
                yield rest

    def _disconnect(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None


def _head(file: HttpFile, answer: BaseHTTPResponse, size: int) -> bytes:
    """The first bytes of the file: as many as the answer promises, at most `size`."""
    if answer.status == 416:  # an empty file
        return b""
    _, last = range_of(answer) or (0, (file.size or 0) - 1)
    head = bytearray()
    for piece in pieces_of(file.url, answer):
        head += piece
        if len(head) >= size:
            break
    if len(head) < min(size, last + 1):
        raise TryAgain("connection lost")
    return bytes(head[:size])
