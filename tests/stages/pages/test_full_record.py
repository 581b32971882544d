"""What a record is, whether its header was parsed or only matched."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from cdxmill.capture import Damage
from cdxmill.errors import UsageError
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages.pages import full_record
from cdxmill.stages.pages.full_record import FullRecord, full_records
from cdxmill.stages.records.read_contents import Content

from ...material.memory_files import MemoryFiles

BLOCK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nbody"


@pytest.mark.parametrize("is_matched", [False, True])
@pytest.mark.parametrize(
    ("kind", "url", "is_http"),
    [
        (b"response", b"http://a.org/", True),
        (b"revisit", b"<https://a.org/>", True),
        (b"request", b"http://a.org/", True),
        (b"response", b"dns:a.org", False),
        (b"resource", b"http://a.org/", False),
        (b"conversion", b"http://a.org/", False),
    ],
)
def test_a_block_is_a_message_by_the_type_and_the_url(
    kind: bytes, url: bytes, is_http: bool, is_matched: bool
) -> None:
    header = b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Target-URI: %b\r\nContent-Length: %d\r\n\r\n"
    data = header % (kind, url, len(BLOCK)) + BLOCK + b"\r\n\r\n"
    shapes = HeaderShapes()
    shapes.parse(data)
    found = shapes.match(data) if is_matched else None
    assert (found is not None) is is_matched
    record = FullRecord(Content(0, len(data), len(data), data), 0, shapes, found)
    assert (record.is_http, record.http.status) == (is_http, b"200" if is_http else None)


def record_of(
    block: bytes,
    kind: bytes = b"response",
    fields: bytes = b"",
    *,
    is_matched: bool = False,
    is_streamed: bool = False,
    url: bytes = b"http://a.org/x/",
) -> FullRecord:
    header = b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Target-URI: %b\r\nWARC-Date: 2024-05-17T23:41:22Z\r\n%bContent-Length: %d\r\n\r\n"
    data = header % (kind, url, fields, len(block)) + block + b"\r\n\r\n"
    shapes = HeaderShapes()
    shapes.parse(data)

    def stream() -> Iterator[bytes]:
        return (data[start : start + 50] for start in range(0, len(data), 50))

    content = Content(7, 9, len(data), None if is_streamed else data, stream)
    return FullRecord(content, 3, shapes, shapes.match(data) if is_matched else None)


def message(body: bytes, fields: bytes = b"Content-Type: text/html\r\n") -> bytes:
    return b"HTTP/1.1 200 OK\r\nServer: x\r\n%b\r\n%b" % (fields, body)


PAGE = message(b"<p>text<a href=y>z</a>")


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("is_matched", [False, True])
def test_the_parts_of_a_record(is_matched: bool, is_streamed: bool) -> None:
    one = record_of(PAGE, fields=b"X-Own: 1\r\n", is_matched=is_matched, is_streamed=is_streamed)
    assert (one.offset, one.length, one.number, one.is_arc) == (7, 9, 3, False)
    assert (one.kind, one.url, one.time) == (b"response", "http://a.org/x/", "20240517234122")
    assert (one.size, one.block, one.is_large, one.is_cut) == (len(PAGE), PAGE, False, False)
    assert one.raw == b"".join(one._content.pieces())
    assert bytes(one.raw).endswith(PAGE + b"\r\n\r\n")
    assert (one.header(b"x-own"), one.header(b"warc-type"), one.header(b"x-no")) == (b"1", b"response", None)
    assert one.http_fields == {b"server": b"x", b"content-type": b"text/html"}
    assert one.body.data == b"<p>text<a href=y>z</a>"
    assert (one.text, one.links, one.plain_text) == ("text z", ["http://a.org/x/y"], "<p>text<a href=y>z</a>")
    assert repr(one) == "<FullRecord response http://a.org/x/ at 7>"


@pytest.mark.parametrize("is_matched", [False, True])
def test_a_record_without_a_block_has_no_parts(is_matched: bool) -> None:
    one = record_of(b"", is_matched=is_matched)
    assert (one.size, one.is_http, one.block, one.http_fields, one.body.data) == (0, False, b"", {}, b"")
    assert (one.page, one.text, one.links) == (None, None, [])
    assert record_of(b"x", is_matched=is_matched).is_http


def test_a_date_that_is_none_is_an_empty_time() -> None:
    data = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    one = FullRecord(Content(0, 1, len(data), data), 0, HeaderShapes())
    assert (one.time, one.url, one.kind) == ("", "", b"resource")


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(("more", "is_large"), [(0, False), (-1, True)])
def test_of_a_large_record_the_start_is_read(
    more: int, is_large: bool, is_streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_record, "MAX_BODY", len(PAGE) + more)
    one = record_of(PAGE, is_streamed=is_streamed)
    assert (one.is_large, one.is_cut) == (is_large, False)
    assert one.block == PAGE[: len(PAGE) + more]
    assert one.is_cut == is_large


@pytest.mark.parametrize(
    ("block", "kind", "fields", "text", "is_page"),
    [
        (PAGE, b"response", b"", "text z", True),
        (PAGE, b"revisit", b"", "", False),
        (PAGE, b"request", b"", "", False),
        (b"<p>x", b"resource", b"Content-Type: text/html\r\n", "x", True),
        (b"<p>x", b"metadata", b"Content-Type: text/html\r\n", "<p>x", False),
        (b"<p>x", b"resource", b"", "x", True),
        (b"some text", b"resource", b"", None, False),
        (b"some text", b"resource", b"Content-Type: Text/plain\r\n", "some text", False),
        (b"caf\xe9 noir", b"resource", b"Content-Type: text/css; charset=latin1\r\n", "café noir", False),
        (b"some\0text", b"resource", b"Content-Type: text/plain\r\n", None, False),
        (b"some text", b"resource", b"Content-Type: image/png\r\n", None, False),
        (b"some\0text\xff", b"conversion", b"Content-Type: image/png\r\n", "some\0text\ufffd", False),
        (message(b"<p>x\0\1"), b"response", b"", None, False),
        (message(b"<p>x", b"Content-Type: image/png\r\n"), b"response", b"", None, False),
        (message(b"<p>x", b""), b"response", b"", "x", True),
        (message(b"x", b""), b"response", b"", None, False),
        (PAGE, b"response", b"WARC-Identified-Payload-Type: image/png\r\n", None, False),
        (message(b"<p>x", b"Content-Type: image/png\r\n"), b"response", b"WARC-Identified-Payload-Type: text/html\r\n", "x", True),
        (message(gzip.compress(b"<p>x", mtime=0), b"Content-Type: text/html\r\nContent-Encoding: gzip\r\n"), b"response", b"", "x", True),
    ],
    ids=range(19),
)  # fmt: skip
def test_which_records_are_pages_or_texts(
    block: bytes, kind: bytes, fields: bytes, text: str | None, is_page: bool
) -> None:
    one = record_of(block, kind, fields)
    assert (one.page is not None) == is_page
    if not (kind == b"response" and not is_page):
        assert one.text == text


def test_a_large_record_is_read_before_the_next_one() -> None:
    header = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: %d\r\n\r\n"
    large = header % (9 << 20) + bytes(9 << 20) + b"\r\n\r\n"
    odd = b"WARC/1.0\r\nWARC-Type: resource\r\n\r\n\r\n\r\n"
    data = large + odd + large

    def read_at(pos: int, size: int) -> bytes:
        return data[pos : pos + size]

    records = []
    for item in full_records(read_at, MemoryFiles()):
        if isinstance(item, FullRecord):
            assert len(item.block) == 9 << 20
            records.append(item)
        else:
            assert isinstance(item, Damage)
    assert [one.number for one in records] == [0, 1]
    assert bytes(records[1].raw) + b"\r\n\r\n" == large
    with pytest.raises(UsageError, match="record at offset 0: read its content before the next record"):
        _ = records[0].raw
