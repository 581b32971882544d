"""The header that content starts with: which it is, how much of it is read, and its length."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cdxmill.formats.archives.warc_header import MAX_HEADER
from cdxmill.stages.records.parse_header import (
    BlankContent,
    BrokenHeader,
    NotARecord,
    RecordError,
    content_length,
    excerpt,
    parse_header,
    read_header,
    starts_record,
)

WARC = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 4\r\n\r\n"
ARC = b"http://a.b/ 1.2.3.4 20240101000000 text/plain 4\n"
ODD_ARC = b"http://a.b/ localhost 2024 html 4\n"


def reader(data: bytes, sizes: list[int] | None = None) -> Callable[[int], bytes]:
    """Reads the first bytes, and notes how many."""

    def read(size: int) -> bytes:
        if sizes is not None:
            sizes.append(size)
        return data[:size]

    return read


@pytest.mark.parametrize("version", [b"WARC/1.0", b"warc/1.0", b"Warc/1.1", b"WARC/0.17", b"warc/0.18"])
def test_a_version_may_be_in_any_case(version: bytes) -> None:
    data = WARC.replace(b"WARC/1.0", version)
    headers, start, is_arc = parse_header(data + b"body")
    assert (headers[b"warc-type"], start, is_arc) == (b"resource", len(data), False)
    assert starts_record(reader(version + b"\r\n"))


def test_an_arc_header_is_known_as_one() -> None:
    headers, start, is_arc = parse_header(ARC + b"body")
    assert (headers[b"warc-type"], start, is_arc) == (b"response", len(ARC), True)


@pytest.mark.parametrize(
    ("data", "error", "is_unfinished"),
    [
        (b"", BlankContent, False),
        (b"\r\n\n", BlankContent, False),
        (b"hello", NotARecord, True),
        (b"hello\n", NotARecord, False),
        (b"x" * (1 << 16), NotARecord, False),
        (b"WARC/1.0\r\nX: y", RecordError, True),
        (b"WARC/2.0\r\n\r\n", RecordError, False),
        (b"http://a.b/ 1.2.3.4 2024http://c.d/ 1.2.3.4 20240101000000 text/plain 4\n", BrokenHeader, False),
        (b"http://a.b/ 1.2.3.4 20240101000000 text/html 200 abc - 0 a.arc 4\n", RecordError, False),
    ],
)
def test_what_is_no_header_has_a_reason(data: bytes, error: type[RecordError], is_unfinished: bool) -> None:
    with pytest.raises(RecordError) as raised:
        parse_header(data)
    assert type(raised.value) is error
    assert raised.value.unfinished == is_unfinished


@pytest.mark.parametrize(
    ("size", "reads"),
    [
        (100, [1 << 12]),
        ((1 << 12) - len(WARC), [1 << 12]),
        ((1 << 12) - len(WARC) + 1, [1 << 12, 1 << 16]),
        ((1 << 16) - len(WARC) + 1, [1 << 12, 1 << 16, MAX_HEADER + (1 << 16)]),
    ],
)
def test_not_more_is_read_than_the_header_needs(size: int, reads: list[int]) -> None:
    field, sizes = b"X: " + b"x" * (size - 5) + b"\r\n", list[int]()
    data = WARC[:10] + field + WARC[10:]
    headers, start, _ = read_header(reader(data + b"b" * (2 << 20), sizes))
    assert (len(headers[b"x"]), start) == (size - 5, len(data))
    assert sizes == reads


def test_a_short_content_is_read_once() -> None:
    sizes: list[int] = []
    with pytest.raises(RecordError, match="no blank line ends it"):
        read_header(reader(WARC[:-2], sizes))
    assert sizes == [1 << 12]


@pytest.mark.parametrize(
    "data",
    [b"WARC/2.0\r\n\r\n", b"text\n", b"http://a.b/ 1.2.3.4 20240101000000 text/html 200 abc - 0 a.arc 4\n"],
)
def test_what_is_wrong_for_certain_is_read_once(data: bytes) -> None:
    sizes: list[int] = []
    with pytest.raises(RecordError):
        read_header(reader(data + b"x" * (1 << 17), sizes))
    assert sizes == [1 << 12]


@pytest.mark.parametrize(
    ("data", "always", "after_damage"),
    [
        (WARC, True, True),
        (b"WARC/", True, True),
        (b"WARC", False, False),
        (ARC, True, True),
        (ODD_ARC, True, False),
        (b"\r\n\r\n", False, False),
        (b"any text\n", False, False),
        (b"", False, False),
        (b"http://a.b/ 1.2.3.4 20240101000000 text/html 200 abc - 0 a.arc 4\n", True, True),
    ],
)
def test_what_starts_a_record(data: bytes, always: bool, after_damage: bool) -> None:
    assert starts_record(reader(data)) == always
    assert starts_record(reader(data), is_certain=False) == after_damage


@pytest.mark.parametrize(
    ("text", "length"),
    [
        (b"0", 0),
        (b"007", 7),
        (b" 12\t", 12),
        (b"0" * 30 + b"5", 5),
        (b"0" * 30, 0),
        (b"9" * 18, 10**18 - 1),
        (b"0" + b"9" * 18, 10**18 - 1),
    ],
)
def test_a_length_is_a_number(text: bytes, length: int) -> None:
    assert content_length({b"content-length": text}) == length


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "missing Content-Length"),
        ({b"content-length": b""}, "invalid Content-Length"),
        ({b"content-length": b"-1"}, "invalid Content-Length"),
        ({b"content-length": b"1 2"}, "invalid Content-Length"),
        ({b"content-length": b"\xc2\xb2"}, "invalid Content-Length"),
        ({b"content-length": b"1" + b"0" * 18}, "Content-Length is too large"),
    ],
)
def test_a_wrong_length_is_an_error(headers: dict[bytes, bytes], reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        content_length(headers)


def test_a_message_quotes_the_first_bytes() -> None:
    assert excerpt(b"x" * 24) == repr("x" * 24)
    assert excerpt(b"x" * 25) == repr("x" * 24) + "..."
    assert excerpt(b"a\n'") == '"a\\n\'"'
