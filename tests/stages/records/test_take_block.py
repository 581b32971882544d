"""A record is taken from chunks of any size: its header may be in several of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from cdxmill.capture import CrawlNotes, Outcome, Record
from cdxmill.formats.archives.http_head import NO_HEAD, parse_http_head
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages.records import record_parts
from cdxmill.stages.records.parse_header import BlankContent, NotARecord, RecordError, TooLong
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.record_parts import digest_of
from cdxmill.stages.records.take_record import check_rest, is_one_record, take_block, take_whole

BLOCK = b"text " * 99
RECORD = (
    b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.b/%b\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
    % (b"long" * 999, len(BLOCK), BLOCK)
)


@pytest.mark.parametrize("size", [1, 10, 500, 4000, len(RECORD)])
def test_a_header_in_several_chunks(size: int) -> None:
    chunks: Iterator[bytes] = (RECORD[at : at + size] for at in range(0, len(RECORD), size))
    record, tail = take_block(0, chunks)
    check_rest(tail, chunks, False)
    assert (record.headers[b"warc-target-uri"], record.block) == (b"http://a.b/" + b"long" * 999, BLOCK)


def pieces_of(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


PAGE = b"HTTP/1.1 200 OK\r\nX: %b\r\n\r\n" % (b"y" * 3000) + b"page" * 900
NO_DIGEST = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.b/\r\nContent-Length: %d\r\n\r\n"
    % len(PAGE)
)
ARC = b"http://a.b/ 1.2.3.4 20240101000000 text/html %d\n" % len(PAGE)


@pytest.mark.parametrize("size", [1, 2, 7, 100, 3000, 1 << 20])
@pytest.mark.parametrize("head", [NO_DIGEST, ARC], ids=["warc", "arc"])
def test_the_digest_is_that_of_the_payload(head: bytes, size: int) -> None:
    chunks = pieces_of(head + PAGE + b"\r\n\r\n", size)
    record, tail = take_block(0, chunks)
    assert record.payload_digest == digest_of(b"page" * 900)
    assert (record.block, record.size, b"".join([tail, *chunks])) == (PAGE, len(PAGE), b"\r\n\r\n")
    (whole,) = read_records(lambda pos, size: (head + PAGE + b"\r\n\r\n")[pos : pos + size])
    assert isinstance(whole, Record)
    assert whole.payload_digest == record.payload_digest


@pytest.mark.parametrize("kind", [b"request", b"revisit", b"warcinfo"])
def test_records_without_a_payload_of_their_own_get_no_digest(kind: bytes) -> None:
    data = NO_DIGEST.replace(b"response", kind) + PAGE + b"\r\n\r\n"
    assert take_block(0, iter([data]))[0].payload_digest is None


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
@pytest.mark.parametrize(
    ("tail", "is_arc", "reason"),
    [
        (b"", False, ""),
        (b"\r\n\r\n", False, ""),
        (b"\n \t\r\n", False, ""),
        (b"\0\0\n", True, ""),
        (b"\0", False, "Content-Length is too short"),
        (b"\r\nx", True, "Content-Length is too short"),
        (b"\r\n\r\n" * 300 + b"x", False, "Content-Length is too short"),
        (b"\r\n\r\n" + RECORD, False, "more than one record"),
        (b"more", False, "Content-Length is too short"),
        (b"\r\n\r.", False, "Content-Length is too short"),
        (b"x\r\n\r\n", False, "Content-Length is too short"),
    ],
    ids=range(11),
)
def test_only_line_ends_may_follow_a_block(tail: bytes, is_arc: bool, reason: str, size: int) -> None:
    data = (ARC if is_arc else NO_DIGEST) + PAGE + tail
    for read in (_whole, _in_pieces):
        with nullcontext() if not reason else pytest.raises(RecordError) as raised:
            read(data, size)
        if raised is not None and size > 99:
            assert reason in str(raised.value)
    assert is_one_record(data, HeaderShapes()) == (not reason)
    shapes = HeaderShapes()
    shapes.parse(NO_DIGEST)
    assert is_one_record(data, shapes) == (not reason)


def _whole(data: bytes, size: int) -> None:
    del size
    record = take_whole(0, 9, data, None)
    assert isinstance(record, Record)
    assert record.block == PAGE


def _in_pieces(data: bytes, size: int) -> None:
    chunks = pieces_of(data, size)
    record, tail = take_block(0, chunks)
    check_rest(tail, chunks, record.is_arc)


def test_a_block_that_is_too_short_is_told_with_its_size() -> None:
    data = (NO_DIGEST + PAGE)[:-9]
    reason = f"Content-Length is {len(PAGE)}, but the block has only {len(PAGE) - 9} bytes"
    for read in (_whole, _in_pieces):
        with pytest.raises(TooLong, match=reason):
            read(data, 100)
    assert not is_one_record(data, HeaderShapes())


def test_a_content_of_line_ends_is_blank_and_one_with_more_is_no_record() -> None:
    for content, error in (
        (b"", BlankContent),
        (b"\r\n" * 99, BlankContent),
        (b"\r\n" * 99 + b"x", NotARecord),
    ):
        with pytest.raises(RecordError) as raised:
            take_block(0, pieces_of(content, 10))
        assert type(raised.value) is error


def test_a_header_that_never_ends_is_not_held() -> None:
    taken = 0

    def chunks() -> Iterator[bytes]:
        nonlocal taken
        yield b"WARC/1.0\r\n"
        while taken < 100 << 20:
            taken += 1 << 16
            yield b"X: y\r\n" + bytes(1 << 16)

    with pytest.raises(RecordError):
        take_block(0, chunks())
    assert taken < 8 << 20


def test_the_parts_of_a_large_record_are_those_of_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_parts, "BLOCK_HEAD", 3100)
    data = NO_DIGEST + PAGE + b"\r\n\r\n"
    record, _ = take_block(0, iter([data]))
    for size in (1, 50, 5000):
        parts = record_parts.record_parts(record, pieces_of(data, size))
        assert (parts.header, parts.http_head) == (NO_DIGEST, PAGE[: -len(b"page" * 900)])
        assert b"".join(parts.payload) == b"page" * 900


@pytest.mark.parametrize(("size", "count"), [(0, 0), (1, 1), (3, 1), (4, 2), (6, 2), (7, 3), (99, 3)])
def test_no_more_pieces_are_taken_than_are_asked_for(size: int, count: int) -> None:
    pieces = iter([b"abc"] * 3)
    assert record_parts.first_bytes(pieces, size) == b"abc" * count
    assert len(list(pieces)) == 3 - count


@pytest.mark.parametrize(
    ("http", "own", "is_arc", "found"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n", b"c/d", False, b"a/b"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"c/d", False, None),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"c/d", True, b"c/d"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"no-type", True, None),
        (b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n", b"no-type", True, b"a/b"),
        (b"", b"c/d", False, b"c/d"),
        (b"", b"no-type", False, b"no-type"),
        (b"", b"no-type", True, None),
        (b"", None, False, None),
        (b"", None, True, None),
    ],
)
def test_the_type_of_a_payload(http: bytes, own: bytes | None, is_arc: bool, found: bytes | None) -> None:
    head = parse_http_head(http) if http else NO_HEAD
    assert record_parts.payload_type(head, {b"content-type": own} if own else {}, is_arc) == found


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (b"WARC/2.0\r\n\r\n", "version"),
        (b"text\n", "no WARC or ARC record starts here"),
        (b"WARC/1.0\r\nX: y", "no blank line ends it"),
        (b"WARC/1.0\r\nX: y\r\n\r\n", "missing Content-Length"),
    ],
)
def test_what_is_wrong_with_a_header_is_raised(start: bytes, reason: str) -> None:
    for chunks in ([start], [start[:4], start[4:]]):
        with pytest.raises(RecordError, match=f"(?i){reason}"):
            take_block(0, iter(chunks))


def of_type(kind: bytes, content_type: bytes, block: bytes) -> bytes:
    return (
        b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Target-URI: http://a.b/\r\nWARC-Concurrent-To: <urn:1>\r\n"
        b"Content-Type: %b\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n" % (kind, content_type, len(block), block)
    )


FIELDS = b"application/warc-fields"
NOTES = b'charset-detected: UTF-8\r\nlanguages-cld2: {"code-iso-639-3":"eng"}\r\n'


@pytest.mark.parametrize("store", [bytes, bytearray])
@pytest.mark.parametrize(
    ("data", "lineless", "found"),
    [
        (of_type(b"request", b"x/y", b"text"), [b"request", b"metadata"], Outcome.NO_LINE),
        (of_type(b"request", b"x/y", b"text"), [b"metadata"], b"text"),
        (of_type(b"request", FIELDS, b"text"), [], b"text"),
        (of_type(b"metadata", FIELDS, NOTES), [b"request", b"metadata"], CrawlNotes(b"<urn:1>", b"UTF-8", b"eng")),
        (of_type(b"metadata", FIELDS, b"x: y"), [b"metadata"], CrawlNotes(b"<urn:1>", None, None)),
        (of_type(b"metadata", b"x/y", NOTES), [b"metadata"], NOTES),
        (of_type(b"metadata", FIELDS, NOTES), [b"request"], NOTES),
        (of_type(b"response", FIELDS, NOTES), [b"request", b"metadata"], NOTES),
        (of_type(b"request", b"x/y", b"text")[:-1], [b"request"], b"text"),
        (of_type(b"request", b"x/y", b"text") + b"\n", [b"request"], b"text"),
    ],
    ids=range(10),
)  # fmt: skip
def test_records_that_get_no_line_are_passed_after_the_same_checks(
    data: bytes, lineless: list[bytes], found: object, store: type[bytes]
) -> None:
    shapes = HeaderShapes()
    for is_known in (False, True):
        taken = take_whole(5, 9, store(data), shapes, frozenset(lineless))
        if isinstance(found, bytes) or not is_known:
            assert isinstance(taken, Record)
            assert (taken.offset, taken.length, taken.size) == (5, 9, len(taken.block))
            assert not isinstance(found, bytes) or taken.block == found
        else:
            assert taken == found
    with pytest.raises(TooLong, match="but the block has only"):
        take_whole(5, 9, store(data[: data.index(b"\r\n\r\n") + 5]), shapes, frozenset(lineless))
    with pytest.raises(RecordError, match="Content-Length is too short"):
        take_whole(5, 9, store(data.rstrip(b"\r\n") + b"more"), shapes, frozenset(lineless))


def test_no_more_of_a_content_is_read_than_its_parts_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_parts, "BLOCK_HEAD", 10)
    record, _ = take_block(0, iter([NO_DIGEST + PAGE]))
    monkeypatch.setattr(record_parts, "BLOCK_HEAD", 3100)
    pieces = [NO_DIGEST + PAGE[:3000], PAGE[3000:3200], PAGE[3200:], b"\r\n\r\n"]
    content = iter(pieces)
    parts = record_parts.record_parts(record, content)
    left = list(content)
    assert left == pieces[2:]
    content = iter(pieces)
    parts = record_parts.record_parts(record, content)
    assert b"".join(parts.payload) == b"page" * 900
    assert list(content) == pieces[3:]


def test_a_digest_in_the_header_is_not_computed_again() -> None:
    for field, is_computed in (
        (b"WARC-Payload-Digest: sha1:X", False),
        (b"WARC-Payload-Digest: ", True),
        (b"X: y", True),
    ):
        data = NO_DIGEST.replace(b"\r\nContent-", b"\r\n%b\r\nContent-" % field) + PAGE + b"\r\n\r\n"
        record, _ = take_block(0, iter([data]))
        assert record.payload_digest == (digest_of(b"page" * 900) if is_computed else None)


@pytest.mark.parametrize("size", [1, 2, 7, 29, 100, 5000])
def test_a_block_is_hashed_from_its_payload_on_however_it_comes(size: int) -> None:
    block = b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n" + b"page" * 20
    headers = {b"warc-type": b"response", b"warc-target-uri": b"http://a.b/"}
    body = record_parts.RecordBlockReader(headers, block, len(block))
    left = b"".join(body.feed(piece) for piece in pieces_of(block + b"\r\n\r\nmore", size))
    assert (body.missing, left, body.digest()) == (0, b"\r\n\r\nmore", digest_of(b"page" * 20))


@pytest.mark.parametrize(
    ("kind", "url", "is_http"),
    [
        (b"response", b"http://a.b/", True),
        (b"revisit", b"https://a.b/", True),
        (b"request", b"<http://a.b/>", True),
        (b"response", b"<<https:x", True),
        (b"resource", b"http://a.b/", False),
        (b"metadata", b"http://a.b/", False),
        (None, b"http://a.b/", False),
        (b"response", b"dns:a.b", False),
        (b"response", b"ftp://a.b/", False),
        (b"response", b"http", False),
        (b"response", b"", False),
    ],
)
def test_what_is_an_http_message(kind: bytes | None, url: bytes, is_http: bool) -> None:
    assert record_parts.is_http(kind, url) == is_http
    headers = {b"warc-target-uri": url, **({} if kind is None else {b"warc-type": kind})}
    block = b"HTTP/1.1 200 OK\r\n\r\nx"
    assert (record_parts.http_head_of(headers, block) is NO_HEAD) == (not is_http)
    assert record_parts.payload_start(headers, block) == (len(block) - 1 if is_http else 0)
    assert record_parts.http_head_of(headers, b"") is NO_HEAD
    assert record_parts.http_head_of({}, block) is NO_HEAD
