"""The size and the first bytes of a file on a web server, in one request."""

from __future__ import annotations

from contextlib import closing

from urllib3 import BaseHTTPResponse

from cdxmill.storage.entry import Entry
from cdxmill.storage.http_faults import faults
from cdxmill.storage.http_file import HttpFile, range_of
from cdxmill.storage.patience import Tries, TryAgain

_PIECE = 1 << 16


def look_by_http(url: str, size: int) -> tuple[Entry, bytes]:
    """The size of the file at `url`, 0 if unknown, and its first `size` bytes.

    Raises InputError if the server refuses, or does not answer after all tries.
    """
    file, tries = HttpFile(url), Tries(url)
    while True:
        try:
            with closing(file.ask(0, size - 1)) as answer:
                return _read(file, answer, size)
        except TryAgain as failure:
            tries.failed(failure, 0)


def _read(file: HttpFile, answer: BaseHTTPResponse, size: int) -> tuple[Entry, bytes]:
    entry = Entry(file.size or 0, 0)
    if answer.status == 416 or (range_of(answer) or (0, 0))[0]:  # an empty file; not the range asked for
        return entry, b""
    head = bytearray()
    with faults(file.url):
        for piece in answer.stream(_PIECE, decode_content=False):
            head += piece
            if len(head) >= size:
                break
    if len(head) < min(size, file.size or 0):
        raise TryAgain("the connection was cut")
    return entry, bytes(head[:size])
