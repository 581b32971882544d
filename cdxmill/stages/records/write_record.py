"""Write records: headers of WARC records, the first record of a file, and a fetched record as one gzip member."""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from cdxmill.capture import Headers, Record
from cdxmill.formats.archives.warc_header import parse_warc_header
from cdxmill.formats.lines.timestamp import arc_timestamp_of
from cdxmill.regex import regex
from cdxmill.stages.records.fetch_record import FetchedRecord
from cdxmill.stages.records.record_parts import record_parts
from cdxmill.version import __version__

END = b"\r\n\r\n"
"""What follows a block."""
_NO_TEXT = regex(r"[\x00-\x1f\x7f]+")
_LEVEL = 6


def record_id(*parts: object) -> bytes:
    """A WARC-Record-ID, the same for the same parts.

    >>> record_id("a.arc.gz", 17)
    b'<urn:uuid:372029fa-c0be-50a6-8e6a-6bfcebd27bc2>'
    """
    name = "\n".join(map(str, parts)).encode("utf-8", "surrogateescape").hex()
    return b"<urn:uuid:%b>" % str(uuid.uuid5(uuid.NAMESPACE_URL, f"cdxmill:{name}")).encode()


def warc_date(timestamp: bytes) -> bytes:
    """A WARC-Date from 14 digits.

    >>> warc_date(b"20240517234122")
    b'2024-05-17T23:41:22Z'
    """
    parts = [timestamp[start : start + 2] for start in range(4, 14, 2)]
    return b"%b-%b-%bT%b:%b:%bZ" % (timestamp[:4], *parts)


def warcinfo(name: str, timestamp: bytes, fields: Iterable[tuple[str, str]]) -> bytes:
    """The first record of the file `name`, written at `timestamp` (14 digits). `fields` tell what the file is."""
    own = [("software", f"cdxmill/{__version__}"), ("format", "WARC File Format 1.0"), *fields]
    block = "".join(f"{key}: {_NO_TEXT.sub(' ', value)}\r\n" for key, value in own).encode("utf-8", "replace")
    header = _header(
        (b"Type", b"warcinfo"),
        (b"Record-ID", record_id(name, timestamp)),
        (b"Date", warc_date(timestamp)),
        (b"Filename", name.encode("utf-8", "replace")),
        kind=b"application/warc-fields",
        size=len(block),
    )
    return header + block + END


def warc_header_of_arc(headers: Headers, is_http: bool, size: int, named: bytes, digest: bytes) -> bytes:
    """The header of a WARC record with the block of an ARC record, whose `headers` have WARC names.

    `named` is the new record's id, `digest` the SHA-1 of the payload. A block that is no HTTP message becomes a
    `resource`. Raises ValueError if the ARC record has no valid date, which a WARC record must have.
    """
    date = arc_timestamp_of(headers[b"warc-date"])
    if date is None:
        raise ValueError("the ARC record has no valid date, which a WARC record must have")
    address = headers[b"warc-ip-address"]
    fields = [
        (b"Type", b"response" if is_http else b"resource"),
        (b"Record-ID", named),
        (b"Date", warc_date(date)),
        (b"Target-URI", headers[b"warc-target-uri"]),
        (b"Payload-Digest", b"sha1:" + digest),
    ]
    if re.fullmatch(rb"[0-9a-fA-F.:]{3,}", address) and address != b"0.0.0.0":
        fields.append((b"IP-Address", address))
    content_type = headers[b"content-type"]
    kind = content_type if b"/" in content_type else b"application/octet-stream"
    return _header(*fields, kind=b"application/http; msgtype=response" if is_http else kind, size=size)


def conversion_header(fields: Sequence[tuple[bytes, bytes]], size: int) -> bytes:
    """The header of a record with a text. The names of the `fields` lack their `WARC-`."""
    return _header((b"Type", b"conversion"), *fields, kind=b"text/plain", size=size)


def _header(*fields: tuple[bytes, bytes], kind: bytes, size: int) -> bytes:
    lines = [b"WARC-%b: %b" % field for field in fields]
    return b"\r\n".join(
        (b"WARC/1.0", *lines, b"Content-Type: " + kind, b"Content-Length: %d" % size, b"", b"")
    )


def filedesc(name: str, timestamp: bytes) -> bytes:
    """The first record of the ARC file `name` (ARC 1.0).

    >>> filedesc("a.arc", b"20240517234122").split(b"\\n")[0]
    b'filedesc://a.arc 0.0.0.0 20240517234122 text/plain 76'
    """
    block = b"1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n"
    safe = name.replace(" ", "%20").encode("utf-8", "replace")
    return b"filedesc://%b 0.0.0.0 %b text/plain %d\n%b\n" % (safe, timestamp, len(block), block)


class NewMember(NamedTuple):
    """A record as it will be in the new file, without its place there, and its gzip member in pieces."""

    record: Record
    pieces: Iterator[bytes]


Fields = Sequence[tuple[bytes, bytes]]
"""Names and values of header fields."""


def stored_member(fetched: FetchedRecord, fields: Fields = ()) -> NewMember:
    """The record as one gzip member: the same bytes if it is one, unless its header gets `fields`. The pieces raise NoRecord."""
    if fields:
        parts = record_parts(fetched.record, fetched.content())
        header = with_fields(parts.header, fields)
        return NewMember(fetched.record, packed(chain((header, parts.http_head), parts.payload, (END,))))
    return NewMember(fetched.record, fetched.stored() if fetched.is_gzip else packed(fetched.content()))


def with_fields(header: bytes, fields: Fields) -> bytes:
    r"""A WARC header with further fields at its end. A field that it has stays as it is.

    >>> with_fields(b"WARC/1.0\r\nA: 1\r\n\r\n", [(b"a", b"2"), (b"B", b"3")])
    b'WARC/1.0\r\nA: 1\r\nB: 3\r\n\r\n'
    """
    have = {line.partition(b":")[0].strip().lower() for line in header.split(b"\n")}
    lines = [b"%b: %b\r\n" % (name, value) for name, value in fields if name.lower() not in have]
    return b"".join((header.rstrip(b"\r\n"), b"\r\n", *lines, b"\r\n"))


def warc_member_of_arc(
    fetched: FetchedRecord, named: tuple[object, ...], digest: bytes, fields: Fields = ()
) -> NewMember:
    """An ARC record as a WARC record, in one gzip member. `digest` is the SHA-1 of its payload.

    The header gets `fields`. `named` tells the record from all others; its WARC-Record-ID is made of it. Raises ValueError if the record has
    no valid date. The pieces raise NoRecord.
    """
    record = fetched.record
    header = warc_header_of_arc(
        record.headers, is_http_message(record), record.size, record_id(*named), digest
    )
    parts = record_parts(record, fetched.content())
    headers, _ = parse_warc_header(header)
    header = with_fields(header, fields)
    new = record._replace(headers=headers, payload_digest=None, is_arc=False)
    return NewMember(new, packed(chain((header, parts.http_head), parts.payload, (END,))))


def is_http_message(record: Record) -> bool:
    """Whether the block of an ARC record starts like an HTTP response."""
    return bytes(record.block[:5]) == b"HTTP/"


def packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """`pieces` as one gzip member, without name and time, so that the same content gives the same bytes."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for piece in pieces:
        if data := packer.compress(piece):
            yield data
    yield packer.flush()
