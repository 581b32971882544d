"""Errors of connections: which may go away, and what the others are called."""

from __future__ import annotations

import io
import socket
import ssl

import pytest
from urllib3 import exceptions
from urllib3.connection import HTTPConnection

from cdxmill.errors import InputError
from cdxmill.storage.patience import TryAgain
from cdxmill.storage.web.connections import faults

CONNECTION = HTTPConnection("host.example")
UNKNOWN = socket.gaierror(socket.EAI_NONAME, "unknown")
LATER = socket.gaierror(socket.EAI_AGAIN, "later")


def unresolved(cause: OSError) -> exceptions.NameResolutionError:
    return exceptions.NameResolutionError("host.example", CONNECTION, cause)  # type: ignore[arg-type]


def from_cause(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def in_context(error: Exception, context: Exception) -> Exception:
    error.__context__ = context
    return error


def invalid_certificate() -> exceptions.SSLError:
    cause = ssl.SSLCertVerificationError(1, "certificate verify failed")
    cause.verify_message = "certificate has expired"
    return exceptions.SSLError(cause)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (from_cause(unresolved(UNKNOWN), UNKNOWN), "unknown host; check the URL"),
        (in_context(unresolved(UNKNOWN), UNKNOWN), "unknown host; check the URL"),
        (invalid_certificate(), "the server's certificate is not valid (certificate has expired)"),
        (ValueError("bad\nport"), "is not a valid URL (bad port); check the URL"),
        (exceptions.MaxRetryError(None, "/", ValueError("a")), "is not a valid URL (a); check the URL"),  # type: ignore[arg-type]
    ],
)
def test_an_error_that_stays_is_told(error: Exception, reason: str) -> None:
    with pytest.raises(InputError) as caught, faults("a", "host.example"):
        raise error
    assert str(caught.value) == f"a: {reason}"


@pytest.mark.parametrize(
    ("error", "reason", "is_host"),
    [
        (from_cause(unresolved(LATER), LATER), "the host name cannot be resolved", True),
        (unresolved(UNKNOWN), "the host name cannot be resolved", True),
        (
            from_cause(unresolved(UNKNOWN), OSError(socket.EAI_NONAME, "")),
            "the host name cannot be resolved",
            True,
        ),
        (from_cause(exceptions.NewConnectionError(CONNECTION, ""), UNKNOWN), "no connection", True),
        (exceptions.ConnectTimeoutError(), "timed out", True),
        (exceptions.ReadTimeoutError(None, "/", ""), "timed out", False),  # type: ignore[arg-type]
        (exceptions.SSLError(ssl.SSLError(1, "")), "no TLS connection", False),
        (TimeoutError(), "timed out", False),
        (ConnectionResetError(), "connection lost", False),
        (io.UnsupportedOperation("an OSError and a ValueError"), "connection lost", False),
    ],
)
def test_an_error_that_may_go_away_is_tried_again(error: Exception, reason: str, is_host: bool) -> None:
    with pytest.raises(TryAgain) as caught, faults("a", "host.example"):
        raise error
    assert (caught.value.reason, caught.value.host) == (reason, "host.example" * is_host)


def test_other_errors_stay_as_they_are() -> None:
    with pytest.raises(KeyError), faults("a"):
        raise KeyError
