"""An ARC record's one-line header (Internet Archive ARC 1.0).

    URL IP-address archive-date content-type length

The first record of a file has a `filedesc://` URL; its block starts with two lines that
give the version and the names of the fields. ARC 2.0, which has ten fields, is refused because
replay tools cannot read it.
"""

from __future__ import annotations

import re

from cdxmill.capture import Headers

MAX_LINE = 1 << 16

SEARCH = re.compile(rb"(?<=\n)[A-Za-z][A-Za-z0-9+.-]*:[^\n]* (?:\d{4,18}|-) [^ \n]* [^ \n]+ *\n")
"""Finds possible header lines after damage. The parser is stricter."""
KNOWN_SCHEME = re.compile(rb"(?:https?|ftp|dns|whois|filedesc|metadata|urn|mailto|news|nntp|gopher):")
"""The schemes of the URLs in real files."""

_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*:")
_LENGTH = re.compile(rb"-?\d+")
_WHOLE_DATE = re.compile(rb"\d{14,18}")
_DATE = re.compile(rb"\d{4,18}|-")
_ADDRESS = re.compile(rb"[0-9a-fA-F.:]+|-")
_FIELDS_OF_2 = 10


def parse_arc_header(data: bytes | bytearray) -> tuple[Headers, int] | None:
    """The fields of the header line that `data` starts with, by their WARC names, and the position of the block.

    None if the first line is not an ARC header. Raises ValueError for a header line of ARC 2.0.
    A URL may contain spaces. Therefore the fields are counted from the end, as other readers do.

    >>> parse_arc_header(b"http://a.b/ 1.2.3.4 20080430204825 text/html 10\\n")[0][b"content-length"]
    b'10'
    """
    end = data.find(b"\n", 0, MAX_LINE)
    line = bytes(data[: max(end, 0)]).rstrip()
    parts = line.rsplit(b" ", 4)
    if len(parts) != 5:
        return None
    if _is_version_2(line.split(b" ")):
        raise ValueError("ARC version 2 is not supported")
    url, address, date, mime, length = parts
    if not (_SCHEME.match(url) and _ADDRESS.fullmatch(address)):
        return None
    if not (_LENGTH.fullmatch(length) or _WHOLE_DATE.fullmatch(date)):
        return None
    if not ((_DATE.fullmatch(date) and b"/" in mime) or (date.isdigit() and 8 <= len(date) <= 18)):
        return None
    is_first = url.startswith(b"filedesc://")
    return {
        b"warc-type": b"warcinfo" if is_first else b"response",
        b"warc-target-uri": url,
        b"warc-ip-address": address,
        b"warc-date": date,
        b"content-type": mime,
        b"content-length": length,
    }, end + 1


def _is_version_2(fields: list[bytes]) -> bool:
    """Whether the second and third of ten fields are address and date, unlike in a URL with five spaces."""
    if len(fields) != _FIELDS_OF_2 or not fields[-1].isdigit():
        return False
    return all((_SCHEME.match(fields[0]), _ADDRESS.fullmatch(fields[1]), _DATE.fullmatch(fields[2])))
