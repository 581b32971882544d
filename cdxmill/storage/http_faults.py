"""What goes wrong on the way to a web server: worth another try, or hopeless."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from urllib3.exceptions import (
    HTTPError,
    LocationValueError,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    ResponseError,
    SSLError,
    TimeoutError,
)

from cdxmill.errors import InputError
from cdxmill.storage.patience import TryAgain

REDIRECTS = 5
"""A loop of redirects has no end; real ones are one or two."""

_TROUBLES: tuple[tuple[type[Exception], str], ...] = (
    (NameResolutionError, "the host's name cannot be looked up"),
    (ProxyError, "no connection through the proxy"),
    (NewConnectionError, "no connection"),
    (TimeoutError, "timed out"),
    (SSLError, "no TLS connection"),
)


@contextmanager
def faults(url: str) -> Iterator[None]:
    """What urllib3 raises becomes TryAgain where trying helps, and InputError where it does not."""
    try:
        yield
    except (HTTPError, OSError, ValueError) as error:
        cause = error.reason if isinstance(error, MaxRetryError) and error.reason else error
        hopeless = _hopeless(cause)
        if hopeless is not None:
            raise InputError(url, *hopeless) from None
        trouble = next(
            (text for kind, text in _TROUBLES if isinstance(cause, kind)), "the connection was cut"
        )
        raise TryAgain(trouble) from None


def _hopeless(error: Exception) -> tuple[str, str] | None:
    """Reason and hint."""
    if isinstance(error, NameResolutionError) and _is_unknown(error.__cause__ or error.__context__):
        return "there is no such host", "check the URL"
    if isinstance(error, SSLError) and isinstance(error.args[0], ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid ({error.args[0].verify_message})", ""
    if isinstance(error, ResponseError):
        return f"redirects more than {REDIRECTS} times", "check the URL"
    if isinstance(error, LocationValueError) or (
        isinstance(error, ValueError) and not isinstance(error, OSError)
    ):
        return f"is no URL that can be read ({' '.join(str(error).split())})", "check the URL"
    return None


def _is_unknown(reason: BaseException | None) -> bool:
    return isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME
