"""What a page is: scan, count in Python and count in C give one answer for every record."""

from __future__ import annotations

import gzip
import sys
import zlib
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdxmill.capture import Record
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages import native
from cdxmill.stages.counting.counters import COUNTERS, MissingLibrary, NotWanted
from cdxmill.stages.counting.tally import DictTally, Tally
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.pages.parse_page import CUT, MAX_HTML
from cdxmill.stages.records.decode_payload import PayloadError
from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.records.take_record import take_whole

PAGE = b"<title>t</title><p>Hi <b>you</b>"
JAPANESE = "<title>会社</title><p>社会、社員、会社<b>案内</b>①".encode("iso2022_jp_2004").replace(b"(Q", b"B")
TAGS = {b"title": 1, b"p": 1, b"b": 1}
TRUNCATED = "the payload is truncated within its compressed data"


def record(head: bytes, body: bytes, fields: bytes = b"", kind: bytes = b"response") -> bytes:
    """The content of a record. `head` are lines of the HTTP head, `fields` of the WARC header."""
    block = b"HTTP/1.1 200 OK\r\n%b\r\n%b" % (head, body)
    size = b"Content-Length: %d\r\n\r\n" % len(block)
    return (
        b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Target-URI: http://a.org/\r\n%b%b" % (kind, fields, size)
        + block
        + b"\r\n\r\n"
    )


class Answer(NamedTuple):
    """Whether a record has a page, with its notes."""

    is_page: bool
    notes: str = ""


def of_scan(data: bytes) -> Answer:
    found = FullRecord(Content(0, len(data), len(data), data), 0, HeaderShapes())
    if found.page is None:
        return Answer(False)
    return Answer(True, found.body.problem + (CUT if found.page.is_cut else ""))


def of_count(what: str, data: bytes, tally: Tally) -> Answer:
    found = take_whole(0, len(data), data, None)
    assert isinstance(found, Record)
    try:
        if found.headers[b"warc-type"] in COUNTERS[what].others:
            raise NotWanted
        return Answer(True, "".join(COUNTERS[what].add(found, tally) or ()))
    except NotWanted:
        return Answer(False)


def rows(tally: Tally) -> dict[bytes, int]:
    pairs = (line.split(b"\t") for line in tally.take(b"\n").splitlines())
    return {item: int(count) for item, count in pairs}


def one_answer(data: bytes) -> tuple[Answer, dict[bytes, int]]:
    """The answer of all, and the tags that they count."""
    tally, links = DictTally(), DictTally()
    answer = of_scan(data)
    assert of_count("tags", data, tally) == of_count("links", data, links) == answer
    tags = rows(tally)
    if native.count is not None and native.Tally is not None:
        compiled = native.Tally()
        found = native.count(compiled, "tags", data)
        assert found is None or (found, rows(compiled)) == (answer.is_page, tags)
    return answer, tags


HTML = b"Content-Type: text/html\r\n"
ENCODED = HTML + b"Content-Encoding: %b\r\n"
UTF16 = b"Content-Type: text/html; charset=%b\r\n"
CHUNKED = HTML + b"Transfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(
    ("head", "body", "notes"),
    [
        (HTML, PAGE, ""),
        (ENCODED % b"utf-8", PAGE, "unknown content encoding 'utf-8', taken as none"),
        (ENCODED % b"aws-chunked", PAGE, "unknown content encoding 'aws-chunked', taken as none"),
        (ENCODED % b"UTF-8, gzip", gzip.compress(PAGE), "unknown content encoding 'utf-8', taken as none"),
        (ENCODED % b"gzip", gzip.compress(PAGE)[:-9], TRUNCATED),
        (ENCODED % b"deflate", zlib.compress(PAGE)[:-3], TRUNCATED),
        (
            ENCODED % b"gzip",
            gzip.compress(PAGE)[:-8] + bytes(8),
            "the payload is corrupt (Error -3 while decompressing data: incorrect data check)",
        ),
        (CHUNKED, b"40\r\n" + PAGE, "the chunked payload is truncated (32 bytes of a chunk are missing)"),
        (ENCODED % b"deflate" + b"content-encoding: gzip\r\n", gzip.compress(zlib.compress(PAGE)), ""),
        (
            CHUNKED + b"Content-Encoding: gzip\r\nContent-Encoding:\r\n gzip\r\n",
            b"%x\r\n%b\r\n0\r\n\r\n" % (len(gzip.compress(gzip.compress(PAGE))), gzip.compress(gzip.compress(PAGE))),
            "",
        ),
        (b"", PAGE, ""),
        (b"Content-Type: \r\n", b"\r\n\t" + PAGE, ""),
        (b"Content-Type: html\r\n", b"<!doctype HTML>" + PAGE, ""),
        (b"Content-Type: unknown/unknown\r\n", b"<!--x-->" + PAGE, ""),
        (HTML, JAPANESE, ""),
        (UTF16 % b"iso-2022-jp", JAPANESE, ""),
        (HTML, b"<!-- <meta charset=ISO-2022-JP> -->" + JAPANESE, ""),
        (UTF16 % b"utf-16", PAGE.decode().encode("utf-16-le"), ""),
        (UTF16 % b"UTF-16BE", "<title>社</title><p>é<b>".encode("utf-16-be"), ""),
        (UTF16 % b"utf-16", PAGE, ""),  # the declaration is wrong
        (UTF16 % b"utf-8", PAGE.decode().encode("utf-16"), ""),
    ],
)  # fmt: skip
def test_pages(head: bytes, body: bytes, notes: str) -> None:
    assert one_answer(record(head, body)) == (Answer(True, notes), TAGS)


