"""Bodies of answers over HTTP: read in pieces, with a bound on the time and, if they are small, on the size."""

from __future__ import annotations

from collections.abc import Iterator

from cdxmill.errors import InputError
from cdxmill.storage.patience import Pace
from cdxmill.storage.web.exchange import Answer
from cdxmill.storage.web.http_faults import faults

_PIECE = 1 << 16
"""Bytes that are read from a body at once. At most this much is lost and requested again."""


def pieces_of(url: str, answer: Answer) -> Iterator[bytes]:
    """Yield the body as it is stored: servers set Content-Encoding for .gz files, so it must not be decoded.

    Raises TryAgain if the connection breaks or the body arrives too slowly.
    """
    pace = Pace()
    while piece := piece_of(url, answer, _PIECE):
        pace.arrived(len(piece))
        yield piece


def piece_of(url: str, answer: Answer, size: int) -> bytes:
    """The bytes of the body that have arrived, at most `size`; b"" at its end. Raises TryAgain."""
    with faults(url):
        return answer.read1(min(size, _PIECE), decode_content=False)


def small_body(url: str, answer: Answer, most: int) -> bytes:
    """The whole body. Raises InputError if it has more than `most` bytes, TryAgain as `pieces_of`."""
    data = bytearray()
    for piece in pieces_of(url, answer):
        data += piece
        if len(data) > most:
            answer.close()
            raise InputError(url, f"the answer has more than {most} bytes")
    return bytes(data)
