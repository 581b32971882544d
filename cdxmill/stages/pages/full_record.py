"""A record of an archive with all its bytes. Each part of it is computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cdxmill.capture import Damage, Headers, Note
from cdxmill.errors import UsageError
from cdxmill.formats.archives.http_head import NO_HEAD, HttpHead, parse_http_head
from cdxmill.formats.archives.warc_header import (
    ASKED,
    MAX_HEADER,
    HeaderMatch,
    HeaderShapes,
    fields_of,
    head_of,
    parse_fields,
    parse_warc_header,
)
from cdxmill.stages.pages.computed import computed
from cdxmill.stages.records.parse_header import RecordError, content_length, parse_header
from cdxmill.stages.records.read_contents import Content, ScratchFiles, choose_contents
from cdxmill.stages.records.record_parts import MAX_BODY, first_bytes, is_http, payload_type, record_timestamp
from cdxmill.stages.window import CHUNK, ReadAt

if TYPE_CHECKING:  # they are slow to import, and many scans need no bodies
    from cdxmill.stages.pages.parse_page import Page
    from cdxmill.stages.records.decode_payload import Body

_HEADER = MAX_HEADER + (1 << 16)
"""Bytes of a record that contain its header."""
_WITH_PAYLOAD = frozenset((b"response", b"resource", b"conversion", b"metadata"))


CUT_RECORD = "the record is larger than 256 MiB; only its start was read"


class FullRecord:
    """One record. `number` counts the records of the archive from 0; `offset` and `length` are its byte range there.

    `filename` is the name of its archive, in a scan. Requires: if it is larger than 8 MiB, its block is read before the next
    record of its archive.
    """

    filename = ""

    def __init__(
        self, content: Content, number: int, shapes: HeaderShapes, found: HeaderMatch | None = None
    ) -> None:
        """`found` is the header's match, if it is known. Otherwise raises RecordError if there is no header."""
        self.offset, self.length, self.number = content.offset, content.length, number
        self._content = content
        self._found = found
        self.is_arc = False
        if found is None:
            data = self._start_of_record
            self._asked, self._block_at, self.is_arc = parse_header(data, shapes.parse)
            self.headers = self._asked

    def __repr__(self) -> str:
        return f"<FullRecord {self.kind.decode('latin-1')} {self.url} at {self.offset}>"

    @computed
    def _start_of_record(self) -> bytes | bytearray:
        data = self._content.data
        return data if data is not None else first_bytes(self._content.pieces(), _HEADER)

    @computed
    def headers(self) -> Headers:
        """The fields of the record's header by their names in lower case."""
        return parse_warc_header(self._start_of_record)[0]

    @computed
    def _asked(self) -> Headers:
        """Those in ASKED, which take less time."""
        assert self._found is not None
        return fields_of(self._found)

    @computed
    def _block_at(self) -> int:
        assert self._found is not None
        return self._found[1].end()

    @computed
    def size(self) -> int:
        """Bytes of the block."""
        if self._found is None:
            return content_length(self._asked)
        shape, match = self._found  # the other fields are not needed
        return int(match[shape.length])

    def header(self, name: bytes) -> bytes | None:
        """A field of the record's header by its name in lower case."""
        return self._asked.get(name) if name in ASKED else self.headers.get(name)

    @property
    def kind(self) -> bytes:
        """The record type: response, request and so on."""
        return self._asked.get(b"warc-type", b"") if self._found is None else self._found[0].kind

    @computed
    def url(self) -> str:
        """The URL; "" if there is none."""
        if self._found is not None:  # without the other fields
            return head_of(self._found).url_text()
        return self._asked.get(b"warc-target-uri", b"").strip(b"<>").decode("utf-8", "replace")

    @computed
    def time(self) -> str:
        """The timestamp with 14 digits; "" if the date is missing or invalid."""
        return (record_timestamp(self._asked, self.is_arc) or b"").decode()

    @computed
    def is_large(self) -> bool:
        """Whether the record is larger than the largest body. The rest is not read."""
        return self.size > MAX_BODY

    @property
    def is_cut(self) -> bool:
        """Whether the block was asked for, and is only the start of a large one."""
        return "block" in self.__dict__ and self.is_large

    @computed
    def block(self) -> bytes:
        """The content block, or its first 256 MiB."""
        start, stop = self._block_at, self._block_at + min(self.size, MAX_BODY)
        data = self._content.data
        if data is None:
            data = first_bytes(self._content.pieces(), stop)
        return bytes(memoryview(data)[start:stop])  # one copy of a bytearray, not two

    @computed
    def raw(self) -> bytes | bytearray:
        """All bytes of a record that is held in memory, with the line ends after it."""
        data = self._content.data
        return b"".join(self._content.pieces()) if data is None else data

    @computed
    def is_http(self) -> bool:
        """Whether the block is an HTTP message."""
        if self._found is None:
            return self.size > 0 and is_http(self.kind, self._asked.get(b"warc-target-uri", b""))
        return self.size > 0 and is_http(*head_of(self._found))

    @computed
    def http(self) -> HttpHead:
        """Status, Content-Type and end of the HTTP head; the end is 0 if there is none."""
        return parse_http_head(self.block) if self.is_http else NO_HEAD

    @property
    def http_head(self) -> bytes:
        """The bytes of the HTTP head."""
        return self.block[: self.http.end]

    @computed
    def http_fields(self) -> Headers:
        """The fields of the HTTP head by their names in lower case."""
        head = self.http_head
        return parse_fields(head, head.find(b"\n") + 1)[0] if head else {}

    @computed
    def content_type(self) -> bytes | None:
        """The Content-Type of the payload: that of the HTTP head, or else of the record."""
        return payload_type(self.http, self._asked, self.is_arc)

    @property
    def has_payload(self) -> bool:
        """Whether the record is of a type with a payload. A request or revisit has none."""
        return self.kind in _WITH_PAYLOAD

    @computed
    def body(self) -> Body:
        """The payload with transfer and content encodings undone. A request or revisit has none."""
        from cdxmill.stages.records.decode_payload import Body, decode_body

        if not self.has_payload:
            return Body(b"")
        if not self.is_http:
            return Body(self.block)
        return decode_body(self.http_head, self.block[self.http.end :])

    @computed
    def page(self) -> Page | None:
        """The page, if the record is one (see is_page.py)."""
        from cdxmill.stages.pages.is_page import is_binary, is_page, may_be_page
        from cdxmill.stages.pages.parse_page import Page

        media = self._asked.get(b"warc-identified-payload-type") or self.content_type
        if not may_be_page(self.kind, media):
            return None
        data = self.body.data
        if is_binary(data, self.content_type) or not is_page(media, data):
            return None
        return Page(self.url, data, self.content_type)

    @computed
    def text(self) -> str | None:
        """The text of a page; of a conversion or another text, all of it; None if it has no text."""
        return self.plain_text if self.page is None else self.page.text

    @computed
    def plain_text(self) -> str | None:
        """The text of a record that is no page, but a conversion or of a type such as text/plain; None if it has no text."""
        from cdxmill.stages.pages.decode_text import decode_text
        from cdxmill.stages.pages.is_page import is_binary

        if self.kind == b"conversion":
            return self.body.data.decode("utf-8", "replace")
        content_type = self.content_type or b""
        if not content_type.lower().startswith(b"text/") or is_binary(self.body.data, content_type):
            return None
        return decode_text(self.body.data, content_type).utf8.decode()

    @property
    def links(self) -> list[str]:
        """The links of a page: absolute http and https URLs. Of all other records, none."""
        return [] if self.page is None else self.page.links


def full_records(
    read_at: ReadAt,
    scratch: ScratchFiles,
    chunk: int = CHUNK,
    note: Callable[[Note], object] = lambda _: None,
) -> Iterator[FullRecord | Damage]:
    """Every record of the archive that `read_at(offset, size)` reads, in order. What is not read is Damage.

    `note` gets what is unusual in the archive.

    If a record of more than 8 MiB is asked for its block after the next one was read, it raises UsageError.
    """
    shapes, number = HeaderShapes(), -1

    def choose(content: Content, found: HeaderMatch | None) -> FullRecord | Damage:
        nonlocal number
        number += 1
        own, stream = number, content.stream

        def while_current() -> Iterator[bytes]:
            if own != number:
                raise UsageError(
                    f"record at offset {content.offset}: read its content before the next record"
                )
            return stream()

        try:
            return FullRecord(content._replace(stream=while_current), own, shapes, found)
        except RecordError as error:
            return Damage(content.offset, error.reason, error.hint)

    return choose_contents(read_at, scratch, choose, chunk, note=note)