IDENTIFIED = b"WARC-Identified-Payload-Type: %b\r\n"


@pytest.mark.parametrize(
    "data",
    [
        record(b"", b"<x>Hi"),
        record(b"", b"<page>Hi"),
        record(b"", b"Hi <p>"),
        record(b"", b"<?xml version='1.0'?><html>"),
        record(b"Content-Type: text/plain\r\n", PAGE),
        record(b"Content-Type: text/htmlx\r\n", PAGE),
        record(HTML, b"\x89PNG\r\n\x1a\n\0" + PAGE),
        record(UTF16 % b"utf-8", PAGE.decode().encode("utf-16-le")),
        record(HTML, PAGE, IDENTIFIED % b"image/png"),
        record(HTML, PAGE, kind=b"revisit"),
        record(HTML, PAGE, kind=b"conversion"),
        record(ENCODED % b"br", b"\x8b\x0f\x80", b"", b"request"),
    ],
)
def test_what_is_no_page(data: bytes) -> None:
    assert one_answer(data) == (Answer(False), {})


def test_any_byte_in_a_media_type_has_one_answer() -> None:
    for byte in set(range(256)) - set(b"\r\n"):
        one_answer(record(b"Content-Type: a/%cb\r\n" % byte, PAGE))


def test_the_type_that_the_crawler_has_identified_counts_more() -> None:
    data = record(b"Content-Type: text/plain\r\n", PAGE, IDENTIFIED % b"application/xhtml+xml")
    assert one_answer(data) == (Answer(True), TAGS)


def test_what_is_cut_is_noted() -> None:
    answer, tags = one_answer(record(HTML, PAGE + b"." * MAX_HTML + b"<i>"))
    assert (answer, tags) == (Answer(True, CUT), TAGS)


def test_a_missing_library_costs_the_record_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brotli", None)
    data = record(ENCODED % b"br", b"\x8b\x0f\x80")
    with pytest.raises(PayloadError, match="pip install brotli"):
        of_scan(data)
    for what in ("tags", "links"):
        with pytest.raises(MissingLibrary, match="pip install brotli"):
            of_count(what, data, DictTally())


PIECES = [
    b"", b"\x1b", b"\x1b$B", b"<R", b"\x1b(B", b"\0", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"<meta charset=iso-2022-jp>", b"<meta charset=utf-16>",
    b"<p>", b"<p\0>\0", b"\xc3\xa9", b"\xff", b"<!--", b"-->", b" ", b"<html ", b"\x83<b>", b"\x8f\xa1<i>", "<u>社".encode("utf-16-be"), b"<script>",
]  # fmt: skip
TYPES = [
    b"text/html", b"TEXT/HTML ;x", b"application/xhtml+xml", b"text/plain", b"text", b"", b"*/*", b"/", b"a/unknown", b"Application/Unknown", b"image/",
    b"text/html; charset=utf-16", b"text/html; charset=UTF-16BE", b"text/html;charset=iso-2022-jp", b"text/html; charset=shift_jis", b"unknown",
]  # fmt: skip
HEADS = st.sampled_from([b"", *(b"Content-Type: %b\r\n" % media for media in TYPES)])
IDENTIFIEDS = st.sampled_from([b"", b"", *(IDENTIFIED % media for media in TYPES if media)])


@given(HEADS, st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join), IDENTIFIEDS)
@example(b"", b"", b"")
@settings(max_examples=200)
def test_all_give_one_answer(head: bytes, body: bytes, fields: bytes) -> None:
    one_answer(record(head, body, fields))
