"""Answers over HTTP: their bodies, read in pieces, and the errors on the way: those worth another try, and those that are final."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress

from urllib3 import BaseHTTPResponse, exceptions
from urllib3.exceptions import (
    HTTPError,
    LocationValueError,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    SSLError,
)

from cdxmill.errors import InputError
from cdxmill.storage.patience import Pace, TryAgain

_PIECE = 1 << 16
"""Bytes that are read from a body at once. At most this much is lost and requested again."""
_SHORT = 1 << 14
"""Bytes. An unwanted body up to this size is read, which takes less time than a new connection."""
_SOON = 1.0
"""Seconds. An unwanted body that takes longer is not read to its end."""
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (NameResolutionError, "the host name cannot be resolved"),
    (ProxyError, "no connection through the proxy"),
    (NewConnectionError, "no connection"),
    (exceptions.TimeoutError, "timed out"),
    (TimeoutError, "timed out"),
    (SSLError, "no TLS connection"),
)


class faults:  # noqa: N801 - used as a function
    """Turn errors of urllib3 into TryAgain if another try may help, else into InputError.

    A class, as a generator would take longer: it is used for each piece of a file.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *trace: object) -> None:
        if not isinstance(error, (HTTPError, OSError, ValueError)):
            return
        cause = error.reason if isinstance(error, MaxRetryError) and error.reason else error
        final = _final_reason(cause)
        if final is not None:
            raise InputError(self._url, *final) from None
        trouble = next((text for kind, text in _REASONS if isinstance(cause, kind)), "connection lost")
        raise TryAgain(trouble) from None


def pieces_of(url: str, answer: BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the body as it is stored: servers set Content-Encoding for .gz files, so it must not be decoded.

    Raises TryAgain if the connection breaks or the body arrives too slowly.
    """
    pace = Pace()
    while piece := piece_of(url, answer, _PIECE):
        pace.arrived(len(piece))
        yield piece


def piece_of(url: str, answer: BaseHTTPResponse, size: int) -> bytes:
    """The bytes of the body that have arrived, at most `size`; b"" at its end. Raises TryAgain."""
    with faults(url):
        return answer.read1(min(size, _PIECE), decode_content=False)


def small_body(url: str, answer: BaseHTTPResponse, most: int) -> bytes:
    """The whole body. Raises InputError if it has more than `most` bytes, TryAgain as `pieces_of`."""
    data = bytearray()
    for piece in pieces_of(url, answer):
        data += piece
        if len(data) > most:
            answer.close()
            raise InputError(url, f"the answer has more than {most} bytes")
    return bytes(data)


def give_back(answer: BaseHTTPResponse) -> None:
    """End an answer whose body is not wanted. The connection is kept if the rest of the body is short."""
    left, end = _SHORT, time.monotonic() + _SOON
    with suppress(HTTPError, OSError):
        while left > 0 and time.monotonic() < end and (piece := answer.read1(left, decode_content=False)):
            left -= len(piece)
    answer.close()


def _final_reason(error: Exception) -> tuple[str, str] | None:
    """The reason and hint of an error that no other try can mend; None for all others."""
    if isinstance(error, NameResolutionError) and _is_unknown(error.__cause__ or error.__context__):
        return "unknown host", "check the URL"
    if isinstance(error, SSLError) and isinstance(error.args[0], ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid ({error.args[0].verify_message})", ""
    if isinstance(error, LocationValueError) or (
        isinstance(error, ValueError) and not isinstance(error, OSError)
    ):
        return f"is not a valid URL ({' '.join(str(error).split())})", "check the URL"
    return None


def _is_unknown(reason: BaseException | None) -> bool:
    return isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME
