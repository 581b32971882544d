"""Lines as columns: the compiled code and its twin in Python give the same, for any lines."""

from __future__ import annotations

import json
from array import array
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.cdx_corpus import make_lines
from cdxmill.formats.lines.table_row import COLUMNS
from cdxmill.stages import native
from cdxmill.stages.lines.capture_columns import ColumnBuffers, LineColumns

USUAL = b'com,a)/ 20200131235959 {"url": "https://a.com:8080/x?y#z", "mime": "text/html", "status": "200", "digest": "AB", "length": "12", "offset": "3000000000", "filename": "crawl-data/C/segments/1.2/warc/a.warc.gz"}'
ODD = (
    b"com,a)/ 20200131235959 http://a.com/ text/html 200 AB - - 12 0 a.warc.gz",
    b'com,a)/ 20200231235959 {"url": "http://a.com/"}',
    b'com,a)/ 2020 {"url": "http://a.com/"}',
    b'com,a)/ 20200131235959 {"url": "http://a.com/\\ud800", "mime": "\xff"}',
    b'com,a)/\xff 20200131235959 {"url": "http://a.com/"}',
    b'com,a)/ 20200131235959 {"url": "http://a.com/", "url": "http://b.com/"}',
    b'com,a)/ 20200131235959 {"original": "http://a.com/", "statuscode": 200}',
    b'com,a)/ 20200131235959 {"url": "http://a.com/", "timestamp": "x", "urlkey": "y"}',
    b'com,a)/ 20200131235959 {"url": "http://a.com/", "status": "-", "length": "", "offset": "-1"}',
    b'com,a)/ 20200131235959 {"url": "http://a.com/", "status": "20000", "length": 12, "offset": null}',
    b'com,a)/ 20200131235959 {"url": "http://a.com/", "mime": {"a": 1}, "digest": true}',
    b'com,a)/ 20200131235959 {"url": "HTTP://A.com:/x", "filename": "common-crawl/crawl-data/C/segments/1/wat/a"}',
    b'com,a)/ 20200131235959 {"url": "http:///a.com"} ',
    b'com,a)/ 20200131235959 {"url": "dns:a.com", "filename": "crawl-data/CC-NEWS/2019/01/CC-NEWS-2019-1.warc.gz"}',
    b'com,a)/ 20200131235959 {"url": "http://u:p@a.com:99999/"}',
    b'com,a)/ 20200131235959 {"url": "http://u@p@a.com/", "offset": "1"}',
    b'com,a)/ 20200131235959 {"url": "http://a.com:80:80/", "offset": "1"}',
    b'com,a)/ 20200131235959 {"url": "whois://whois.a.com/B.com", "offset": "1"}',
    b'com,a)/ 20200131235959 {"url": "whois://whois.a.com", "offset": "1"}',
    b'com,a)/ 20200131235959 {"url": "WHOIS:B.com", "offset": "1"}',
    b"com,a)/ 20200131235959 {}",
    b"com,a)/ 20200131235959 {",
    b'com,a)/ 20200131235959 {"url": "http://[::1]:80"}',
    b'com,a)/ 00000131235959 {"url": "http://a.com"}',
    b'com,a)/ - {"url": "-", "mime": "-", "filename": "-", "mime": "-"}',
    b'com,a)/ 20200131235959 {"url": "http://a.com/", "mime": "-", "digest": "a", "digest": "-"}',
    b"",
    b" ",
    b"a",
)


def both(lines: list[bytes]) -> tuple[LineColumns, dict[str, ColumnBuffers]]:
    """The columns of the compiled code, after a comparison with those of Python."""
    compiled, reference = LineColumns(), LineColumns(compiled=False)
    made = compiled.columns_of(lines)
    assert made == reference.columns_of(lines)
    assert compiled.lost <= reference.lost
    return compiled, made


