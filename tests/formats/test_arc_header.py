"""ARC header lines against warcio's reader."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.recordloader import ARCHeadersParser

from cdxmill.formats.archives.arc_header import (
    MAX_LINE,
    BrokenLineError,
    is_usual,
    odd_field,
    parse_arc_header,
)

NAMES = [b"warc-target-uri", b"warc-ip-address", b"warc-date", b"content-type", b"content-length"]

urls = st.builds(
    "{}:{}".format, st.sampled_from(["http", "https", "dns", "filedesc"]), st.text("abc/?&=. é%", max_size=20)
)
dates = st.builds("20{}".format, st.text("0123456789", min_size=12, max_size=12))
mimes = st.sampled_from(["text/html", "no-type", "html", "unk", "text/html;charset=UTF-8"])


@given(
    urls,
    st.sampled_from(["1.2.3.4", "::1", "-", "None", "localhost", ""]),
    dates | st.sampled_from(["2008043020", "20080430204825.5", "2008-04-30T20:48:25Z", "2008043020482x"]),
    mimes,
    st.integers(0, 10**12),
    st.sampled_from(["\n", "\r\n"]),
)
def test_the_five_fields_are_those_that_warcio_reads(
    url: str, address: str, date: str, mime: str, length: int, end: str
) -> None:
    line = f"{url} {address} {date} {mime} {length}{end}".encode()
    found = parse_arc_header(line + b"HTTP/1.1 200 OK\r\n")
    assert found is not None, line
    headers, start = found
    theirs = ARCHeadersParser().parse(BytesIO(line))
    assert start == len(line)
    assert [headers[name] for name in NAMES] == [value.encode() for _, value in theirs.headers]


def test_a_url_with_five_spaces_is_not_a_header_of_version_2() -> None:
    found = parse_arc_header(b"http://a/b c d e f g 1.2.3.4 20080430204825 text/html 10\n")
    assert found is not None
    assert found[0][b"warc-target-uri"] == b"http://a/b c d e f g"
    with pytest.raises(ValueError, match="version 2"):
        parse_arc_header(b"http://a/b 1.2.3.4 20080430204825 text/html 200 abc - 77 a.arc 10\n")


@given(st.binary(max_size=80))
def test_any_bytes_give_no_header_or_one_that_warcio_reads_too(data: bytes) -> None:
    try:
        found = parse_arc_header(data)
    except ValueError:
        return
    assert found is None or len(ARCHeadersParser().parse(BytesIO(data)).headers) == len(NAMES)


@pytest.mark.parametrize(
    "line",
    [
        b"com,example)/ 20140126200624 http://example.com/ text/html 200 JZ622UA23G5ZU6Y3XAKH4LINONUEICEG - - 1043 333 example.warc.gz\n",
        b"http://a.b/ 1.2.3.4 20080430204825 text/html\n",
        b"http://a.b/ here soon no-type 10\n",
        b"http://a.b/ 1.2.3.4 20080430204825 text/html ten more\n",
        b"no-scheme 1.2.3.4 20080430204825 text/html 10\n",
        b"http://a.b/ 1.2.3.4 20080430204825 text/html 10",
        b"",
    ],
)  # fmt: skip
def test_other_lines_are_not_headers(line: bytes) -> None:
    assert parse_arc_header(line) is None


@pytest.mark.parametrize(
    ("fields", "is_header"),
    [
        (b"1.2.3.4 20080430204825 text/html ten", True),
        (b"1.2.3.4 20080430204825 text/html -1", True),
        (b"1.2.3.4 2008043020482 text/html -1", True),
        (b"1.2.3.4 2008043020482 text/html ten", False),
        (b"1.2.3.4 soon no-type 10", True),
        (b"here 1999 no-type 10", True),
        (b"here soon text/html 10", True),
        (b"here soon no-type 10", False),
    ],
)
def test_a_line_without_some_usual_fields_is_a_header(fields: bytes, is_header: bool) -> None:
    """The record is reported then. As other text, the line would belong to the record before."""
    assert (parse_arc_header(b"http://a.b/ " + fields + b"\n") is not None) == is_header


@pytest.mark.parametrize(
    "url",
    [
        b"http://a/b 1.2.3.4 20080430204825 html 200",
        b"http://a/b 1.2.3.4 20080430204825 html 200 x y",
        b"http://a/b here 20080430204825 html 200 x",
        b"http://a/b 1.2.3.4 soon html 200 x",
    ],
)
def test_a_url_may_look_like_the_start_of_a_header_of_version_2(url: bytes) -> None:
    """Such a header has ten fields, the second and third of which are address and date."""
    found = parse_arc_header(url + b" 1.2.3.4 20080430204825 text/html 10\n")
    assert found is not None
    assert found[0][b"warc-target-uri"] == url


def test_a_header_of_arc_2_is_refused() -> None:
    line = b"http://a.b/ 1.2.3.4 20080430204825 text/html 200 checksum - 0 file.arc 10\n"
    with pytest.raises(ValueError, match="ARC version 2"):
        parse_arc_header(line)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ("1.2.3.4 20080430204825 text/html", True),
        ("1.2.3.4 20080430204825 no-type", True),
        ("::1 20080430 no-type", True),
        ("1.2.3.4 2008043 no-type", False),
        ("1.2.3.4 2008 text/html", True),
        ("- - text/html", True),
        ("- - no-type", False),
        ("1.2.3.4 200 text/html", False),
        ("1.2.3.4 123456789012345678 no-type", True),
        ("1.2.3.4 1234567890123456789 text/html", False),
        ("localhost 20080430204825 text/html", False),
    ],
)
def test_headers_as_writers_make_them_are_told_from_other_lines(fields: str, wanted: bool) -> None:
    address, date, mime = fields.encode().split(b" ")
    headers = {b"warc-ip-address": address, b"warc-date": date, b"content-type": mime}
    assert is_usual(headers) == wanted


@pytest.mark.parametrize(
    ("url", "address", "date", "reason"),
    [
        (b"http://a.b/", b"1.2.3.4", b"2008", None),
        (b"http://a.b/", b"-", b"123456789012345678", None),
        (b"http://a.b/", b"localhost", b"2008", "odd address in the ARC header ('localhost')"),
        (b"http://a.b/", b"x" * 50, b"2008", f"odd address in the ARC header ({'x' * 40!r})"),
        (b"http://a.b/", b"1.2.3.4", b"200", "odd date in the ARC header ('200')"),
        (b"http://a.b/", b"1.2.3.4", b"-", "odd date in the ARC header ('-')"),
        (b"http://a.b/", b"1.2.3.4", b"1" * 50, f"odd date in the ARC header ({'1' * 40!r})"),
        (b"http://a.b/xhttp://c.d/", b"1.2.3.4", b"2008", "the URL has another URL inside"),
        (b"http://a.b/?http://c.d/", b"1.2.3.4", b"2008", None),
    ],
)
def test_what_is_odd_is_reported(url: bytes, address: bytes, date: bytes, reason: str | None) -> None:
    headers = {b"warc-target-uri": url, b"warc-ip-address": address, b"warc-date": date}
    found = odd_field(headers, date[:14])
    assert (found is None) if reason is None else (found or "").startswith(reason)


def test_a_date_that_does_not_exist_is_reported() -> None:
    headers = {b"warc-target-uri": b"http://a.b/", b"warc-ip-address": b"-", b"warc-date": b"20141316000000"}
    found = odd_field(headers, b"20141216000000")
    assert found == "impossible date in the ARC header ('20141316000000'); the timestamp is 20141216000000"


def test_a_header_line_that_breaks_off_says_where_the_next_one_starts() -> None:
    line = b"http://a.b/ 1.2.3.4 2008http://c.d/ 1.2.3.4 20080430204825 text/html 10\n"
    with pytest.raises(BrokenLineError, match="another record starts inside") as error:
        parse_arc_header(line)
    assert line[error.value.next :].startswith(b"http://c.d/")


def test_a_header_line_has_a_longest_size() -> None:
    rest = b" 1.2.3.4 20080430204825 text/html 10\n"
    longest = b"http://a.b/".ljust(MAX_LINE - len(rest), b"x") + rest
    assert parse_arc_header(longest) is not None
    assert parse_arc_header(b"http://a.b/x" + longest[11:]) is None


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        (b"filedesc://a.arc", b"warcinfo"),
        (b"http://a.b/filedesc://", b"response"),
        (b"dns:a.b", b"response"),
    ],
)
def test_the_first_record_describes_the_file(url: bytes, kind: bytes) -> None:
    found = parse_arc_header(url + b" 0.0.0.0 20080430204825 text/plain 10\nbody")
    assert found is not None
    headers, start = found
    assert (headers[b"warc-type"], headers[b"warc-target-uri"]) == (kind, url)
    assert start == len(url) + len(b" 0.0.0.0 20080430204825 text/plain 10\n")
