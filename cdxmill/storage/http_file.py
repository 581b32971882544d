"""One file at an HTTP URL: send requests for its bytes, and check the status and version of each answer."""

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
from cdxmill.storage.refusals import BUSY, refusal

TIMEOUT = urllib3.Timeout(connect=20, read=60)
"""Seconds. After a longer silence the request is repeated."""
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)$")
_HEADERS = {
    "Accept-Encoding": "identity",  # offsets are those of the stored file
    "User-Agent": "cdxmill",
}


class Version(NamedTuple):
    """Values that differ for each version of a file; None if the server does not send them."""

    etag: str | None
    modified: str | None
    size: int | None

    def fits(self, other: Version) -> bool:
        """Whether no value shows that the file has changed."""
        pairs = zip(self, other, strict=True)
        return all(ours == theirs for ours, theirs in pairs if ours is not None and theirs is not None)


class HttpFile:
    """The file at `url`. The connections are those of the process, so there is nothing to close.

    `size` is in bytes. Most servers report it with the first answer; before that it is None.
    """

    def __init__(self, url: str) -> None:
        self.url = self._location = url
        self.size: int | None = None
        self._version: Version | None = None

    def ask(self, first: int | None = None, last: int | None = None) -> BaseHTTPResponse:
        """Ask for the bytes from `first` to `last`, or for the whole file. The body of the answer is unread.

        The status of the answer is 206, 416, or 200 if the server does not support ranges. Raises TryAgain
        if the request may succeed later, InputError if the server refuses it or the file has changed.
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
        # Later requests go directly to the redirect's target: another machine may have another ETag for the file.
        self._location = _final_url(self._location, answer)
        return answer

    def _check(self, answer: BaseHTTPResponse) -> None:
        status = answer.status
        if status in BUSY:
            raise TryAgain(str(status), _retry_after(answer))
        if status not in (200, 206, 416):
            if self._location != self.url:  # the redirect may have changed
                raise TryAgain(str(status))
            give_back(answer)
            text = f"{status} {answer.reason or ''}".strip()
            raise refusal(self.url, status, f"cannot be read ({text})", "check the URL")
        size = _size(answer)
        version = Version(answer.headers.get("ETag"), answer.headers.get("Last-Modified"), size)
        if status == 416:  # its headers may be those of an error page
            version = Version(None, None, size)
        if self._version is None and status != 416:
            self._version = version
        if self._version is not None and not self._version.fits(version):
            raise InputError(self.url, "has changed while it was read", "run it again")
        self.size = self.size if size is None else size


def range_of(answer: BaseHTTPResponse) -> tuple[int, int] | None:
    """(first, last) byte of an answer, from its Content-Range; None if there is none."""
    match = _CONTENT_RANGE.match(answer.headers.get("Content-Range", ""))
    return (int(match[1]), int(match[2])) if match and match[1] else None


def _retry_after(answer: BaseHTTPResponse) -> float:
    """Seconds to wait, from Retry-After (RFC 9110, 10.2.3: a number or a date); 0 if there is none."""
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
