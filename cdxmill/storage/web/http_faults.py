"""Errors on the way to a web server: those worth another try, and those that are final."""

from __future__ import annotations

import socket
import ssl

from urllib3 import exceptions
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
from cdxmill.storage.patience import TryAgain

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
