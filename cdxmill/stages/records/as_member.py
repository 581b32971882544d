"""A fetched record -> one gzip member: the stored bytes if they are one already, else compressed again."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cdxmill.capture import Record
from cdxmill.formats.archives.warc_header import parse_warc_header
from cdxmill.formats.archives.warc_record import END, record_id, warc_header_of_arc
from cdxmill.stages.records.fetch_record import FetchedRecord
from cdxmill.stages.records.record_parts import record_parts

_LEVEL = 6


class NewMember(NamedTuple):
    """A record as it will be in the new file, without its place there, and its gzip member in pieces."""

    record: Record
    pieces: Iterator[bytes]


def stored_member(fetched: FetchedRecord) -> NewMember:
    """The record as one gzip member. The pieces raise NoRecord."""
    return NewMember(fetched.record, fetched.stored() if fetched.is_gzip else packed(fetched.content()))


def warc_member_of_arc(fetched: FetchedRecord, named: tuple[object, ...], digest: bytes) -> NewMember:
    """An ARC record as a WARC record, in one gzip member. `digest` is the SHA-1 of its payload.

    `named` tells the record from all others; its WARC-Record-ID is made of it. Raises ValueError if the record has
    no valid date. The pieces raise NoRecord.
    """
    record = fetched.record
    header = warc_header_of_arc(
        record.headers, is_http_message(record), record.size, record_id(*named), digest
    )
    parts = record_parts(record, fetched.content())
    headers, _ = parse_warc_header(header)
    new = record._replace(headers=headers, payload_digest=None, is_arc=False)
    return NewMember(new, packed(_joined(header, parts.http_head, parts.payload)))


def is_http_message(record: Record) -> bool:
    """Whether the block of an ARC record starts like an HTTP response."""
    return bytes(record.block[:5]) == b"HTTP/"


def _joined(header: bytes, http_head: bytes, payload: Iterable[bytes]) -> Iterator[bytes]:
    yield header
    yield http_head
    yield from payload
    yield END


def packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """`pieces` as one gzip member, without name and time, so that the same content gives the same bytes."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for piece in pieces:
        if data := packer.compress(piece):
            yield data
    yield packer.flush()
