"""An ARC record's one-line header (Internet Archive ARC 1.0).

    URL IP-address archive-date content-type length

The first record of a file has a `filedesc://` URL. ARC 2.0, with ten fields, is refused: replay tools cannot read it.
"""

from __future__ import annotations

from cdxmill.capture import Headers
from cdxmill.regex import regex

MAX_LINE = 1 << 16

SEARCH = regex(rb"(?<=\n)[A-Za-z][A-Za-z0-9+.-]*:[^\n]* (?:\d{4,18}|-) [^ \n]* [^ \n]+ *\n")
"""Finds possible header lines after damage. The parser is stricter."""
KNOWN_SCHEME = regex(rb"(?:https?|ftp|dns|whois|filedesc|metadata|urn|mailto|news|nntp|gopher):")
"""The schemes of the URLs in real files."""

_SCHEME = regex(rb"[A-Za-z][A-Za-z0-9+.-]*:")
_LENGTH = regex(rb"-?\d+")
_YEAR = regex(rb"(?:19|20)\d\d")
_DIGITS = regex(rb"\d{4,18}")
_WHOLE_DATE = regex(rb"\d{14,18}")
_LONG_DATE = regex(rb"\d{8,18}")
_DATE = regex(rb"\d{4,18}|-")
_ADDRESS = regex(rb"[0-9a-fA-F.:]+|-")
_NEXT_HEADER = regex(
    rb"[^ ]+ (?:[0-9.]+|[0-9a-fA-F]*:[0-9a-fA-F.:]*|-)(?: [0-9]*(?: [^ ]*(?: [0-9]*)?)?)?(?=%b)"
    % KNOWN_SCHEME.pattern
)
"""A part of a header line that has more than the URL, before the start of another header line."""
_URL_IN_URL = regex(rb"[A-Za-z0-9 ](?=https?://)")
_FIELDS_OF_2 = 10


class VersionError(ValueError):
    """The header line is of ARC 2.0. The text is the reason."""


class BrokenLineError(ValueError):
    """The header line breaks off, and the one of the next record follows at position `next`."""

    def __init__(self, position: int) -> None:
        super().__init__("another record starts inside the header line")
        self.next = position


def parse_arc_header(data: bytes | bytearray) -> tuple[Headers, int] | None:
    """The fields of the header line that `data` starts with, by their WARC names, and the position of the block.

    None if the first line is not an ARC header. Raises VersionError, BrokenLineError.
    A URL may contain spaces. Therefore the fields are counted from the end, as other readers do.
    An address, a date or a type may have any value, as other readers do, but not all of them.

    >>> parse_arc_header(b"http://a.b/ 1.2.3.4 20080430204825 text/html 10\\n")[0][b"content-length"]
    b'10'
    """
    end = data.find(b"\n", 0, MAX_LINE)
    line = bytes(data[: max(end, 0)]).rstrip()
    parts = line.rsplit(b" ", 4)
    if len(parts) != 5:
        return None
    if _is_version_2(line.split(b" ")):
        raise VersionError("ARC version 2 is not supported")
    url, address, date, mime, length = parts
    if not _SCHEME.match(url):
        return None
    if not (_LENGTH.fullmatch(length) or _WHOLE_DATE.fullmatch(date)):
        return None
    if not (_ADDRESS.fullmatch(address) or _YEAR.match(date) or b"/" in mime):
        return None
    if b" " in url and (next_header := _NEXT_HEADER.match(url)):
        raise BrokenLineError(next_header.end())
    is_first = url.startswith(b"filedesc://")
    return {
        b"warc-type": b"warcinfo" if is_first else b"response",
        b"warc-target-uri": url,
        b"warc-ip-address": address,
        b"warc-date": date,
        b"content-type": mime,
        b"content-length": length,
    }, end + 1


def is_usual(headers: Headers) -> bool:
    """Whether a header line has a usual address and date. Lines of other texts hardly ever have them."""
    date, mime = headers[b"warc-date"], headers[b"content-type"]
    if not _ADDRESS.fullmatch(headers[b"warc-ip-address"]):
        return False
    return bool((_DATE.fullmatch(date) and b"/" in mime) or _LONG_DATE.fullmatch(date))


def odd_field(headers: Headers, timestamp: bytes) -> str | None:
    """What is odd about the fields of a header line; None if nothing is. `timestamp` is what was made of its date."""
    address, date = headers[b"warc-ip-address"], headers[b"warc-date"]
    if not _ADDRESS.fullmatch(address):
        return f"odd address in the ARC header ({address[:40].decode('latin-1')!r})"
    if not _DIGITS.fullmatch(date):
        return f"odd date in the ARC header ({date[:40].decode('latin-1')!r})"
    if len(date) >= len(timestamp) and not date.startswith(timestamp):
        return f"impossible date in the ARC header ({date.decode()!r}); the timestamp is {timestamp.decode()}"
    if _URL_IN_URL.search(headers[b"warc-target-uri"]):
        return (
            "the URL has another URL inside; if the header of a record breaks off here, that record is lost"
        )
    return None


def _is_version_2(fields: list[bytes]) -> bool:
    """Whether the second and third of ten fields are address and date, unlike in a URL with five spaces."""
    if len(fields) != _FIELDS_OF_2 or not fields[-1].isdigit():
        return False
    return all((_SCHEME.match(fields[0]), _ADDRESS.fullmatch(fields[1]), _DATE.fullmatch(fields[2])))
