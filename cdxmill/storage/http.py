"""Files of web servers: ranges where the server gives them, else the whole file, read once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse

from cdxmill.errors import InputError
from cdxmill.storage.connections import give_back
from cdxmill.storage.entry import Entry
from cdxmill.storage.http_faults import faults
from cdxmill.storage.http_file import HttpFile, range_of
from cdxmill.storage.local import stopping
from cdxmill.storage.patience import Tries, TryAgain

_PIECE = 1 << 16
"""Bytes taken from a body at once: as much is asked for again at most where it is cut."""
_SPOOL = Path(tempfile.gettempdir())
_COMPRESSED = (".gz", ".zst")


@contextmanager
def open_ranges(url: str) -> Iterator[Callable[[int, int], bytes]]:
    """`read_at(offset, size)` over the file at `url`; it gives fewer bytes only at the file's end.

    A server that knows no ranges is read once from start to end; what has come lies in a
    temporary file, so that any range can be read again. Raises InputError, at once or from
    `read_at`, where the file is refused, where the server does not answer for about a minute,
    and where the file changes meanwhile; StoppedError where the temporary file cannot be written.
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
    """Bytes of the file at `url`; 0 where it cannot be told. Asks once: it is for progress only."""
    file = HttpFile(url)
    try:
        give_back(file.ask(0, 0))
    except (InputError, TryAgain):
        return 0
    return file.size or 0


def status(url: str) -> Entry | None:
    """Size of the file at `url`, 0 where it cannot be told; None where none can be read. Its time is not told."""
    file = HttpFile(url)
    try:
        give_back(first_answer(file))
    except InputError:
        return None
    return Entry(file.size or 0, 0)


def first_answer(file: HttpFile) -> BaseHTTPResponse:
    """The answer to a question for one byte: shows whether the file is there, and ranges are known."""
    tries = Tries(file.url)
    while True:
        try:
            return file.ask(0, 0)
        except TryAgain as failure:
            tries.failed(failure, 0)


class HttpRanges:
    """A file whose server gives ranges."""

    def __init__(self, file: HttpFile) -> None:
        self._file = file

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`, in as many requests as it takes."""
        data = bytearray()
        tries = Tries(self._file.url)
        while len(data) < (wanted := self._there_are(offset, size)):
            before = len(data)
            try:
                if not self._read(offset + before, offset + wanted - 1, data):
                    break
            except TryAgain as failure:
                tries.failed(failure, len(data) - before)
        return bytes(data)

    def _there_are(self, offset: int, size: int) -> int:
        end = self._file.size
        return size if end is None else min(size, max(0, end - offset))

    def _read(self, first: int, last: int, data: bytearray) -> bool:
        """Append what comes of the range to `data`; False where the file has ended before it."""
        with closing(self._file.ask(first, last)) as answer:
            if answer.status == 416:
                give_back(answer)
                return False
            missing = self._promised(answer, first, last)
            for piece in _pieces(self._file.url, answer):
                data += piece[:missing]
                missing -= min(missing, len(piece))
            if missing:
                raise TryAgain("the connection was cut")
        return True

    def _promised(self, answer: BaseHTTPResponse, first: int, last: int) -> int:
        """Bytes that the answer says it holds of what was asked for."""
        if answer.status == 200:  # one machine of several that knows no ranges
            raise TryAgain("the whole file came instead of a range")
        got = range_of(answer)
        if got is None or got[0] != first or not first <= got[1] <= last:
            wrong = answer.headers.get("Content-Range", "no Content-Range")
            reason = f"the server answers a request for bytes {first}-{last} with {wrong}"
            raise InputError(self._file.url, reason, "fetch the file, then index it")
        return got[1] - first + 1


class _Whole:
    """A file whose server knows no ranges: what has come of it lies in a temporary file."""

    def __init__(self, file: HttpFile, answer: BaseHTTPResponse) -> None:
        self._file = file
        self._answer: BaseHTTPResponse | None = answer
        self._coming = self._content(answer, 0)
        self._have, self._ended = 0, False
        with stopping(_SPOOL):
            self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()

    def close(self) -> None:
        """Close the connection; the temporary file is gone with it."""
        self._hang_up()
        self._spool.close()

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`; what lies before them is fetched first where it was not yet."""
        tries = Tries(self._file.url)
        while self._have < offset + size and not self._ended:
            before = self._have
            try:
                self._fetch(offset + size)
            except TryAgain as failure:
                self._hang_up()
                tries.failed(failure, self._have - before)
        if offset >= self._have:
            return b""
        with stopping(_SPOOL):
            self._spool.seek(offset)
            return self._spool.read(size)

    def _fetch(self, end: int) -> None:
        """Spool bytes until `end` of them are there, or the file ends."""
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
            raise TryAgain("the connection was cut")
        self._ended = True

    def _content(self, answer: BaseHTTPResponse, start: int) -> Iterator[bytes]:
        """The file's bytes from `start` on."""
        encoding = answer.headers.get("Content-Encoding", "identity")
        if encoding != "identity" and not urlsplit(self._file.url).path.endswith(_COMPRESSED):
            reason = f"the server compresses what it sends ({encoding}): offsets would be wrong"
            raise InputError(self._file.url, reason, "fetch the file, then index it")
        for piece in _pieces(self._file.url, answer):
            rest = piece[start:]
            start -= len(piece) - len(rest)
            if rest:
                yield rest

    def _hang_up(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None


def _pieces(url: str, answer: BaseHTTPResponse) -> Iterator[bytes]:
    """The body as it was sent: a Content-Encoding, which servers put on any .gz, is part of the file."""
    with faults(url):
        yield from answer.stream(_PIECE, decode_content=False)
