"""One file at an HTTP URL: send requests for its bytes, and check each answer before its bytes are used."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from urllib3 import BaseHTTPResponse

from cdxmill.errors import InputError
from cdxmill.messages import note
from cdxmill.regex import regex
from cdxmill.storage import hosts, patience
from cdxmill.storage.interface import Entry
from cdxmill.storage.patience import (
    BUSY,
    DOWNLOAD,
    OVERLOADED,
    TryAgain,
    persistently,
    read_range,
    refusal,
)
from cdxmill.storage.reach import Reach, reach_of
from cdxmill.storage.web.connections import (
    RefusedPlace,
    connections,
    faults,
    give_back,
    is_inside,
    is_own,
    piece_of,
    pieces_of,
    send,
    small_body,
)

_LEAST, _SHARE = 256, 16
"""An answer with fewer bytes, and with less than this share of the range, counts as failed."""
_REFUSED = frozenset((401, 403, 451))
_REMEMBERED = 300.0
"""Seconds in which a file that could not be read is not asked for again: thousands of captures may be in it."""
REDIRECTS = 5
"""Real files have one or two redirects. More are a loop."""
_LARGEST_ERROR, _SHOWN = 4096, 500
"""Bytes of an error that is read, and characters of its message that are shown."""
_CONTENT_RANGE = regex(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18}|\*)$")
_STORED_AS = {".gz": ("gzip", "x-gzip"), ".zst": ("zstd",)}
"""Encodings that servers report for files with these suffixes, because the stored file is compressed."""
_AS_STORED = ("", "identity", "aws-chunked")
"""Encodings that leave a body as it is. The last one is left over from an upload to S3."""


class NoRanges(Exception):
    """The server sends the whole file instead of a range."""


class Version(NamedTuple):
    """Values that differ for each version of a file. None if the server does not send them."""

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
        self.url = url
        self.size: int | None = None
        self._start = self._location = (url, reach_of(url))
        self._version: Version | None = None
        self._encoding: str | None = None
        self._seen = 0
        self._has_ranges = False
        self._failed: tuple[float, InputError] | None = None

    def entry(self) -> Entry:
        """What an answer told: the size, 0 if it is unknown, 0 as the time, and as the tag the time as the server writes it.

        Without a time, the tag is the ETag: several machines of one server may have different ones.
        """
        told = self._version or Version(None, None, None)
        return Entry(self.size or 0, 0, tag=told.modified or told.etag or "")

    def first_answer(self) -> BaseHTTPResponse:
        """The answer to a request for one byte. It shows whether the file exists and ranges are supported."""
        with self._remembering():
            answer = persistently(self.url, lambda: self.ask(0, 0))
        self._has_ranges = answer.status != 200
        return answer

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`, in as many requests as it takes. Raises NoRanges if the first one is whole."""
        end = offset + size
        with self._remembering():
            return read_range(self.url, offset, end, lambda first, data: self._read(first, end, data))

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        """Raise an error of the last minutes again, without a request."""
        if self._failed is not None and time.monotonic() - self._failed[0] < _REMEMBERED:
            error = self._failed[1]
            raise type(error)(error.path, error.reason, error.hint)
        try:
            yield
        except InputError as error:
            self._failed = time.monotonic(), error
            raise

    def _read(self, first: int, end: int, data: bytearray) -> bool:
        """Append the bytes from `first` to `end` to `data`. False if the file ends before them."""
        size, before = self._available(first, end), len(data)
        if size <= 0:
            return False
        with closing(self.ask(first, first + size - 1)) as answer:
            if answer.status == 416:
                give_back(answer)
                return False
            sent = self._range_size(answer, first)
            for piece in pieces_of(self.url, answer):
                data += piece[: before + sent - len(data)]
            if len(data) < before + sent:
                raise TryAgain("connection lost")
        asked = self._available(first, end)
        if self.size is not None and sent < min(_LEAST, asked // _SHARE):
            raise TryAgain(f"the server sends {sent} of {asked} bytes per answer")
        return True

    def _available(self, first: int, end: int) -> int:
        return (end if self.size is None else min(end, self.size)) - first

    def _range_size(self, answer: BaseHTTPResponse, first: int) -> int:
        """The number of bytes of the range that the answer has, from its headers."""
        got = range_of(answer)
        if answer.status == 200 and not self._has_ranges:
            raise NoRanges
        self._has_ranges = True
        if answer.status == 200 or got is None:  # one of several machines does not support ranges
            raise TryAgain("the server sent the whole file instead of a range")
        return got[1] - first + 1

    def ask(self, first: int | None = None, last: int | None = None) -> BaseHTTPResponse:
        """Ask for the bytes from `first` to `last`, or for the whole file. The body of the answer is unread.

        The status of the answer is 206, and its range starts at `first`; or 416, and the file ends before `first`;
        or 200 if the server does not support ranges. Raises TryAgain if the request may succeed later, InputError
        if the server refuses it, the answer cannot be used or the file has changed, UntriedError if the server is given up.
        """
        try:
            answer, location = self._follow(first, last)
            try:
                self._check_status(answer, hosts.host_of(location[0]))
                if answer.status == 416:
                    self._check_end(answer, first)
                else:
                    self._check_content(answer, first, last)
            except BaseException:
                answer.close()
                raise
        except TryAgain:
            self._location = self._start
            raise
        # Later requests go directly to the redirect's target: another machine may have another ETag for the file.
        self._location = location
        return answer

    def _follow(self, first: int | None, last: int | None) -> tuple[BaseHTTPResponse, tuple[str, Reach]]:
        """The answer after all redirects, and the URL that gave it."""
        url, reach = self._location
        for _ in range(REDIRECTS + 1):
            answer = self._request(url, reach, first, last)
            target = answer.get_redirect_location()
            if not target:
                return answer, (url, reach)
            give_back(answer)
            with faults(self.url):
                reach = max(reach, reach_from(url))
                url = self._redirected(url, urljoin(url, target))
        raise InputError(self.url, f"redirects more than {REDIRECTS} times", "check the URL")

    def _request(self, url: str, reach: Reach, first: int | None, last: int | None) -> BaseHTTPResponse:
        host = hosts.host_of(url)
        try:
            with faults(self.url, host):
                self._wait_for_turn(host, url)
                headers = {} if first is None else {"Range": f"bytes={first}-{last}"}
                answer = send(connections(url, reach), "GET", url, headers)
                self._judge(host, url, answer)
                return answer
        except RefusedPlace as place:
            led = "" if url == self.url else f" by a redirect to {url[:200]}"
            reason = f"leads{led} to the internal address {place}, which others' content may not name"
            raise InputError(self.url, reason, "if you trust it, name that URL yourself") from None

    def _wait_for_turn(self, host: str, url: str) -> None:
        """Wait as long as the server wants, or as is polite. Raises UntriedError if the server is given up."""
        rate = None if is_own(url) or not hosts.is_polite() else hosts.rate_of(host)
        waited = patience.wait_for_turn(self.url, host, rate)
        if rate is not None and waited and hosts.is_first(host, hosts.SLOWED):
            note(f"{host}: at most {rate:g} requests per second (CDXMILL_POLITE=off if it is your server)")

    def _judge(self, host: str, url: str, answer: BaseHTTPResponse) -> None:
        """Note for all workers what an answer says of the server."""
        if answer.status in BUSY:
            if wait := min(_retry_after(answer), patience.LONGEST_WAIT):
                hosts.pause(host, wait)
        elif answer.status in _REFUSED:
            hosts.refused(host, url, answer.status)
        else:
            hosts.answered(host)

    def _redirected(self, url: str, target: str) -> str:
        """The target of a redirect. Raises InputError if it leaves the web, or TLS."""
        schemes = urlsplit(url).scheme.lower(), urlsplit(target).scheme.lower()
        if schemes[1] not in ("http", "https"):
            raise InputError(
                self.url, f"redirects to {target[:200]}, which is not a web address", "check the URL"
            )
        if schemes == ("https", "http"):
            reason = f"redirects from https to {target[:200]}, which is not encrypted"
            raise InputError(self.url, reason, "if you trust it, name that URL yourself")
        return target

    def _check_status(self, answer: BaseHTTPResponse, host: str) -> None:
        status = answer.status
        if status in BUSY:
            raise TryAgain(str(status), _retry_after(answer), host if status in OVERLOADED else "")
        if status not in (200, 206, 416):
            if self._location != self._start:  # the redirect may have changed
                raise TryAgain(str(status))
            text = f"{status} {answer.reason or ''}".strip() + self._told(answer)
            give_back(answer)
            raise refusal(self.url, status, f"cannot be read ({text})", "check the URL")

    def _told(self, answer: BaseHTTPResponse) -> str:
        """What a server says of an error in JSON, as CDX servers do: its `message`."""
        if not answer.headers.get("content-type", "").startswith("application/json"):
            return ""
        with suppress(InputError, TryAgain, ValueError, AttributeError):
            found = json.loads(small_body(self.url, answer, _LARGEST_ERROR)).get("message")
            return f": {found[:_SHOWN]}" if isinstance(found, str) else ""
        return ""

    def _check_end(self, answer: BaseHTTPResponse, first: int | None) -> None:
        """Raise TryAgain unless a 416 is true: the file ends before byte `first`."""
        size = _size(answer)
        self._check_version(Version(None, None, size))  # its other headers may be those of an error page
        self.size = self.size if size is None else size
        if first is None:
            raise TryAgain("416 for the whole file")
        if self.size is None and first < self._seen:
            raise TryAgain(f"416 for byte {first}")
        if not self.size:  # unknown, or said to be empty: the whole file says it again
            with closing(self.ask()) as whole:
                if first == 0 and self.size is None and not piece_of(self.url, whole, 1):
                    return
        if self.size is None and not self._ends_before(first):
            raise TryAgain(f"416 for byte {first}")
        if self.size is not None and first < self.size:
            raise TryAgain(f"416 for byte {first} of {self.size}")

    def _ends_before(self, first: int) -> bool:
        """Whether a file of unknown size ends before byte `first`: a range over its end is answered with less."""
        answer, _ = self._follow(first - 1, first)
        got = range_of(answer)
        answer.close()
        if answer.status == 416:  # true, unless it has sent the byte before
            return first > self._seen
        return answer.status == 206 and got == (first - 1, first - 1)

    def _check_content(self, answer: BaseHTTPResponse, first: int | None, last: int | None) -> None:
        self._check_encoding(answer)
        size = _size(answer)
        version = Version(answer.headers.get("etag"), answer.headers.get("last-modified"), size)
        self._check_version(version)
        self._version = self._version or version
        if answer.status == 206:
            self._check_range(answer, first, last)
        self.size = self.size if size is None else size

    def _check_version(self, version: Version) -> None:
        known = self._version or Version(None, None, self.size)
        is_shorter = version.size is not None and version.size < self._seen
        if is_shorter or (known != version and not known.fits(version)):
            raise InputError(self.url, "has changed while it was read", "run it again")

    def _check_range(self, answer: BaseHTTPResponse, first: int | None, last: int | None) -> None:
        if first is None or last is None:
            raise TryAgain("the server sent a range instead of the whole file")
        got = range_of(answer)
        if got is None or got[0] != first or not first <= got[1] <= last:
            wrong = answer.headers.get("content-range", "no Content-Range")
            reason = f"the server answers a request for bytes {first}-{last} with {wrong[:200]}"
            raise InputError(self.url, reason, DOWNLOAD)
        length = answer.headers.get("content-length", str(got[1] - first + 1))
        if length != str(got[1] - first + 1):
            raise TryAgain(f"the server sent {length[:20]} bytes for bytes {first}-{got[1]}")
        self._seen = max(self._seen, got[1] + 1)

    def _check_encoding(self, answer: BaseHTTPResponse) -> None:
        """Raise an error if the body may not be the stored bytes. Some servers report the encoding of a .gz file."""
        encoding = answer.headers.get("content-encoding", "").strip().lower()
        encoding = "" if encoding in _AS_STORED else encoding
        if not encoding and not self._encoding:
            self._encoding = ""
            return
        path = urlsplit(self.url).path.lower()
        stored = next((names for suffix, names in _STORED_AS.items() if path.endswith(suffix)), ())
        is_sized = answer.status == 200 or "content-length" in answer.headers
        if encoding and (encoding not in stored or not is_sized):
            reason = f"the server compresses the file ({encoding[:40]}), so offsets would be wrong"
            raise InputError(self.url, reason, DOWNLOAD)
        if self._encoding is None:
            self._encoding = encoding
        if encoding != self._encoding:
            raise TryAgain("the server compresses some answers only")


def reach_from(url: str) -> Reach:
    """How far content at `url` may lead: to the network of an internal address, or else to public addresses."""
    return Reach.NETWORK if is_inside(url) else Reach.PUBLIC


def range_of(answer: BaseHTTPResponse) -> tuple[int, int] | None:
    """(first, last) byte of an answer, from its Content-Range. None if there is none."""
    match = _CONTENT_RANGE.match(answer.headers.get("content-range", ""))
    return (int(match[1]), int(match[2])) if match and match[1] else None


def _retry_after(answer: BaseHTTPResponse) -> float:
    """Seconds to wait, from Retry-After (RFC 9110, 10.2.3: a number or a date); 0 if there is none."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0


def _size(answer: BaseHTTPResponse) -> int | None:
    if answer.status == 200:
        length = answer.headers.get("content-length", "")
        return int(length) if length.isascii() and length.isdigit() else None
    match = _CONTENT_RANGE.match(answer.headers.get("content-range", ""))
    return int(match[3]) if match and match[3] != "*" else None
