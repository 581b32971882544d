"""The line of a record matches that record, whatever characters its URL has."""

from __future__ import annotations

import base64
import gzip
import hashlib
import zlib

import pytest

from cdxmill.capture import Record
from cdxmill.formats.lines.capture_fields import RecordLocation, record_location
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import LINE_FORMATS, index_archive
from cdxmill.stages.captures.match_record import (
    capture_of_record,
    difference,
    is_same_url,
    wrong_digest,
)
from cdxmill.stages.records.read_records import read_records

URLS = [
    "http://example.com/",
    "http://example.com/ä",
    "http://example.com/ä?b=1&a=2",
    "http://example.com/?ä=1&b=2#top",
    "http://example.com/ä#top",
    "http://exämple.com/?b&a",
    "http://example.com/a b?ä=c d&e",
    "<http://example.com/ä?b=1&a=2>",
    "urn:ä?b&a#c",
]
RECORD = (
    "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: %s\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
    "WARC-Record-ID: <urn:uuid:1>\r\nContent-Length: 2\r\n\r\nHi\r\n\r\n"
)


@pytest.mark.parametrize("line_format", LINE_FORMATS)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("url", URLS)
def test_a_line_matches_its_record(url: str, encoding: str, line_format: str) -> None:
    data = (RECORD % url).encode(encoding)
    indexer = index_archive(lambda pos, size: data[pos : pos + size], b"x", CaptureOptions(), line_format)
    ((line,),) = indexer
    (record,) = read_records(lambda pos, size: data[pos : pos + size])
    assert isinstance(record, Record)
    assert difference(capture_of_record(record), record_location(line)) is None


def test_a_line_of_another_url_does_not_match() -> None:
    data, other = (
        (RECORD % url).encode() for url in ("http://example.com/ä?b=1", "http://example.com/ä?b=2")
    )
    indexer = index_archive(lambda pos, size: other[pos : pos + size], b"x", CaptureOptions())
    ((line,),) = indexer
    (record,) = read_records(lambda pos, size: data[pos : pos + size])
    assert isinstance(record, Record)
    assert "is of http://example.com/ä?b=1" in str(
        difference(capture_of_record(record), record_location(line))
    )


ONE, OTHER = "A" * 32, "B" * 32


@pytest.mark.parametrize(
    ("digest", "in_line", "differs"),
    [
        (ONE, ONE, False),
        (ONE, OTHER, True),
        (ONE, f"sha1:{ONE}", False),
        (ONE, f"sha1:{OTHER}", True),
        (ONE, "", False),
        (ONE, "-", False),
        (ONE, "sha256:" + "0" * 64, False),
        (ONE, OTHER[:-1], False),
        (ONE, OTHER + "B", False),
        ("sha256:" + "0" * 64, OTHER, False),
        ("-", OTHER, False),
        (None, OTHER, False),
    ],
)
def test_only_two_sha1_digests_can_differ(digest: str | None, in_line: str, differs: bool) -> None:
    data = (RECORD % "http://a.com/").encode()
    (record,) = read_records(lambda pos, size: data[pos : pos + size])
    assert isinstance(record, Record)
    capture = capture_of_record(record)
    assert capture is not None
    line = b'com,a)/ 20240101000000 {"url": "http://a.com/", "digest": "%b", "offset": "0", "filename": "x"}'
    location = record_location(line % in_line.encode())
    capture = capture._replace(digest=None if digest is None else digest.encode())
    found = difference(capture, location)
    assert (found is not None) == differs
    assert not differs or str(found).startswith(
        f"the record has the digest {ONE}, the index line has {OTHER}"
    )


TEXT = b"some text " * 30
PACKED = gzip.compress(TEXT, mtime=0)
SENT = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (20, PACKED[:20], len(PACKED) - 20, PACKED[20:])
HEAD = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"


def digest_of(data: bytes) -> str:
    return base64.b32encode(hashlib.sha1(data).digest()).decode()


def response_of(block: bytes) -> bytes:
    return (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.com/\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
        b"WARC-Payload-Digest: sha1:%b\r\nContent-Type: application/http\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
        % (b"A" * 32, len(block), block)
    )


@pytest.mark.parametrize("kept", [len(HEAD + SENT), len(SENT), 9])
def test_a_payload_has_the_digest_of_each_of_its_forms_and_no_other(kept: int) -> None:
    """As crawlers hash it: as sent, without chunks, decoded; and the whole block."""
    block = HEAD + SENT
    data = response_of(block)
    (record,) = read_records(lambda pos, size: data[pos : pos + size])
    assert isinstance(record, Record)
    record = record._replace(block=block[:kept])
    is_whole = kept >= len(SENT)
    for form, is_right in ((SENT, True), (block, True), (PACKED, is_whole), (TEXT, is_whole), (b"", False)):
        pieces = iter((data[:100], data[100:-4]))
        assert (wrong_digest(record, pieces, digest_of(form)) is None) == is_right, form[:20]


