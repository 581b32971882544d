"""The size and the first bytes of a file on a web server, in one request."""

from __future__ import annotations

from contextlib import closing

from cdxmill.storage.entry import Entry
from cdxmill.storage.patience import TryAgain, persistently
from cdxmill.storage.web.bodies import pieces_of
from cdxmill.storage.web.exchange import Answer
from cdxmill.storage.web.http_file import HttpFile, range_of


def look_by_http(url: str, size: int) -> tuple[Entry, bytes]:
    """The size of the file at `url`, 0 if unknown, and its first `size` bytes.

    Fewer if the server answers with a shorter range, as HTTP allows (RFC 9110, 14.2).
    Raises InputError if the server refuses, or does not answer after all tries.
    """
    file = HttpFile(url)

    def attempt() -> tuple[Entry, bytes]:
        with closing(file.ask(0, size - 1)) as answer:
            return Entry(file.size or 0, 0), _head(file, answer, size)

    return persistently(url, attempt)


def _head(file: HttpFile, answer: Answer, size: int) -> bytes:
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
