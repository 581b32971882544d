"""CDX lines with 6 fields, from older indexes -> CDXJ lines.

<urlkey> <timestamp> <url> <length> <offset> <file>
<urlkey> <timestamp> {"url": ..., "length": ..., "offset": ..., "filename": ...}
"""

from __future__ import annotations

from cdxmill.formats.lines.cdxj import quote

FIELDS = 6


def convert_line(line: bytes) -> bytes:
    """The CDXJ line of a 6-field line. Raises ValueError for any other number of fields.

    >>> convert_line(b"com,a)/ 2020 http://a.com/ 12 0 a.warc.gz")
    b'com,a)/ 2020 {"url": "http://a.com/", "length": "12", "offset": "0", "filename": "a.warc.gz"}'
    """
    fields = line.split(b" ")
    if len(fields) != FIELDS:
        raise ValueError(f"invalid line with {len(fields)} fields, expected {FIELDS}: {line[:80]!r}")
    key, timestamp, url, length, offset, filename = fields
    values = (b"url", url), (b"length", length), (b"offset", offset), (b"filename", filename)
    return b"%b %b {%b}" % (
        key,
        timestamp,
        b", ".join(b'"%b": %b' % (name, quote(text)) for name, text in values),
    )
