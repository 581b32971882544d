"""Files of web servers, read in ranges, or whole if the server does not support ranges."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock

from urllib3 import BaseHTTPResponse

from cdxmill.errors import AbsentError, InputError, RefusedError
from cdxmill.storage.hosts import optional
from cdxmill.storage.interface import Entry
from cdxmill.storage.local import stopping
from cdxmill.storage.patience import Tries, TryAgain, persistently
from cdxmill.storage.web.connections import give_back, pieces_of
from cdxmill.storage.web.http_file import HttpFile, range_of

_SPOOL = Path(tempfile.gettempdir())


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

    def __init__(self, file: HttpFile, answer: BaseHTTPResponse) -> None:
        self._file = file
        self._answer: BaseHTTPResponse | None = answer
        self._coming = self._content(answer, 0)
        self._have, self._ended, self._end = 0, False, -1
        self._lock = Lock()
        try:
            with stopping(_SPOOL):
                self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
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
        with stopping(_SPOOL):
            self._spool.seek(offset)
            return self._spool.read(size)

    def _fetch(self, end: int) -> None:
        """Write to the temporary file until it has `end` bytes, or the file ends."""
        if self._answer is None:
            self._answer = self._file.ask()
            self._coming = self._content(self._answer, self._have)
        for piece in self._coming:
            with stopping(_SPOOL):
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
