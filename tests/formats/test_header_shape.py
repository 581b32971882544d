"""Headers read by shape against the same headers read field by field."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.archives.warc_header import (
    ASKED,
    HeaderError,
    HeaderShapes,
    fields_of,
    parse_warc_header,
)

lines = st.sampled_from(
    [b"WARC-Type: response", b"WARC-Type: request", b"WARC-Type:metadata", b"Content-Length: 12", b"X: a b "]
) | st.binary(max_size=12)
ends = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\n ", b"\r\n\t"])
headers = st.lists(st.tuples(lines, ends), max_size=5).map(
    lambda parts: b"WARC/1.0\r\nContent-Length: 7\r\n" + b"".join(map(b"".join, parts)) + b"\r\n\r\nblock"
)


@given(st.lists(headers, max_size=12))
def test_a_shape_gives_the_fields_of_the_header(several: list[bytes]) -> None:
    shapes = HeaderShapes()
    for data in [*several, *several]:
        found = shapes.match(data)
        try:
            expected = parse_warc_header(data)
        except HeaderError:
            assert found is None
            continue
        assert shapes.parse(data) == expected
        if found is not None:
            fields, end = expected
            assert fields_of(found) == {name: value for name, value in fields.items() if name in ASKED}
            assert found[1].end() == end
            assert found[0].kind == expected[0].get(b"warc-type", b"")
            assert found[1][found[0].length] == expected[0][b"content-length"]


def test_a_header_like_an_earlier_one_is_recognized_with_other_values() -> None:
    shapes = HeaderShapes()
    header = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: %b\r\nContent-Length: %d\r\n\r\n"
    assert shapes.match(header % (b"2020", 1)) is None
    shapes.parse(header % (b"2020", 1))
    assert shapes.match(header % (b"2021-01-01T00:00:00Z", 123) + b"block") is not None
    others = (b"revisit", b"Content-Length", b"WARC-Date: 2020\r\nX: y")
    for old, new in zip((b"response", b"WARC-Date", b"WARC-Date: 2020"), others, strict=True):
        assert shapes.match((header % (b"2020", 1)).replace(old, new)) is None


def test_a_header_without_a_length_gives_no_shape() -> None:
    shapes = HeaderShapes()
    header = b"WARC/1.0\r\nWARC-Type: response\r\nX-a: 1\r\n\r\n"
    fields, end = shapes.parse(header)
    assert (fields, end) == ({b"warc-type": b"response", b"x-a": b"1"}, len(header))
    assert shapes.match(header) is None


def test_only_the_first_shapes_are_kept() -> None:
    """Otherwise, headers that are all different would be compared with more and more patterns."""
    shapes = HeaderShapes()
    headers = [b"WARC/1.0\r\nX-%d: 1\r\nContent-Length: 1\r\n\r\n" % number for number in range(9)]
    for header in headers:
        shapes.parse(header)
    assert [shapes.match(header) is not None for header in headers] == [True] * 8 + [False]


def test_headers_of_several_kinds_are_recognized_in_any_order() -> None:
    shapes = HeaderShapes()
    headers = [
        b"WARC/1.0\r\nWARC-Type: %b\r\nX-Note: %d\r\nContent-Length: 1\r\n\r\n" % (kind, number)
        for number, kind in enumerate((b"request", b"response", b"metadata", b"revisit"))
    ]
    for header in headers:
        shapes.parse(header)
    for turn in range(40):
        header = headers[turn * turn % 7 % 4]
        found = shapes.match(header)
        assert found is not None
        assert found[0].kind == parse_warc_header(header)[0][b"warc-type"]
        assert len(found[0].following) == len(headers)


def test_a_header_whose_length_is_no_number_gives_no_shape() -> None:
    shapes = HeaderShapes()
    for length in (b"x", b"9" * 19, b"-1"):
        header = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %b\r\n\r\n" % length
        assert shapes.parse(header)[0][b"content-length"] == length
        assert shapes.match(header) is None