def text(column: ColumnBuffers, row: int) -> bytes | None:
    if column.valid is not None and not column.valid[row // 8] >> row % 8 & 1:
        return None
    if column.offsets is None:
        return b"%d" % array("q", column.values)[row]
    ends = array("i", column.offsets)
    return column.values[ends[row] : ends[row + 1]]


def row_of(line: bytes) -> dict[str, bytes | None]:
    made = both([line])[1]
    return {name: text(made[name], 0) for name in COLUMNS}


def test_it_is_compiled() -> None:
    assert native.capture_columns is not None


def test_a_usual_line() -> None:
    found = row_of(USUAL)
    assert found == {
        "url_surtkey": b"com,a)/",
        "url": b"https://a.com:8080/x?y#z",
        "host": b"a.com",
        "url_protocol": b"https",
        "url_path": b"/x",
        "url_query": b"y",
        "url_port": b"8080",
        "fetch_time": b"1580515199000",
        "fetch_status": b"200",
        "content_digest": b"AB",
        "content_mime_type": b"text/html",
        "warc_filename": b"crawl-data/C/segments/1.2/warc/a.warc.gz",
        "warc_record_offset": b"3000000000",
        "warc_record_length": b"12",
        "crawl": b"C",
        "warc_segment": b"1.2",
        "subset": b"warc",
        **dict.fromkeys(
            (
                "fetch_redirect",
                "content_mime_detected",
                "content_charset",
                "content_languages",
                "content_truncated",
                "cdx_line",
            )
        ),
    }


def test_usual_lines_need_no_python() -> None:
    lines = [line.rstrip() for line in make_lines(Random(1), 500)]
    made = LineColumns()
    made._row = None  # type: ignore[method-assign,assignment]
    assert made.columns_of(lines) == LineColumns(compiled=False).columns_of(lines)


@pytest.mark.parametrize("line", ODD)
def test_an_odd_line_is_a_row(line: bytes) -> None:
    both([USUAL, line, USUAL])


def test_file_names_that_are_nearly_those_of_common_crawl() -> None:
    parts = (
        ("crawl-data", "common-crawl/crawl-data", "data", ""),
        ("C", "C/D", ""),
        ("segments", "segment", ""),
        ("1.2", "1/2", ""),
        ("warc", "robotstxt", "crawldiagnostics", "wat", "warcs", ""),
        ("a.warc.gz", ""),
    )
    names = ["/".join(chosen) for chosen in product(*parts)]
    names += [name[:size] for name in names[:1] for size in range(len(name))]
    both(
        [
            b'com,a)/ 20200131235959 {"url": "http://a.com/", "filename": "%b"}' % name.encode()
            for name in names
        ]
    )


def test_a_value_that_is_lost_is_counted_and_the_line_is_kept() -> None:
    found, made = both([USUAL, ODD[3], ODD[9]])
    assert found.lost == {"url": 1, "content_mime_type": 1, "fetch_status": 1}
    assert found.lines == 2
    assert [text(made["cdx_line"], row) for row in range(3)] == [None, ODD[3], ODD[9]]


def test_no_lines() -> None:
    made = both([])[1]
    assert {column.values for column in made.values()} == {b""}


PIECE = st.sampled_from(
    [
        *'"\\{}:, /?#@%.-[]',
        "http://",
        "https://",
        "a.com",
        "A",
        "0",
        "200",
        "\udcff",
        "\u00e9",
        "\x00",
        "crawl-data/",
        "/segments/",
        "/warc/",
        "CC-NEWS/2019/01/CC-NEWS-1.warc.gz",
    ]
)
TEXT = st.lists(PIECE, max_size=6).map("".join)
NAME = st.sampled_from(
    ["url", "mime", "status", "offset", "length", "filename", "statuscode", "timestamp", "x", "digest"]
)
VALUE = TEXT | st.sampled_from(["http://a.com/", "200", "-", ""]) | st.none() | st.integers(-5, 2**70)
WHEN = st.sampled_from(["20200229000000", "20190229000000", "19000301000000", "99991231235959", "2020"])


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    fields = draw(st.dictionaries(NAME, VALUE, max_size=6))
    made = json.dumps(fields, ensure_ascii=draw(st.booleans()))
    line = f"com,a)/ {draw(WHEN)} {made}".encode("utf-8", "surrogateescape")
    if draw(st.integers(0, 4)) == 0 and line:
        place = draw(st.integers(0, len(line) - 1))
        line = line[:place] + bytes([draw(st.integers(0, 255))]) + line[place + 1 :]
    return line.replace(b"\n", b" ")


@settings(max_examples=300)
@given(st.lists(lines(), max_size=12))
def test_both_give_the_same(found: list[bytes]) -> None:
    both(found)


def test_both_give_the_same_for_pywb_lines(pywb_warcs: Path) -> None:
    index = pywb_warcs.parent / "cdx"
    found = [
        line
        for path in sorted(index.iterdir())
        for line in path.read_bytes().splitlines()
        if line[:4] != b" CDX"
    ]
    assert len(found) > 100
    both(found)
