"""A record header in which another record starts: two headers are not taken for one, and a legal value is not taken for two."""

from __future__ import annotations

import pytest

from cdxmill.formats.archives.warc_header import (
    MAX_HEADER,
    HeaderError,
    HeaderShapes,
    UnfinishedHeader,
    parse_warc_header,
)

VERSION = b"WARC/1.0\r\n"
END = b"Content-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    "line",
    [
        b"WARC-Target-URI: http://a.com/WARC/1.0\r\n",
        b"WARC-Target-URI: http://a.com/?WARC/1.1\r\n",
        b"X-Note: WARC/1.0\r\n",
        b"X-Note: one\r\n WARC/1.0\r\n",
        b"X-Note: one\r\n\tWARC/1.0\r\n",
        b"X-Note: one\r\n  two WARC/1.0\r\n",
        b" X-Note: one\r\n",
        b"WARC-Concurrent-To: <a>\r\nX-Note: WARC/1.0\r\nWARC-Concurrent-To: <b>\r\n",
        b"WARC-Protocol: h2\r\nX-Note: WARC/1.0\r\nWARC-Protocol: tls\r\n",
        b"X-Note: one\r\n X-B: two\r\nX-C: WARC/1.0\r\nX-B: three\r\n",
        b"".join(b"X-%d: WARC/1.0\r\n" % number for number in range(7)),
    ],
)
def test_a_value_may_end_as_a_version_line_does(line: bytes) -> None:
    data = VERSION + line + END
    for fields, end in (parse_warc_header(data), HeaderShapes().parse(data)):
        assert end == len(data)
        assert fields[b"content-length"] == b"0"


@pytest.mark.parametrize(
    "lines",
    [
        b"WARC-Type: respWARC/1.0\r\n",
        b"WARC-Type: respWARC/0.18\r\n",
        b"WARC-Type:WARC/1.0\r\n",
        b"WARC-Type: a \rWARC/1.1\r\n",
        b"a line that breaks off-WARC/1.0\r\n",
        b"WARC/1.0\r\n",
        b"WARC-Date: 2020\r\nX: http://a.com/WARC/1.0\r\nWARC-Date: 2021\r\n",
        b"WARC-Date: 2020\r\nX: http://a.com/WARC/0.17\r\nwarc-date : 2021\r\n",
        b"X-Note: a\r\n b\r\nX: http://a.com/WARC/0.18\r\nX-Note: a\r\n",
        b"".join(b"X-%d: WARC/1.0\r\n" % number for number in range(8)),
    ],
)
def test_a_header_that_breaks_off_in_front_of_another_one_is_refused(lines: bytes) -> None:
    with pytest.raises(HeaderError, match="another record starts inside the record header"):
        parse_warc_header(VERSION + lines + END)


@pytest.mark.parametrize("name", [b"WARC-Record-ID", b"WARC-Target-URI", b"Content-Length"])
def test_only_two_different_values_show_that_two_headers_were_joined(name: bytes) -> None:
    def header(*values: bytes) -> bytes:
        return VERSION + b"".join(b"%b: %b\r\n" % (name, value) for value in values) + b"\r\n"

    with pytest.raises(HeaderError, match=f"{name.decode().lower()} occurs twice"):
        parse_warc_header(header(b"1", b"2"))
    for values in ((b"1", b"1"), (b"1", b"2", b"3"), (b"1", b"1", b"2")):
        assert parse_warc_header(header(*values))[0] == {name.lower(): b"1"}


def test_a_header_ends_within_its_first_mebibyte() -> None:
    """The limit counts from the end of the version line, or from the start if all lines are usual ones."""
    filled = VERSION + b"X: " + b"x" * (MAX_HEADER - len(VERSION + b"X: \r\n" + END)) + b"\r\n" + END
    assert parse_warc_header(filled)[1] == len(filled) == MAX_HEADER
    odd = VERSION + b"X:" + b"x" * (MAX_HEADER - len(b"X:\r\n" + END)) + b"\r\n" + END
    assert parse_warc_header(odd)[1] == len(odd)
    with pytest.raises(UnfinishedHeader):
        parse_warc_header(odd.replace(b"X:", b"X:x"))
