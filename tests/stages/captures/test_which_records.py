"""Which records get a line, what its fields are, and what is reported of the others."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from cdxmill.capture import Capture, CommonLine, CrawlNotes, Damage, Note, Record
from cdxmill.stages import native
from cdxmill.stages.captures.capture_options import CaptureOptions, clean_url
from cdxmill.stages.captures.index_archive import (
    MAX_DAMAGE,
    CaptureLines,
    Findings,
    common_reader,
    index_archive,
)
from cdxmill.stages.captures.make_captures import make_captures

URL = b"http://example.com/a"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=x\r\n\r\nHi"
USUAL, ALL = CaptureOptions(), CaptureOptions(records=None)
MINIMAL = CaptureOptions(records=None, minimal=True)
SHA1_OF_HI = b"STOZ4CGBFHDYL57SK3UC7PQKGDTNDLSA"


def record(kind: bytes, block: bytes = PAGE, is_arc: bool = False, **fields: Any) -> Record:
    """A record; None removes a field."""
    headers: dict[bytes, bytes | None] = {
        b"warc-type": kind,
        b"warc-target-uri": URL,
        b"warc-date": b"20240101000000" if is_arc else b"2024-01-01T00:00:00Z",
        b"warc-ip-address": b"1.2.3.4",
        **{name.replace("_", "-").encode(): value for name, value in fields.items()},
    }
    found = {name: value for name, value in headers.items() if value is not None}
    return Record(7, 10, found, block, len(block), None, is_arc)


def made(one: Record, options: CaptureOptions = ALL) -> list[Capture | bytes | Damage | Note]:
    return list(make_captures(iter([one]), b"f", options))


def capture(one: Record, options: CaptureOptions = ALL) -> Capture:
    (found,) = made(one, options)
    assert isinstance(found, Capture)
    return found


FIELDS, ANVL = b"application/warc-fields", b"text/anvl; charset=utf-8"


@pytest.mark.parametrize(
    ("kind", "fields", "usual", "all_records"),
    [
        (b"response", {}, True, True),
        (b"response", {"content_type": FIELDS}, True, True),
        (b"revisit", {}, True, True),
        (b"resource", {"content_type": b"text/plain"}, True, True),
        (b"resource", {"content_type": ANVL}, True, True),
        (b"resource", {"content_type": FIELDS}, False, True),
        (b"metadata", {"content_type": b"text/plain"}, True, True),
        (b"metadata", {"content_type": ANVL}, False, True),
        (b"metadata", {"content_type": FIELDS}, False, True),
        (b"metadata", {"warc_target_uri": None}, False, False),
        (b"metadata", {"warc_target_uri": b""}, False, False),
        (b"conversion", {}, True, True),
        (b"request", {}, False, True),
        (b"continuation", {}, False, True),
        (b"warcinfo", {}, False, True),
        (b"warcinfo", {"warc_target_uri": None}, False, False),
    ],
)
def test_records_that_describe_others_get_no_line(
    kind: bytes, fields: dict[str, Any], usual: bool, all_records: bool
) -> None:
    for options, has_line in ((USUAL, usual), (ALL, all_records)):
        found = made(record(kind, **fields), options)
        assert [type(one) for one in found] == [Capture] * has_line


def test_the_first_line_of_an_arc_is_no_capture() -> None:
    assert made(record(b"warcinfo", is_arc=True, warc_target_uri=b"filedesc://x.arc")) == []
    assert len(made(record(b"response", is_arc=True))) == 1


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (record(b""), "missing WARC-Type"),
        (record(b"", warc_type=None), "missing WARC-Type"),
        (record(b"response", warc_target_uri=None), "missing WARC-Target-URI (response record)"),
        (record(b"resource", warc_target_uri=b""), "missing WARC-Target-URI (resource record)"),
    ],
    ids=["empty-type", "no-type", "no-url", "empty-url"],
)
def test_a_record_that_lacks_what_a_line_needs_is_reported(one: Record, reason: str) -> None:
    assert made(one) == made(one, USUAL) == [Damage(7, reason, "repair the record if you need its line")]


def test_an_unknown_type_is_noted_and_indexed_only_on_request() -> None:
    (note,) = made(record(b"respnse"), USUAL)
    assert note == Note(7, "unknown WARC-Type 'respnse'; the record is not indexed")
    assert capture(record(b"respnse"))


@pytest.mark.parametrize("is_arc", [False, True])
def test_a_record_without_a_date_gets_a_line_and_a_note(is_arc: bool) -> None:
    note, found = made(record(b"response", is_arc=is_arc, warc_date=b"yesterday"))
    assert note == Note(7, "missing or invalid date; the timestamp is -")
    assert isinstance(found, Capture)
    assert found.timestamp == b"-"


def test_odd_fields_are_noted_in_arc_files_only() -> None:
    odd: dict[str, Any] = {"warc_ip_address": b"nowhere"}
    note, _ = made(record(b"response", is_arc=True, **odd))
    assert note == Note(7, "odd address in the ARC header ('nowhere')")
    assert [type(one) for one in made(record(b"response", **odd))] == [Capture]


LONG = b"text/" + b"x" * 300


@pytest.mark.parametrize(
    ("http", "header", "of_warc", "of_arc"),
    [
        (b"text/html; a=b", b"text/plain", b"text/html", b"text/html"),
        (None, b"text/plain", None, b"text/plain"),
        (None, b"text/plain;x", None, b"text/plain"),
        (None, b"no-type", None, None),
        (None, b"", None, None),
        (None, None, None, None),
        (LONG + b";x", b"a/b", LONG, LONG),
        (b"text/\xe9", b"a/b", "text/\xe9".encode(), "text/\xe9".encode()),
        (b";x", b"a/b", None, None),
    ],
)
def test_the_media_type_is_that_of_the_http_head(
    http: bytes | None, header: bytes | None, of_warc: bytes | None, of_arc: bytes | None
) -> None:
    block = b"HTTP/1.1 200 OK\r\n%b\r\nHi" % (b"" if http is None else b"Content-Type: %b\r\n" % http)
    for is_arc, mime in ((False, of_warc), (True, of_arc)):
        one = record(b"response", block, is_arc, content_type=header)
        assert [capture(one).mime for _ in range(2)] == [mime] * 2
        assert capture(one, MINIMAL).mime is None


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        (record(b"response"), (b"text/html", b"200", SHA1_OF_HI)),
        (record(b"response", warc_target_uri=b"dns:a.com", content_type=b"text/dns"), (b"text/dns", None, ...)),
        (record(b"response", b"", content_type=b"a/b"), (b"a/b", None, ...)),
        (record(b"resource", b"Hi", content_type=b"a/b"), (b"a/b", None, SHA1_OF_HI)),
        (record(b"request", b"GET /a HTTP/1.1\r\n\r\n"), (None, None, None)),
        (record(b"revisit"), (b"warc/revisit", b"200", None)),
        (record(b"revisit", warc_payload_digest=b"sha1:ABC"), (b"warc/revisit", b"200", b"ABC")),
        (record(b"response", warc_payload_digest=b"sha1:ABC"), (b"text/html", b"200", b"ABC")),
        (record(b"response", warc_payload_digest=b"md5:abc"), (b"text/html", b"200", b"md5:abc")),
        (record(b"response", warc_payload_digest=b""), (b"text/html", b"200", SHA1_OF_HI)),
        (record(b"response")._replace(payload_digest=b"OF-ALL"), (b"text/html", b"200", b"OF-ALL")),
    ],
    ids=["page", "dns", "empty", "resource", "request", "revisit", "known", "given", "md5", "blank", "large"],
)  # fmt: skip
def test_type_status_and_digest_of_each_kind_of_record(one: Record, fields: tuple[Any, ...]) -> None:
    found = capture(one)
    mime, status, digest = fields
    assert (found.mime, found.status) == (mime, status)
    assert digest in (found.digest, ...)
    small = capture(one, MINIMAL)
    is_revisit = one.headers[b"warc-type"] == b"revisit"
    assert (small.mime, small.status, small.digest) == (mime if is_revisit else None, None, found.digest)


def test_the_type_that_a_crawler_has_identified_is_not_that_of_a_revisit() -> None:
    fields: dict[str, Any] = {"warc_identified_payload_type": b"image/png", "warc_truncated": b"length"}
    found, again = (capture(record(kind, **fields)) for kind in (b"response", b"revisit"))
    assert (found.mime_detected, again.mime_detected) == (b"image/png", None)
    assert found.truncated == again.truncated == b"length"


@pytest.mark.parametrize(
    ("status", "location", "target"),
    [
        (b"301", b"http://b.org/x", b"http://b.org/x"),
        (b"302", b"https://b.org/x", b"https://b.org/x"),
        (b"399", b"/x?y", b"http://example.com/x?y"),
        (b"301", b"b", b"http://example.com/b"),
        (b"301", b"//b.org/", b"http://b.org/"),
        (b"301", b"http://[b", b"http://[b"),
        (b"301", b"//[b", None),
        (b"301", b"\xe9", "http://example.com/\xe9".encode()),
        (b"304", b"/x", None),
        (b"201", b"/x", None),
        (b"301", None, None),
        (b"301", b"", None),
    ],
)
def test_the_target_of_a_redirect(status: bytes, location: bytes | None, target: bytes | None) -> None:
    field = b"" if location is None else b"Location: %b\r\n" % location
    one = record(b"response", b"HTTP/1.1 %b OK\r\n%b\r\n" % (status, field))
    assert capture(one).redirect == target
    assert capture(one, MINIMAL).redirect is None


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (None, None),
        (b"", None),
        (b"http://a.b/", b"http://a.b/"),
        (b"<http://a.b/>", b"http://a.b/"),
        (b"<http://a.b/", b"<http://a.b/"),
        (b"http://a.b/>", b"http://a.b/>"),
        (b"http://a.b/ >", b"http://a.b/%20>"),
        (b"http://a.b/<x>", b"http://a.b/<x>"),
        (b"<http://a.b/ >", b"http://a.b/%20"),
        (b"http://a.b/ \0\x0bc", b"http://a.b/%20%00%0Bc"),
        (b"http://a.b/\xe9", "http://a.b/\xe9".encode()),
        ("http://a.b/\xe9".encode(), "http://a.b/\xe9".encode()),
    ],
)
def test_a_url_is_written_as_a_line_can_have_it(given: bytes | None, url: bytes | None) -> None:
    assert clean_url(given) == url


def test_notes_of_a_reader_are_added_to_the_line_before_them() -> None:
    line, other = (CommonLine(name, b'%b {"url": "u' % name, b'"}') for name in (b"<1>", b"<2>"))
    notes = [CrawlNotes(b"<1>", b"UTF-8", b"eng"), CrawlNotes(b"<1>", None, None), CrawlNotes(b"<3>", b"x", None)]  # fmt: skip
    first, second = make_captures(iter([line, *notes, other]), b"f", USUAL)
    assert isinstance(first, bytes)
    assert b'"charset": "UTF-8"' in first
    assert b'"languages": "eng"' in first
    assert second == b'<2> {"url": "u"}'


def test_of_much_damage_the_first_is_listed_and_the_rest_is_one_item() -> None:
    found, more = Findings(), 3
    for number in range(MAX_DAMAGE):
        found.add(Damage(number, f"bad {number}"))
    found.add(Note(5, "odd"))
    assert [one.offset for one in found.damage] == list(range(MAX_DAMAGE))
    for number in range(MAX_DAMAGE, MAX_DAMAGE + more):
        found.add(Damage(number, f"bad {number}", "hint"))
    *listed, last = found.damage
    assert len(listed) == MAX_DAMAGE
    assert last.offset == MAX_DAMAGE
    end = MAX_DAMAGE + more - 1
    assert last.reason == f"{more} more errors up to offset {end}, the last one: bad {end}"
    assert (last.hint, found.notes) == ("hint", [Note(5, "odd")])


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001])
def test_lines_come_in_lists_and_each_is_counted(count: int) -> None:
    items: list[bytes | Damage | Note] = [b"line %d" % number for number in range(count)]
    items[1:1] = [Damage(1, "bad"), Note(2, "odd")]
    lines = CaptureLines(iter(items), "cdxj")
    found = list(lines)
    assert [one for some in found for one in some] == [b"line %d" % number for number in range(count)]
    assert [len(some) for some in found] == [size for size in (min(count, 1000), count - 1000) if size > 0]
    assert lines.findings.captures == count
    assert (len(lines.findings.damage), len(lines.findings.notes)) == (1, 1)


COMMON = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2024-05-17T23:41:22Z\r\nWARC-Record-ID: <urn:x:1>\r\n"
    b"WARC-Target-URI: http://a.com/\r\nWARC-Payload-Digest: sha1:%b\r\nContent-Length: 46\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nHi\r\n\r\n"
)
LINES = {
    "cdxj": b'com,a)/ 20240517234122 {"url": "http://a.com/", "mime": "text/html", "status": "200", "digest": "%b", "length": "%d", "offset": "0", "filename": "x"}',
    "cdx11": b"com,a)/ 20240517234122 http://a.com/ text/html 200 %b - - %d 0 x",
    "cdx9": b"com,a)/ 20240517234122 http://a.com/ text/html 200 %b - 0 x",
}


@pytest.mark.parametrize("is_checked", [False, True])
@pytest.mark.parametrize("line_format", LINES)
def test_the_line_of_a_common_record_in_each_format(line_format: str, is_checked: bool) -> None:
    for digest, is_right in ((SHA1_OF_HI, True), (b"A" * 32, False)):
        data = gzip.compress(COMMON % digest, mtime=0)
        options = CaptureOptions(check_digests=is_checked)
        lines = index_archive(lambda at, size, data=data: data[at : at + size], b"x", options, line_format)  # type: ignore[misc]
        found = [line for some in lines for line in some]
        has_line = is_right or not is_checked
        wanted = LINES[line_format]
        assert found == [wanted % ((digest, len(data))[: wanted.count(b"%")])] * has_line
        assert len(lines.findings.damage) == (not has_line)
        assert lines.findings.captures == has_line


PAGES = frozenset((b"response", b"revisit"))


@pytest.mark.parametrize(
    ("options", "has_reader"),
    [
        ({}, True),
        ({"records": PAGES}, True),
        ({"records": PAGES | {b"resource"}}, True),
        ({"records": frozenset((b"response",))}, False),
        ({"records": frozenset((b"revisit",))}, False),
        ({"records": frozenset()}, False),
        ({"records": None}, False),
        ({"records": PAGES | {b"request"}}, False),
        ({"post_append": True}, False),
        ({"minimal": True}, False),
        ({"unsurt": True}, False),
        ({"keep_www": True, "check_digests": True}, True),
    ],
)
def test_compiled_code_makes_the_lines_of_usual_options(
    options: dict[str, Any], has_reader: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "read", lambda *_: None)
    assert (common_reader(b"f", CaptureOptions(**options)) is not None) == has_reader
    monkeypatch.setattr(native, "read", None)
    assert common_reader(b"f", CaptureOptions(**options)) is None
