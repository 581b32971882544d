"""Unusual records that are indexed."""

from __future__ import annotations

import re

from .cases import BAD, Case, Sources, one_file, row, swap
from .lengths import Length

NAME = "a.warc.gz"
_DATE = re.compile(rb"(?m)^WARC-Date: .*\r\n")
_TYPE = re.compile(rb"(?m)^WARC-Type: .*\r\n")
_URL = re.compile(rb"(?m)^WARC-Target-URI: .*\r\n")


def _record(sources: Sources, record: bytes, hit: tuple[int, ...] = ()) -> Case:
    """An uncompressed archive; the container does not matter here."""
    parts = swap(sources.warc.parts(), record + sources.warc.end)
    return one_file("a.warc", parts, sources.warc, hit)


def _field(sources: Sources, pattern: re.Pattern[bytes], line: bytes, hit: tuple[int, ...] = ()) -> Case:
    record, count = pattern.subn(lambda match: line, sources.warc.records[BAD], count=1)
    assert count == 1
    return _record(sources, record, hit)


@row("latin-1-header")
def latin_1_header(sources: Sources) -> Case:
    line = "WARC-Target-URI: http://example.org/caf\xe9\r\nX-Note: \xe9t\xe9\r\n".encode("latin-1")
    return _field(sources, _URL, line)


@row("folded-header")
def folded_header(sources: Sources) -> Case:
    return _field(
        sources, _URL, b"WARC-Target-URI: http://example.org/a\r\nX-Note: one\r\n two\r\n\tthree\r\n"
    )


@row("bare-lf")
def bare_lf(sources: Sources) -> Case:
    header, end, block = sources.warc.records[BAD].partition(b"\r\n\r\n")
    return _record(sources, (header + end).replace(b"\r\n", b"\n") + block)


@row("url-with-spaces")
def url_with_spaces(sources: Sources) -> Case:
    return _field(sources, _URL, b"WARC-Target-URI: http://example.org/a b  c\r\n")


@row("url-with-controls")
def url_with_controls(sources: Sources) -> Case:
    return _field(sources, _URL, b"WARC-Target-URI: http://example.org/a\tb\rc\r\n")


@row("url-not-ascii")
def url_not_ascii(sources: Sources) -> Case:
    return _field(sources, _URL, "WARC-Target-URI: http://example.org/Größe/日本\r\n".encode())


@row("url-missing")
def url_missing(sources: Sources) -> Case:
    return _field(sources, _URL, b"", (BAD,))


@row("date-missing")
def date_missing(sources: Sources) -> Case:
    return _field(sources, _DATE, b"")


@row("date-unparsable")
def date_unparsable(sources: Sources) -> Case:
    return _field(sources, _DATE, b"WARC-Date: some day in May\r\n")


@row("type-unknown")
def type_unknown(sources: Sources) -> Case:
    return _field(sources, _TYPE, b"WARC-Type: rezponse\r\n", (BAD,))


@row("arc-dates")
def arc_dates(sources: Sources) -> Case:
    dates = (b"2005", b"200512", b"20051214", b"2005121415", b"200512141543550", b"200512141543550123")
    records = [
        re.sub(rb" \d{14} ", b" " + date + b" ", record, count=1)
        for record, date in zip(sources.arc.records, dates, strict=True)
    ]
    source = sources.arc._replace(records=records)
    return one_file("a.arc", source.parts(), source)


@row("arc-address")
def arc_address(sources: Sources) -> Case:
    return _arc_field(sources, rb" [0-9.]+ (?=\d{14} )", b" None ")


@row("arc-date-odd")
def arc_date_odd(sources: Sources) -> Case:
    return _arc_field(sources, rb" (\d{4})\d{10} ", rb" \1-13-40x ")


@row("arc-date-impossible")
def arc_date_impossible(sources: Sources) -> Case:
    return _arc_field(sources, rb" (\d{4})\d{4}(\d{6}) ", rb" \g<1>1340\2 ")


def _arc_field(sources: Sources, old: bytes, new: bytes) -> Case:
    records = swap(sources.arc.records, re.sub(old, new, sources.arc.records[BAD], count=1))
    source = sources.arc._replace(records=records)
    return one_file("a.arc", source.parts(), source)


@row("type-case-and-zones")
def type_case_and_zones(sources: Sources) -> Case:
    record = sources.warc.records[BAD].replace(b"WARC-Type: response", b"WARC-Type: Response")
    return _record(sources, re.sub(rb"(WARC-Date: [0-9T:-]+)Z", rb"\1-0400", record))


@row("length-with-zeros")
def length_with_zeros(sources: Sources) -> Case:
    record = sources.warc.records[BAD]
    size = len(record) - record.index(b"\r\n\r\n") - 4
    return _record(sources, Length(text=b"%025d" % size).in_warc(record))
