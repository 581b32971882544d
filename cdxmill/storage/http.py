"""Files of web servers, read in ranges, or whole if the server does not support ranges."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse

from cdxmill.errors import AbsentError, InputError, RefusedError
from cdxmill.storage.connections import give_back
from cdxmill.storage.entry import Entry
from cdxmill.storage.http_faults import faults
from cdxmill.storage.http_file import HttpFile, range_of
from cdxmill.storage.local import stopping
from cdxmill.storage.patience import Tries, TryAgain
from cdxmill.storage.refusals import DOWNLOAD

_PIECE = 1 << 16
"""Bytes that are read from a body at once. At most this much is lost and requested again."""
_SPOOL = Path(tempfile.gettempdir())
_COMPRESSED = (".gz", ".zst")


@contextmanager
def open_ranges(url: str) -> Iterator[Callable[[int, int], bytes]]:
    """Open the file at `url`: `read_at(offset, size)` returns fewer bytes only at the end of the file.

    If the server does not support ranges, the file is downloaded once, to a temporary file. Raises AbsentError
    or RefusedError if the file cannot be read. Raises InputError, here or from `read_at`, if the server does
    not answer for about a minute or the file changes while it is read. Raises StoppedError if the temporary
    file cannot be written.
    """
    file = HttpFile(url)
    first = first_answer(file)
    if first.status == 200:
        with closing(_Whole(file, first)) as whole:
            yield whole.read_at
    else:
        give_back(first)
        yield HttpRanges(file).read_at


def file_size(url: str) -> int:
    """The size of a file in bytes; 0 if it is unknown. Sends one request only, as the size is for progress."""
    file = HttpFile(url)
    try:
        give_back(file.ask(0, 0))
    except (InputError, TryAgain):
        return 0
    return file.size or 0


def status(url: str) -> Entry | None:
    """The size of a file, 0 if it is unknown, and 0 as its time; None if it does not exist or is refused.

    Refused is not told from missing, because buckets behind HTTP answer 403 for both. Raises InputError if the
    server does not answer: the file may exist.
    """
    file = HttpFile(url)
    try:
        give_back(first_answer(file))
    except (AbsentError, RefusedError):
        return None
    return Entry(file.size or 0, 0)


def first_answer(file: HttpFile) -> BaseHTTPResponse:
    """The answer to a request for one byte. It shows whether the file exists and ranges are supported."""
    tries = Tries(file.url)
    while True:
        try:
            return file.ask(0, 0)
        except TryAgain as failure:
            tries.failed(failure, 0)


class HttpRanges:
    """A file whose server supports ranges."""

    def __init__(self, file: HttpFile) -> None:
        self._file = file

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`, in as many requests as it takes."""
        data = bytearray()
        tries = Tries(self._file.url)
        while len(data) < (wanted := self._available(offset, size)):
            before = len(data)
            try:
                if not self._read(offset + before, offset + wanted - 1, data):
                    break
            except TryAgain as failure:
                tries.failed(failure, len(data) - before)
        return bytes(data)

    def _available(self, offset: int, size: int) -> int:
        end = self._file.size
        return size if end is None else min(size, max(0, end - offset))

    def _read(self, first: int, last: int, data: bytearray) -> bool:
        """Append the bytes of the range to `data`; False if the file ends before it."""
        with closing(self._file.ask(first, last)) as answer:
            if answer.status == 416:
                give_back(answer)
                return False
            missing = self._range_size(answer, first, last)
            for piece in _pieces(self._file.url, answer):
                data += piece[:missing]
                missing -= min(missing, len(piece))
            if missing:
                raise TryAgain("connection lost")
        return True

    def _range_size(self, answer: BaseHTTPResponse, first: int, last: int) -> int:
        """The number of bytes of the range that the answer has, from its headers."""
        if answer.status == 200:  # one of several machines does not support ranges
            raise TryAgain("the server sent the whole file instead of a range")
        got = range_of(answer)
        if got is None or got[0] != first or not first <= got[1] <= last:
            wrong = answer.headers.get("Content-Range", "no Content-Range")
            reason = f"the server answers a request for bytes {first}-{last} with {wrong}"
            raise InputError(self._file.url, reason, DOWNLOAD)
        return got[1] - first + 1


class _Whole:
    """A file whose server does not support ranges. The part read so far is in a temporary file.

    Threads may share it. They read one after the other.
    """

    def __init__(self, file: HttpFile, answer: BaseHTTPResponse) -> None:
        self._file = file
        self._answer: BaseHTTPResponse | None = answer
        self._coming = self._content(answer, 0)
        self._have, self._ended = 0, False
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
        self._ended = True

    def _content(self, answer: BaseHTTPResponse, start: int) -> Iterator[bytes]:
        """Yield the file's bytes from `start` on."""
        encoding = answer.headers.get("Content-Encoding", "identity")
        if encoding != "identity" and not urlsplit(self._file.url).path.endswith(_COMPRESSED):
            reason = f"the server compresses the file ({encoding}), so offsets would be wrong"
            raise InputError(self._file.url, reason, DOWNLOAD)
        for piece in _pieces(self._file.url, answer):
            rest = piece[start:]
            start -= len(piece) - len(rest)
            if rest:
                yield rest

    def _disconnect(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None


def _pieces(url: str, answer: BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the body as it is stored: servers set Content-Encoding for .gz files, so it must not be decoded."""
    with faults(url):
        yield from answer.stream(_PIECE, decode_content=False)
