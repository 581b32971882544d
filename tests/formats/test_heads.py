"""Heads of records and of HTTP messages, clean and odd, against warcio's parser."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from warcio.statusandheaders import StatusAndHeaders, StatusAndHeadersParser

from cdxmill.formats.archives import http_head
from cdxmill.formats.archives.http_head import parse_http_head
from cdxmill.formats.archives.warc_header import HeaderError, UnfinishedHeader, parse_warc_header

VERSIONS = ["WARC/1.1", "WARC/1.0", "WARC/0.17", "WARC/0.18"]

line_ends = st.sampled_from(["\r\n", "\r\n", "\r\n", "\n", "\r\r\n", " \r\n"])
words = st.text("abcXYZ019-/;=é:\t\r\v\f ", max_size=8)
names = st.sampled_from(
    ["Content-Type", "content-type", "CONTENT-TYPE", "Content-Type ", "Content-Length", "Location", "location",
     "WARC-Type", "WARC-Date", "X-a", "", "Content", "Content-Type-2", "Content Type", "Content-Type\t"]
)  # fmt: skip
fields = st.tuples(names, st.sampled_from([": ", ":", " : ", ":\t", ""]), words).map("".join)
folded = st.tuples(st.sampled_from([" ", "\t", "  "]), words).map("".join)
lines = st.lists(fields | fields | folded | words, max_size=8)
clean_lines = st.lists(st.tuples(names, st.just(": "), words).map("".join), max_size=8)


@st.composite
def heads(draw: st.DrawFn, first: st.SearchStrategy[str], ended: bool = True) -> bytes:
    """A head with usual or odd lines and line ends, followed by other bytes."""
    inner = draw(st.just("\r\n") | st.none())
    text = "".join(
        line + (inner or draw(line_ends))
        for line in [draw(first), *draw(draw(st.sampled_from([lines, clean_lines])))]
    )
    return (text + (draw(line_ends) if ended else "")).encode() + (
        draw(st.binary(max_size=20)) if ended else b""
    )


def warcio(block: bytes, prefixes: list[str]) -> tuple[StatusAndHeaders, int]:
    """What warcio reads, and the position where it stops. (Its total_len counts characters.)"""
    stream = BytesIO(block)
    return StatusAndHeadersParser(prefixes, verify=bool(prefixes)).parse(stream), stream.tell()


def header(found: StatusAndHeaders, name: str) -> bytes | None:
    value = found.get_header(name)
    return value.encode() if value else None


@given(
    heads(
        st.sampled_from(
            ["HTTP/1.1 200 OK", "HTTP/1.0 404", "HTTP/1.1", "HTTP/1.1  301 Moved", "x y z", "ICY 200"]
        )
    )
)
def test_an_http_head_is_what_warcio_reads(block: bytes) -> None:
    ours, (theirs, end) = parse_http_head(block), warcio(block, [])
    assert (ours.status or b"").decode() == (theirs.get_statuscode() or "")
    assert ours.content_type == header(theirs, "Content-Type")
    redirects = (theirs.get_statuscode() or "").startswith("3")
    assert ours.location == (header(theirs, "Location") if redirects else None)
    assert ours.end == end


@example(b"WARC/1.1\r\nX-a:  1\r\nContent-Length: 0\r\n\r\n")
@example(b"WARC/1.1\r\nX-a: 1 \r\nContent-Length: 0\r\n\r\n")
@example(b"WARC/1.1\r\nX-a: 1\r\nContent-Length: 0 \r\n\r\n")
@example(b"WARC/1.1\r\nX-a: 1\r\n\tb\r\nContent-Length: 0\r\n\r\n")
@example(b"WARC/1.1\r\nX-a: 1\n b\r\nContent-Length: 0\r\n\r\n")
@example(b"WARC/1.1\r\nX-a: 1\r\nx-A: 2\r\nWARC-Type: Response\r\nContent-Length: 0\r\n\r\n")
@example(b"WARC/1.1\r\nno colon\r\nX-a:1\r\nContent-Length: 0\r\n\r\n")
@example(b"WARC/1.1\r\nX-a : 1\r\nContent-Length: 0\r\n\r\n")
@example(b"WARC/1.1\r\nContent-Length: \r\n 0\r\nContent-Length: \r\n\r\n")
@given(heads(st.sampled_from(VERSIONS)))
def test_a_record_header_is_what_warcio_reads(data: bytes) -> None:
    theirs, their_end = warcio(data, VERSIONS)
    values: dict[bytes, list[bytes]] = {}
    for name, value in theirs.headers:
        values.setdefault(name.lower().encode(), []).append(value.encode())
    lengths = values.get(b"content-length", [])
    if len(set(lengths)) == len(lengths) == 2:  # warcio takes the first
        with pytest.raises(HeaderError, match="occurs twice"):
            parse_warc_header(data)
        return
    ours, end = parse_warc_header(data)
    assert end == their_end
    first = {name: several[0] for name, several in values.items()}
    if b"warc-type" in first:
        first[b"warc-type"] = first[b"warc-type"].lower()
    assert ours == first


@given(heads(st.sampled_from(VERSIONS)), st.data())
def test_a_truncated_record_header_is_unfinished(data: bytes, choice: st.DataObject) -> None:
    try:
        _, end = parse_warc_header(data)
    except HeaderError:  # a field that may occur once occurs twice
        return
    size = choice.draw(st.integers(data.index(b"\n") + 1, end - 1))
    with pytest.raises(UnfinishedHeader):
        parse_warc_header(data[:size])


@given(heads(st.sampled_from(["HTTP/1.1 200 OK"]), ended=False))
def test_an_http_head_without_a_blank_line_ends_with_the_block(block: bytes) -> None:
    ours, (theirs, end) = parse_http_head(block), warcio(block, [])
    assert ours.content_type == header(theirs, "Content-Type")
    assert ours.end == end


@given(st.binary(max_size=60))
def test_the_head_of_any_bytes_is_inside_them(block: bytes) -> None:
    assert 0 <= parse_http_head(block).end <= len(block)


@given(st.binary(max_size=40))
def test_bytes_without_a_record_header_are_refused(data: bytes) -> None:
    if not data.upper().startswith(b"WARC/"):
        with pytest.raises(HeaderError):
            parse_warc_header(data)


@pytest.mark.parametrize(
    ("block", "status", "content_type", "location"),
    [
        (b"HTTP/1.1\r\nContent-Type: a/b\r\n\r\n", None, b"a/b", None),
        (b"HTTP/1.1 \r\nContent-Type:\r\n\r\n", None, None, None),
        (b"HTTP/1.1  404\r\nContent-Type: a/b\r\n\r\n", b"404", b"a/b", None),
        (b"HTTP/1.1 301\r\nLocation: \r\n\r\n", b"301", None, None),
        (b"HTTP/1.1  301\r\nLocation: /a\r\n\r\n", b"301", None, b"/a"),
        (b"HTTP/1.1  200\r\nLocation: /a\r\n\r\n", b"200", None, None),
        (b"HTTP/1.1 200", b"200", None, None),
        (b"\r\nContent-Type: a/b", None, None, None),
    ],
)
def test_what_a_head_does_not_have_is_none(
    block: bytes, status: bytes | None, content_type: bytes | None, location: bytes | None
) -> None:
    assert parse_http_head(block)[:3] == (status, content_type, location)


@pytest.mark.parametrize(
    ("data", "is_begun", "reason"),
    [
        (b"", True, "incomplete record header"),
        (b"WARC/1.", True, "incomplete record header"),
        (b"WARC/1.0\r\nWARC-Type: response\r\n", True, "incomplete record header"),
        (b"WARC/7.0\r\n", False, "unknown WARC version 'WARC/7.0'"),
        (b"GARBAGE 1.0, and more", False, "unknown WARC version 'GARBAGE 1.0, and more'"),
        (b"odd\nWARC/1.0\r\n", False, "unknown WARC version 'odd'"),
        (b"odd\nWA", False, "unknown WARC version 'odd'"),
        (b"GARBAGE:", True, "incomplete record header"),
        (b"GARBAGE::", False, "unknown WARC version 'GARBAGE::'"),
    ],
)
def test_a_header_that_may_go_on_is_not_taken_for_something_else(
    data: bytes, is_begun: bool, reason: str
) -> None:
    with pytest.raises(HeaderError) as error:
        parse_warc_header(data)
    assert isinstance(error.value, UnfinishedHeader) is is_begun
    assert str(error.value).startswith(reason)


@pytest.mark.parametrize(
    ("status", "value", "location"),
    [
        ("200 OK", "a", None),
        ("201 Created", "a", None),
        ("299", "a", None),
        ("300", "a", b"a"),
        ("301 Moved", " a b ", b"a b"),
        ("399", "a", b"a"),
        ("400", "a", None),
        ("302 Found", "", None),
        ("302 Found", "  ", None),
    ],
)
@pytest.mark.parametrize("odd", ["", "no field\r\n"])
def test_the_location_of_a_redirect_is_its_target(
    status: str, value: str, location: bytes | None, odd: str
) -> None:
    block = f"HTTP/1.1 {status}\r\n{odd}Location: {value}\r\nContent-Type: b\r\n\r\n".encode()
    expected = (status[:3].encode(), b"b", location, len(block))
    assert parse_http_head(block + b"x") == http_head._parse_odd_head(block + b"x") == expected


def test_an_empty_content_type_is_none() -> None:
    for value in (b"", b" ", b"\t "):
        block = b"HTTP/1.1 200 OK\r\nContent-Type:" + value + b"\r\n\r\n"
        assert parse_http_head(block).content_type is None
        assert http_head._parse_odd_head(block).content_type is None


@pytest.mark.parametrize(
    ("block", "status", "end"),
    [
        (b"\nX: a\n\nbody", None, 1),
        (b" \r\nX: a\r\n\r\nbody", None, 3),
        (b"", None, 0),
        (b"   ", None, 0),
        (b"HTTP/1.1 200", b"200", 12),
        (b"HTTP/1.1", None, 8),
    ],
)
def test_a_block_may_have_no_head_or_no_end_of_it(block: bytes, status: bytes | None, end: int) -> None:
    assert parse_http_head(block) == (status, None, None, end)
