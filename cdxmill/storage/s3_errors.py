"""The errors of boto3: which may go away, so that a request is repeated, and which are those of cdxmill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from cdxmill.errors import AbsentError, InputError, OutageError, RefusedError, StoppedError, UsageError
from cdxmill.storage import hosts
from cdxmill.storage.patience import BUSY, OVERLOADED, TryAgain, refusal, wait_for_turn
from cdxmill.version import install_extra

INSTALL = f"s3:// needs boto3: {install_extra('s3')}"
NO_OBJECT = "the URL has no bucket or no key", "use s3://BUCKET/KEY"
FORBIDDEN = 403
"""The answer for an object that may not be read, and, without the right to list, for a missing one."""


def require() -> None:
    """Raise UsageError if boto3 is not installed."""
    try:
        import boto3  # type: ignore[import-untyped]  # noqa: F401 - an extra, and slow to import
    except ImportError:
        raise UsageError(INSTALL) from None


@contextmanager
def body_errors() -> Iterator[None]:
    """Turn errors while a body is read into TryAgain. boto3 itself repeats only the request."""
    from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (BotoCoreError, HTTPError, OSError):
        raise TryAgain("connection lost") from None


@contextmanager
def one_try(url: str, doing: str = "read") -> Iterator[None]:
    """Turn errors of boto3 into TryAgain if another try may help, else into InputError.

    Nothing is read from a bucket that was given up: UntriedError.
    """
    require()
    from botocore import exceptions as foreign  # type: ignore[import-untyped]

    host = hosts.host_of(url)
    if doing == "read":
        wait_for_turn(url, host)
    with _errors(url, doing):
        try:
            yield
        except foreign.ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status not in BUSY:
                if status != FORBIDDEN:
                    hosts.answered(host)
                raise
            raise TryAgain(str(status), host=host if status in OVERLOADED else "") from None
        except (foreign.ReadTimeoutError, foreign.ConnectTimeoutError) as error:
            is_host = isinstance(error, foreign.ConnectTimeoutError)
            raise TryAgain("timed out", host=host if is_host else "") from None
        except (foreign.ConnectionError, foreign.HTTPClientError) as error:
            is_host = isinstance(error, foreign.EndpointConnectionError)
            raise TryAgain(f"no connection{_to(error)}", host=host if is_host else "") from None
    hosts.answered(host)


@contextmanager
def stops_run(url: str) -> Iterator[None]:
    """Turn InputError into StoppedError: a run cannot continue if its output cannot be written."""
    try:
        yield
    except InputError as error:
        raise StoppedError(str(error)) from None


@contextmanager
def _errors(url: str, doing: str) -> Iterator[None]:
    """Turn the errors of boto3 that no other try can mend into InputError."""
    from boto3.exceptions import Boto3Error  # type: ignore[import-untyped]
    from botocore import exceptions as foreign

    try:
        yield
    except foreign.ClientError as error:
        raise _refused(url, error.response, doing) from None
    except foreign.ParamValidationError:
        raise InputError(url, *NO_OBJECT) from None
    except (foreign.BotoCoreError, Boto3Error, ValueError) as error:
        raise OutageError(url, f"cannot be {doing} ({' '.join(str(error).split())})") from None


def _to(error: Exception) -> str:
    """` to http://HOST:PORT`, where boto3 tells it."""
    found = urlsplit(str(getattr(error, "kwargs", {}).get("endpoint_url", "")))
    return f" to {found.scheme}://{found.netloc}" if found.netloc else ""


def _refused(url: str, response: dict[str, Any], doing: str) -> InputError:
    status = response["ResponseMetadata"]["HTTPStatusCode"]
    error = response.get("Error", {})
    name = error.get("Code", "")
    if name == str(status):  # the answer to HEAD has no body with a name
        name = error.get("Message", "")
    reason = f"cannot be {doing} ({f'{status} {name}'.strip()})"
    found = refusal(url, status, reason, "check the bucket and the key")
    is_known = isinstance(found, AbsentError | RefusedError)
    return found if is_known else OutageError(url, reason)  # an old token, a wrong region or clock
