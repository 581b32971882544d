"""Records that cdxmill writes are read as what they are."""

from __future__ import annotations

import gzip

import pytest

from cdxmill.capture import Record
from cdxmill.stages.records.describe import description, is_description
from cdxmill.stages.records.fetch_record import Archive
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.write_record import (
    conversion_header,
    filedesc,
    is_http_message,
    record_id,
    stored_member,
    warc_date,
    warc_member_of_arc,
    warcinfo,
    with_fields,
)

HTTP = b"HTTP/1.1 200 OK\r\n\r\ntext"


def only_record(data: bytes) -> Record:
    (found,) = read_records(lambda pos, size: data[pos : pos + size])
    assert isinstance(found, Record)
    assert found.length in (len(data), len(data) - 4, len(data) - 1)
    return found


def arc(
    block: bytes, address: bytes = b"1.2.3.4", kind: bytes = b"text/html", date: bytes = b"20240517234122"
) -> bytes:
    return b"http://a.b/ %b %b %b %d\n%b\n" % (address, date, kind, len(block), block)


def as_warc(data: bytes, fields: list[tuple[bytes, bytes]]) -> tuple[Record, Record]:
    """The record as it is said to be, and as it is read."""
    fetched = Archive(lambda pos, size: data[pos : pos + size]).record(0, len(data))
    said, pieces = warc_member_of_arc(fetched, ("a", 1), b"DIGEST", fields)
    return said, only_record(gzip.decompress(b"".join(pieces)))


@pytest.mark.parametrize(
    ("block", "address", "kind", "fields"),
    [
        (HTTP, b"1.2.3.4", b"text/html", (b"response", b"1.2.3.4", b"application/http; msgtype=response")),
        (HTTP, b"0.0.0.0", b"no-type", (b"response", None, b"application/http; msgtype=response")),
        (b"text", b"2001:db8::1", b"text/plain", (b"resource", b"2001:db8::1", b"text/plain")),
        (b"HTTP text", b"localhost", b"no-type", (b"resource", None, b"application/octet-stream")),
        (b"", b"0.0.0.0", b"a/b", (b"resource", None, b"a/b")),
    ],
    ids=range(5),
)
def test_an_arc_record_becomes_a_warc_record(
    block: bytes, address: bytes, kind: bytes, fields: tuple[bytes | None, ...]
) -> None:
    said, found = as_warc(arc(block, address, kind), [(b"X-Own", b"1"), (b"content-type", b"x")])
    names = (b"warc-type", b"warc-ip-address", b"content-type")
    for one in (said, found):
        assert tuple(one.headers.get(name) for name in names) == fields
        assert (one.is_arc, one.size) == (False, len(block))
        assert one.headers[b"warc-date"] == b"2024-05-17T23:41:22Z"
        assert one.headers[b"warc-payload-digest"] == b"sha1:DIGEST"
        assert one.headers[b"warc-target-uri"] == b"http://a.b/"
    assert (found.block, found.headers[b"x-own"], said.payload_digest) == (block, b"1", None)


def test_an_arc_record_without_a_date_cannot_become_one() -> None:
    with pytest.raises(ValueError, match="has no valid date"):
        as_warc(arc(HTTP, date=b"unknown"), [])


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_a_record_is_copied_as_it_is_unless_its_header_gets_fields(pack: type[bytes]) -> None:
    header = (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.b/\r\nContent-Length: %d\r\n"
        % len(HTTP)
    )
    whole = header + b"\r\n" + HTTP + b"\r\n\r\n"
    data = pack(whole)
    archive = Archive(lambda pos, size: data[pos : pos + size])
    same = b"".join(stored_member(archive.record(0, None)).pieces)
    assert gzip.decompress(same) == whole
    assert pack is bytes or same == data
    more = b"".join(stored_member(archive.record(0, None), [(b"X", b"1")]).pieces)
    assert gzip.decompress(more) == header + b"X: 1\r\n\r\n" + HTTP + b"\r\n\r\n"


def test_first_records_name_their_file() -> None:
    info = only_record(warcinfo("a\u00e9.warc", b"20240517234122", [("what", "a\r\nb\tc")]))
    assert (info.headers[b"warc-type"], info.headers[b"warc-filename"]) == (b"warcinfo", "aé.warc".encode())
    assert b"\r\nwhat: a b c\r\n" in info.block
    first = only_record(filedesc("a b.arc", b"20240517234122"))
    assert (first.is_arc, first.headers[b"warc-target-uri"]) == (True, b"filedesc://a%20b.arc")
    text = only_record(conversion_header([(b"Target-URI", b"http://a.b/")], 4) + b"text\r\n\r\n")
    assert (text.headers[b"warc-type"], text.headers[b"content-type"], text.block) == (
        b"conversion",
        b"text/plain",
        b"text",
    )


def test_a_description_names_the_old_archive() -> None:
    name = "a\r\nb.warc.gz"
    one = description(name, "20240517234122", [("level", 6), ("tool", "x")])
    found = only_record(bytes(one.data or b""))
    assert (one.records, one.size, found.block) == (0, len(one.data or b""), b"level: 6\r\ntool: x\r\n")
    assert (found.headers[b"warc-type"], found.headers[b"warc-recompressed-from"]) == (
        b"metadata",
        b"ab.warc.gz",
    )
    assert b"warc-target-uri" not in found.headers
    assert is_description(one, name)
    assert not is_description(one, "b.warc.gz")
    assert not is_description(one._replace(data=b"WARC/1.0\r\n"), name)


@pytest.mark.parametrize(
    ("fields", "added"),
    [
        ([], b""),
        ([(b"B", b"2")], b"B: 2\r\n"),
        ([(b"a", b"2")], b""),
        ([(b"A", b"2"), (b"C", b"3"), (b"D", b"")], b"C: 3\r\nD: \r\n"),
        ([(b"1", b"2"), (b"warc/1.0", b"x")], b"1: 2\r\n"),
    ],
)
@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\r\n", b""])
def test_a_header_gets_the_fields_that_it_does_not_have(
    fields: list[tuple[bytes, bytes]], added: bytes, end: bytes
) -> None:
    header = b"WARC/1.0\r\nA : 1\r\n x: y"
    assert with_fields(header + end, fields) == header + b"\r\n" + added + b"\r\n"


def test_records_have_ids_of_what_they_are_made_of() -> None:
    assert record_id("a", 1) == record_id("a", "1") != record_id("a", 2)
    assert record_id("a", 1) != record_id("a\n1", "") != record_id("a")
    assert record_id("a\udcff").startswith(b"<urn:uuid:")
    assert warc_date(b"20240517234122") == b"2024-05-17T23:41:22Z"


@pytest.mark.parametrize(
    ("block", "is_http"),
    [(b"HTTP/1.1 200 OK", True), (b"HTTP/", True), (b"HTTP", False), (b"http/1.1", False), (b"", False)],
)
def test_an_http_message_starts_with_its_version(block: bytes, is_http: bool) -> None:
    for data in (block, bytearray(block)):
        assert is_http_message(Record(0, 0, {}, data, len(data), None, True)) == is_http
