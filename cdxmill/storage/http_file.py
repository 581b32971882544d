"""One file behind an HTTP URL: asks for its bytes, and tells answers from refusals and troubles."""

from __future__ import annotations

import email.utils
import re
import time
from typing import NamedTuple
from urllib.parse import urljoin

import urllib3
from urllib3 import BaseHTTPResponse

from cdxmill.errors import InputError
from cdxmill.storage.connections import connections, give_back
from cdxmill.storage.http_faults import REDIRECTS, faults
from cdxmill.storage.patience import TryAgain
from cdxmill.storage.statuses import BUSY, error_type

TIMEOUT = urllib3.Timeout(connect=20, read=60)
"""Seconds; a server that says nothing for so long is asked again."""
_HINTS = {401: "check its rights", 403: "check its rights", 404: "check the URL", 410: "check the URL"}
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)$")
_HEADERS = {
    "Accept-Encoding": "identity",  # offsets are those of the file as it is stored
    "User-Agent": "cdxmill",
}


class Version(NamedTuple):
    """What tells one state of a file from another; None where the server does not say."""

    etag: str | None
    modified: str | None
    size: int | None

    def fits(self, other: Version) -> bool:
        """Whether nothing shows that the file has changed."""
        pairs = zip(self, other, strict=True)
        return all(ours == theirs for ours, theirs in pairs if ours is not None and theirs is not None)


class HttpFile:
    """The file at `url`, over one connection that is kept open between requests.

    `size` is in bytes, known after the first answer of most servers.
    """

    def __init__(self, url: str) -> None:
        self.url = self._location = url
        self.size: int | None = None
        self._version: Version | None = None

    def ask(self, first: int | None = None, last: int | None = None) -> BaseHTTPResponse:
        """An answer whose body is still to read: 206, 416, or 200 where ranges are unknown to the server.

        Asks for the bytes from `first` to `last`, or for the whole file. Raises TryAgain where the
        server or the way to it is in trouble, InputError where it refuses or the file has changed.
        """
        headers = _HEADERS if first is None else {**_HEADERS, "Range": f"bytes={first}-{last}"}
        try:
            with faults(self.url):
                answer = connections(self.url).request(
                    "GET",
                    self._location,
                    headers=headers,
                    preload_content=False,
                    decode_content=False,
                    timeout=TIMEOUT,
                    retries=urllib3.Retry(
                        connect=0,
                        read=0,
                        status=0,
                        other=0,
                        redirect=REDIRECTS,
                        respect_retry_after_header=False,
                    ),
                )
            try:
                self._check(answer)
            except BaseException:
                answer.close()
                raise
        except TryAgain:
            self._location = self.url
            raise
        # Later requests go where this one was sent: two machines may hold the file with two ETags.
        self._location = _final_url(self._location, answer)
        return answer

    def _check(self, answer: BaseHTTPResponse) -> None:
        status = answer.status
        if status in BUSY:
            raise TryAgain(str(status), _retry_after(answer))
        if status not in (200, 206, 416):
            if self._location != self.url:  # where we were sent once may not be the place any more
                raise TryAgain(str(status))
            give_back(answer)
            told = f"{status} {answer.reason or ''}".strip()
            raise error_type(status)(self.url, f"cannot be read ({told})", _HINTS.get(status, ""))
        size = _size(answer)
        version = Version(answer.headers.get("ETag"), answer.headers.get("Last-Modified"), size)
        if status == 416:  # says little of the file, and its headers may be those of an error page
            version = Version(None, None, size)
        if self._version is None and status != 416:
            self._version = version
        if self._version is not None and not self._version.fits(version):
            raise InputError(self.url, "has changed while it was read", "run it again")
        self.size = self.size if size is None else size


def range_of(answer: BaseHTTPResponse) -> tuple[int, int] | None:
    """(first, last) byte that an answer says it holds; None where it does not say."""
    match = _CONTENT_RANGE.match(answer.headers.get("Content-Range", ""))
    return (int(match[1]), int(match[2])) if match and match[1] else None


def _retry_after(answer: BaseHTTPResponse) -> float:
    """Seconds, 0 where nothing is asked for (RFC 9110, 10.2.3: a number or a date)."""
    text = answer.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0


def _size(answer: BaseHTTPResponse) -> int | None:
    if answer.status == 200:
        length = answer.headers.get("Content-Length", "")
        return int(length) if length.isascii() and length.isdigit() else None
    match = _CONTENT_RANGE.match(answer.headers.get("Content-Range", ""))
    return int(match[3]) if match and match[3] != "*" else None


def _final_url(url: str, answer: BaseHTTPResponse) -> str:
    for step in answer.retries.history if answer.retries is not None else ():
        url = urljoin(url, step.redirect_location or "")
    return url
