"""A record breaks off inside its header, and other records follow. Only the broken one is lost, and it is reported."""

from __future__ import annotations

import gzip
import json

import pytest

from cdxmill.capture import Damage
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import index_archive

HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n"


def record(name: bytes, fields: bytes = b"") -> bytes:
    block = HTTP + name * 4
    return (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://%b.com/\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
        b"WARC-Record-ID: <urn:uuid:%b>\r\n%bContent-Type: application/http; msgtype=response\r\n"
        b"Content-Length: %d\r\n\r\n%b\r\n\r\n" % (name, name, fields, len(block), block)
    )


A, B, C = (record(name) for name in (b"a", b"b", b"c"))


def test_a_record_of_an_unknown_type_is_reported() -> None:
    data = A + B.replace(b"response", b"rezponse") + C
    indexer = index_archive(lambda offset, size: data[offset : offset + size], b"x", CaptureOptions())
    assert sum(map(len, indexer)) == 2
    assert indexer.findings.damage == []
    (note,) = indexer.findings.notes
    assert (note.offset, note.reason) == (len(A), "unknown WARC-Type 'rezponse'; the record is not indexed")


def arc_record(name: bytes) -> bytes:
    return b"http://%b.com/ 1.2.3.4 20240101000000 text/plain %d\n%b\n" % (
        name,
        len(HTTP) + 4,
        HTTP + name * 4,
    )


def indexed(data: bytes) -> tuple[dict[str, int], list[Damage]]:
    """URL -> offset of each line, and the damage."""
    indexer = index_archive(lambda offset, size: data[offset : offset + size], b"x", CaptureOptions())
    lines = [json.loads(line.split(b" ", 2)[2]) for some in indexer for line in some]
    assert len({line["url"] for line in lines}) == len(lines)
    return {line["url"]: int(line["offset"]) for line in lines}, indexer.findings.damage


@pytest.mark.parametrize("at", range(1, A.index(HTTP)))
@pytest.mark.parametrize(
    "next_record", [B, A, record(b"b", b"X: y\r\n z\r\n")], ids=["another", "itself", "folded"]
)
def test_a_plain_warc_record_that_breaks_off_anywhere_in_its_header(at: int, next_record: bytes) -> None:
    found, damage = indexed(A[:at] + next_record + C)
    url = "http://a.com/" if next_record == A else "http://b.com/"
    assert found == {url: at, "http://c.com/": at + len(next_record)}
    assert [one.offset for one in damage] == [0]


@pytest.mark.parametrize("at", range(1, A.index(HTTP), 7))
def test_a_gzip_member_with_a_broken_record_and_another_one(at: int) -> None:
    members = [gzip.compress(content, mtime=0) for content in (A[:at] + B, C)]
    found, damage = indexed(b"".join(members))
    assert found == {"http://c.com/": len(members[0])}
    assert [one.offset for one in damage] == [0]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("fields", [b"X-Id: 1\r\nX-From: http://b.com\r\n", b"X-Id: 1\r\n"])
def test_a_header_that_breaks_off_before_any_field_of_the_standard(fields: bytes, packed: bool) -> None:
    """A crawler writes fields of its own first."""
    versions = (b"WARC/1.0\r\n", b"WARC/1.0\r\n" + fields)
    broken, after = A.replace(*versions), B.replace(*versions)
    for at in range(11, 10 + len(fields)):
        if broken[at - 1 : at] == b" ":  # a value can be the name of a version
            continue
        data = broken[:at] + (B if fields == b"X-Id: 1\r\n" else after)
        found, damage = indexed(
            (gzip.compress(data) if packed else data) + (gzip.compress(C) if packed else C)
        )
        assert [one.offset for one in damage] == [0], at
        assert [*found][-1] == "http://c.com/"
        assert packed or found["http://b.com/"] == at


def test_a_header_that_begins_as_one_and_ends_as_another() -> None:
    begin, end = A.index(b"WARC-Date"), B.index(b"WARC-Record-ID")
    found, damage = indexed(A[:begin] + B[B.index(b"WARC-Target-URI") :] + C)
    assert list(found) == ["http://c.com/"]
    assert [one.offset for one in damage] == [0]
    found, damage = indexed(A[:end] + B[B.index(b"Content-Type") :] + C)  # as if it were whole
    assert list(found) == ["http://a.com/", "http://c.com/"]


def test_a_header_without_its_blank_line() -> None:
    found, damage = indexed(A.replace(b"\r\n\r\nHTTP", b"\r\nHTTP") + B + C)
    assert list(found) == ["http://b.com/", "http://c.com/"]
    assert [one.offset for one in damage] == [0]


@pytest.mark.parametrize(
    "field",
    [
        b"WARC-Concurrent-To: <urn:1>\r\nWARC-Concurrent-To: <urn:2>\r\n",
        b"WARC-Refers-To-Target-URI: http://a.com/WARC/1.0\r\n",
        b"X: a\r\n WARC/1.0\r\nY: b\r\n",
        b"X: WARC/1.0\r\n",
        b"X: WARC/1.0 and more\r\n",
        b"WARC-Date: 2024-01-01T00:00:00Z\r\n",
    ],
)
def test_odd_headers_of_whole_records_are_read(field: bytes) -> None:
    odd = record(b"o", field)
    if b"1.0\r" in field:  # with this field first
        odd = b"WARC/1.0\r\n" + field + odd.replace(field, b"")[10:]
    assert indexed(A + odd + C) == (
        {"http://a.com/": 0, "http://o.com/": len(A), "http://c.com/": len(A + odd)},
        [],
    )
    assert list(indexed(gzip.compress(odd))[0]) == ["http://o.com/"]


@pytest.mark.parametrize("at", range(1, arc_record(b"a").index(b"\n")))
def test_an_arc_record_that_breaks_off_in_its_header_line(at: int) -> None:
    first, broken, after, last = (arc_record(name) for name in (b"f", b"a", b"b", b"c"))
    found, damage = indexed(first + broken[:at] + after + last)
    begin = len(first) + at
    assert found["http://c.com/"] == begin + len(after)
    assert "http://a.com/" not in found
    if at > broken.index(b" ") + 1:  # before, it is a URL that contains another one
        assert found == {"http://f.com/": 0, "http://b.com/": begin, "http://c.com/": begin + len(after)}
        assert [one.offset for one in damage] == [len(first)]


@pytest.mark.parametrize("at", range(11, A.index(HTTP), 5))
def test_the_letters_of_the_second_version_line_may_be_small(at: int) -> None:
    """cdxmill does not search for such a record, but it reports the bytes."""
    found, damage = indexed(A[:at] + B.replace(b"WARC/1.0", b"warc/1.0", 1) + C)
    assert set(found) - {"http://b.com/"} == {"http://c.com/"}
    assert damage
