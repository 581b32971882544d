"""CDX lines with 11 or 9 space-separated fields (IIPC "The CDX File Format", 2015).

     CDX N b a m s k r M S V g      urlkey timestamp url mime status digest redirect meta length offset file
     CDX N b a m s k r V g          the same without meta and length

An absent value is `-`. White space and control characters in a value are percent-encoded, because
fields are separated by spaces. No other format does this.
"""

from __future__ import annotations

import re

from cdxmill.capture import Capture

CDX_NAME = re.compile(r"\.cdxj?(\.gz)?$", re.I)
"""How the names of CDX and CDXJ files end."""

CDX11_HEADER = b" CDX N b a m s k r M S V g"
CDX9_HEADER = b" CDX N b a m s k r V g"

_UNSAFE = re.compile(rb"[\x00-\x20\x7f]")


def format_cdx11(capture: Capture) -> bytes:
    """One line of 11 fields, without its line end. As in pywb, redirect and meta are `-`."""
    return b"%b - - %d %d %b" % (_start(capture), capture.length, capture.offset, safe(capture.filename))


def format_cdx9(capture: Capture) -> bytes:
    """One line of 9 fields, without its line end. As in pywb, redirect is `-`."""
    return b"%b - %d %b" % (_start(capture), capture.offset, safe(capture.filename))


def _start(capture: Capture) -> bytes:
    fields = (capture.url, capture.mime, capture.status, capture.digest)
    return b"%b %b %b" % (capture.urlkey, capture.timestamp, b" ".join(map(safe, fields)))


def safe(value: bytes | None) -> bytes:
    """A value as a field of a line.

    >>> safe(b"a b.warc.gz"), safe(None)
    (b'a%20b.warc.gz', b'-')
    """
    if not value:
        return b"-"
    return _UNSAFE.sub(lambda match: b"%%%02X" % match.group()[0], value)
