"""Scans whose output is an archive: the records as they are, those of ARC files as WARC records, and texts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import zlib
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from cdxmill.commands.scanning.archives import as_text, as_warc, write_warc
from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.records.write_record import record_id
from cdxmill.stages.scan.fields import CallError

TEXT = "This is the language of the English people."
CONTENT = Content(7, 70, 700, b"the record")


def sha1(data: bytes) -> bytes:
    return base64.b32encode(hashlib.sha1(data).digest())


def headers_of(data: bytes) -> tuple[dict[bytes, bytes], bytes]:
    """The fields of a record, and its block without the line ends after it."""
    head, _, block = data.partition(b"\r\n\r\n")
    first, *rows = head.split(b"\r\n")
    assert first == b"WARC/1.0"
    assert block.endswith(b"\r\n\r\n")
    fields = dict(row.split(b": ", 1) for row in rows)
    block = block.removesuffix(b"\r\n\r\n")
    assert int(fields.pop(b"Content-Length")) == len(block)
    return fields, block


@pytest.mark.parametrize("to", ["warc.gz", "warc.zst", "wet.gz", "wet.zst"])
@pytest.mark.parametrize("number", [0, 2])
def test_an_archive_begins_with_its_name(to: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1577836800")
    file = io.BytesIO()
    records = [b"record %d\r\n\r\n" % one for one in range(number)]
    write_warc(file, to, "x.warc", (Content(0, 0, len(one), one) for one in records))
    assert not file.closed
    data, members = file.getvalue(), list[bytes]()
    while data:
        inflater: Any = zlib.decompressobj(zlib.MAX_WBITS | 16)
        if to.endswith("zst"):
            inflater = zstandard.ZstdDecompressor().decompressobj()
        members.append(inflater.decompress(data))
        data = inflater.unused_data
    fields, block = headers_of(members[0])
    assert (fields[b"WARC-Type"], fields[b"WARC-Filename"]) == (b"warcinfo", b"x.warc")
    assert fields[b"WARC-Date"] == b"2020-01-01T00:00:00Z"
    assert block.startswith(b"software: cdxmill/")
    assert members[1:] == records
    if to.endswith("gz"):
        assert gzip.decompress(file.getvalue()) == b"".join(members)


def arc(block: bytes, date: bytes = b"20200101000000", head: int = 0) -> Any:
    headers = {
        b"warc-date": date,
        b"warc-ip-address": b"1.2.3.4",
        b"warc-target-uri": b"http://a.com/",
        b"content-type": b"text/html",
    }
    return SimpleNamespace(
        is_arc=True, block=block, headers=headers, offset=5, number=3, http=SimpleNamespace(end=head)
    )


def test_a_warc_record_is_written_as_it_is() -> None:
    record: Any = SimpleNamespace(is_arc=False)
    assert as_warc(record, CONTENT, "a.warc") is CONTENT


HTTP = b"HTTP/1.0 200 OK\r\n\r\n"


@pytest.mark.parametrize(
    ("block", "head", "kind", "payload"),
    [
        (HTTP + b"<p>", len(HTTP), b"response", b"<p>"),
        (HTTP, len(HTTP), b"response", b""),
        (b"plain text", 3, b"resource", b"plain text"),
        (b"http/1.0 200 OK", 3, b"resource", b"http/1.0 200 OK"),
        (b"", 0, b"resource", b""),
    ],
)
def test_an_arc_record_gets_the_header_of_a_warc_record(
    block: bytes, head: int, kind: bytes, payload: bytes
) -> None:
    found = as_warc(arc(block, head=head), CONTENT, "a.arc")
    assert (found.offset, found.length) == (7, 70)
    assert found.data is not None and found.size == len(found.data)
    fields, written = headers_of(bytes(found.data))
    assert written == block
    assert fields[b"WARC-Type"] == kind
    assert fields[b"WARC-Date"] == b"2020-01-01T00:00:00Z"
    assert fields[b"WARC-Payload-Digest"] == b"sha1:" + sha1(payload)
    assert fields[b"WARC-Record-ID"] == record_id("a.arc", 5, 3)


def test_an_arc_record_without_a_date_is_reported() -> None:
    with pytest.raises(CallError, match="the ARC record has no valid date"):
        as_warc(arc(b"x", b"yesterday"), CONTENT, "a.arc")


def page(**values: Any) -> Any:
    headers = {
        b"warc-target-uri": b"<http://a.com/>",
        b"warc-date": b"2020-01-01T00:00:00.5Z",
        b"warc-record-id": b"<urn:1>",
    }
    own = values.pop("headers", {})
    found = {**headers, **own}
    known: dict[str, Any] = {
        "kind": b"response",
        "time": "20200101000000",
        "is_arc": False,
        "offset": 5,
        "number": 3,
    }
    known |= values
    chosen = {name: value for name, value in found.items() if value is not None}
    return SimpleNamespace(**known, headers=chosen, header=chosen.get)  # fmt: skip


def test_a_text_of_a_text_stays_as_it_is() -> None:
    assert as_text(page(kind=b"conversion", time=""), CONTENT, "a.wet", TEXT) is CONTENT


def test_a_text_needs_a_date() -> None:
    with pytest.raises(CallError, match="the record has no valid date, which a WARC record must have"):
        as_text(page(time=""), CONTENT, "a.warc", TEXT)


FIELDS = {
    b"WARC-Type": b"conversion",
    b"WARC-Target-URI": b"http://a.com/",
    b"WARC-Date": b"2020-01-01T00:00:00.5Z",
    b"WARC-Record-ID": record_id("a.warc", 5, 3, "text"),
    b"WARC-Refers-To": b"<urn:1>",
    b"WARC-Block-Digest": b"sha1:" + sha1(TEXT.encode()),
    b"WARC-Identified-Content-Language": b"eng",
    b"Content-Type": b"text/plain",
}


@pytest.mark.parametrize(
    ("values", "text", "changed"),
    [
        ({}, TEXT, {}),
        ({}, "12345", {b"WARC-Identified-Content-Language": None}),
        ({}, "a\ud800é", {b"WARC-Identified-Content-Language": None}),
        ({"headers": {b"warc-target-uri": None}}, TEXT, {b"WARC-Target-URI": None}),
        ({"headers": {b"warc-target-uri": b"http://b.com/"}}, TEXT, {b"WARC-Target-URI": b"http://b.com/"}),
        ({"headers": {b"warc-record-id": None}}, TEXT, {b"WARC-Refers-To": None}),
        (
            {"headers": {b"warc-identified-content-language": b"deu,fra"}},
            TEXT,
            {b"WARC-Identified-Content-Language": b"deu,fra"},
        ),
        (
            {"is_arc": True, "headers": {b"warc-date": b"20200101000000", b"warc-record-id": None}},
            TEXT,
            {b"WARC-Date": b"2020-01-01T00:00:00Z", b"WARC-Refers-To": record_id("a.warc", 5, 3)},
        ),
        (
            {"is_arc": True},
            TEXT,
            {b"WARC-Date": b"2020-01-01T00:00:00Z", b"WARC-Refers-To": record_id("a.warc", 5, 3)},
        ),
    ],
)
def test_what_is_known_of_a_text_is_in_its_header(
    values: dict[str, Any], text: str, changed: dict[bytes, bytes | None]
) -> None:
    found = as_text(page(**values), CONTENT, "a.warc", text)
    assert (found.offset, found.length) == (7, 70)
    assert found.data is not None and found.size == len(found.data)
    fields, block = headers_of(bytes(found.data))
    assert block == text.encode("utf-8", "replace")
    expected = {**FIELDS, b"WARC-Block-Digest": b"sha1:" + sha1(block), **changed}
    assert fields == {name: value for name, value in expected.items() if value is not None}
    assert list(fields) == [name for name in FIELDS if name in fields]