def test_a_payload_that_only_begins_as_a_chunk_does_is_decoded() -> None:
    """A block of raw deflate: its first three bytes are also the line of a chunk, which does not end after its length."""
    text = b"x" * 0x0A0D
    packed = b"1\r\n\xf2\xf5" + text
    assert zlib.decompress(packed, -15) == text
    data = response_of(b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n" + packed)
    (record,) = read_records(lambda pos, size: data[pos : pos + size])
    assert isinstance(record, Record)
    assert wrong_digest(record, iter([data[:-4]]), digest_of(text)) is None
    assert wrong_digest(record, iter([data[:-4]]), digest_of(b"")) is not None


@pytest.mark.parametrize(
    ("kind", "more", "digest", "is_wrong"),
    [
        (b"response", b"", ONE, True),
        (b"response", b"", f"sha1:{ONE}", True),
        (b"resource", b"", ONE, True),
        (b"metadata", b"", ONE, True),
        (b"conversion", b"", ONE, True),
        (b"response", b"", digest_of(b"Hi"), False),
        (b"response", b"", f"sha1:{digest_of(b'Hi')}", False),
        (b"revisit", b"", ONE, False),  # it has no payload
        (b"request", b"", ONE, False),
        (b"response", b"", ONE[:-1], False),  # nothing that could be compared
        (b"response", b"", "sha256:00", False),
        (b"response", b"WARC-Truncated: length\r\n", ONE, False),
        (b"response", b"WARC-Truncated: length\r\n", digest_of(b"Hi"), False),
    ],
)
def test_the_digest_of_a_line_is_that_of_a_payload_which_is_whole(
    kind: bytes, more: bytes, digest: str, is_wrong: bool
) -> None:
    block = b"Hi" if kind in (b"resource", b"metadata", b"conversion") else b"HTTP/1.1 200 OK\r\n\r\nHi"
    data = response_of(block).replace(b"WARC-Type: response\r\n", b"WARC-Type: %b\r\n%b" % (kind, more))
    (record,) = read_records(lambda pos, size: data[pos : pos + size])
    assert isinstance(record, Record)
    found = wrong_digest(record, iter((data,)), digest)
    assert (found is not None) == is_wrong
    assert not is_wrong or found == f"the payload does not have the digest {ONE} of the index line"
    del record.headers[b"warc-payload-digest"]  # then its capture has the SHA-1 of the payload
    assert wrong_digest(record, iter((data,)), digest) is None


@pytest.mark.parametrize(
    ("url", "timestamp", "differs"),
    [
        ("http://a.com/", "20240101000000", ""),
        ("http://a.com/", "-", ""),
        ("http://a.com/", "2024010100000000", ""),  # more digits, as some ARC files have
        ("http://a.com/", "20240101000001", "is from 20240101000000"),
        ("http://a.com/", "soon", "is from 20240101000000"),
        ("", "20240101000000", ""),
        ("http://www.A.com", "20240101000000", ""),
        ("http://a.com/x", "20240101000000", "is of http://a.com/, the index line is of http://a.com/x"),
        ("http://[a", "20240101000000", "is of http://a.com/"),
    ],
)
def test_url_and_timestamp_of_a_record_are_those_of_the_line(url: str, timestamp: str, differs: str) -> None:
    data = (RECORD % "http://a.com/").encode()
    (record,) = read_records(lambda pos, size: data[pos : pos + size])
    assert isinstance(record, Record)
    found = difference(capture_of_record(record), RecordLocation("x", 0, None, url, timestamp, "", ""))
    assert differs in (found or "")
    assert (found is None) == (not differs)


def test_a_record_without_a_url_matches_no_line() -> None:
    data = (RECORD % "").encode()
    (record,) = read_records(lambda pos, size: data[pos : pos + size])
    assert isinstance(record, Record)
    found = difference(capture_of_record(record), RecordLocation("x", 0, None, "http://a.com/", "-", "", ""))
    assert found == "the record has no URL, the index line has http://a.com/"


def test_urls_that_have_no_key_are_the_same_only_if_they_are_equal() -> None:
    odd = "http://a.com:99999/"
    assert is_same_url(odd.encode(), odd)
    assert not is_same_url(odd.encode(), f"{odd}x")
    assert is_same_url(b"http://a.com/\xff", "http://a.com/\udcff")
