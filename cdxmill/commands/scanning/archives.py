"""The writers of a scan whose output is an archive: the records that match, or their texts."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha1
from itertools import chain
from typing import IO

from cdxmill.commands.scanning.rows import packer
from cdxmill.outputs.time import output_time
from cdxmill.stages.pages.decode_text import detect_language
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.pages.language_codes import THREE_LETTERS
from cdxmill.stages.records.pack_contents import write_contents
from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.records.record_parts import base32, digest_of
from cdxmill.stages.records.write_record import (
    END,
    conversion_header,
    record_id,
    warc_date,
    warc_header_of_arc,
    warcinfo,
)
from cdxmill.stages.scan.fields import CallError


def write_warc(file: IO[bytes], to: str, name: str, contents: Iterable[Content]) -> None:
    """Write an archive in the format `to`: a warcinfo record with its `name`, and records as they are.

    Each is in a member or frame of its own.
    """
    head = warcinfo(name, output_time().encode(), [])
    first = Content(0, 0, len(head), head)
    for _ in write_contents(chain((first,), contents), packer(to.partition(".")[2]), file.write):
        pass


def as_warc(record: FullRecord, content: Content, name: str) -> Content:
    """The content of a record for a WARC file: as it is, or, if it is of an ARC file, with the header of a WARC record.

    `name` is that of the ARC file. Raises CallError if the record has no valid date.
    """
    if not record.is_arc:
        return content
    block = record.block
    is_http = block.startswith(b"HTTP/")
    payload = block[record.http.end :] if is_http else block
    named = record_id(name, record.offset, record.number)
    try:
        header = warc_header_of_arc(record.headers, is_http, len(block), named, base32(sha1(payload)))
    except ValueError as error:
        raise CallError(str(error)) from None
    data = header + block + END
    return Content(content.offset, content.length, len(data), data)


def as_text(record: FullRecord, content: Content, name: str, text: str) -> Content:
    """A WARC record with the `text` of a record, as in Common Crawl's WET files. `name` is that of the archive.

    A record that is a text of another one stays as it is. Raises CallError if the record has no valid date.
    """
    if record.kind == b"conversion":
        return content
    if not record.time:
        raise CallError("the record has no valid date, which a WARC record must have")
    block = text.encode("utf-8", "replace")
    of_arc = record_id(name, record.offset, record.number) if record.is_arc else b""  # that of as_warc
    language = THREE_LETTERS.get(detect_language(text).code, "").encode()
    fields = [
        (b"Target-URI", record.headers.get(b"warc-target-uri", b"").strip(b"<>")),
        (b"Date", warc_date(record.time.encode()) if record.is_arc else record.headers[b"warc-date"]),
        (b"Record-ID", record_id(name, record.offset, record.number, "text")),
        (b"Refers-To", of_arc or record.headers.get(b"warc-record-id", b"")),
        (b"Block-Digest", b"sha1:" + digest_of(block)),
        (b"Identified-Content-Language", record.header(b"warc-identified-content-language") or language),
    ]
    data = conversion_header([field for field in fields if field[1]], len(block)) + block + END
    return Content(content.offset, content.length, len(data), data)
