"""CDX lines of 11 and 9 fields: no field contains white space, and the fields can be read back."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.capture import Capture
from cdxmill.formats.lines.cdx_lines import CDX9_HEADER, CDX11_HEADER, format_cdx9, format_cdx11

# Letters of "The CDX File Format" (IIPC, 2015).
LETTERS = {
    b"N": "urlkey", b"b": "timestamp", b"a": "url", b"m": "mime", b"s": "status", b"k": "digest",
    b"S": "length", b"V": "offset", b"g": "filename",
}  # fmt: skip
FORMATS = [(format_cdx11, CDX11_HEADER, 11), (format_cdx9, CDX9_HEADER, 9)]

keys = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1).map(str.encode)
values = st.binary(max_size=20)


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    """Captures with any bytes in their fields."""
    some = [draw(st.none() | values) for _ in range(4)]
    mime, status, digest, detected = some
    numbers = draw(st.integers(0, 2**63)), draw(st.integers(0, 2**63))
    timestamp = draw(st.from_regex(rb"\A[0-9]{14}\Z"))
    return Capture(
        draw(keys), timestamp, draw(values), mime, detected, status, digest, *numbers, draw(values)
    )


@pytest.mark.parametrize(("write", "header", "count"), FORMATS)
@given(capture=captures())
def test_a_line_has_the_fields_of_its_header_and_none_holds_white_space(
    write: Callable[[Capture], bytes], header: bytes, count: int, capture: Capture
) -> None:
    letters, fields = header.split(b" ")[2:], write(capture).split(b" ")
    assert len(fields) == len(letters) == count
    for letter, field in zip(letters, fields, strict=True):
        value = getattr(capture, LETTERS[letter]) if letter in LETTERS else None
        expected = b"%d" % value if isinstance(value, int) else value or b"-"
        assert field.split() == [field]
        assert field == expected or unquote_to_bytes(field) == unquote_to_bytes(expected)


@pytest.mark.parametrize(("write", "header", "count"), FORMATS)
def test_absent_values_are_dashes(write: Callable[[Capture], bytes], header: bytes, count: int) -> None:
    capture = Capture(b"a)/", b"2020", b"http://a/", None, None, None, None, 7, 5, b"a.warc")
    fields = write(capture).split(b" ")
    assert fields[3:7] == [b"-"] * 4
    assert fields[-2:] == [b"5", b"a.warc"]
    assert len(fields) == count


def test_a_header_sorts_before_every_line_and_names_the_fields() -> None:
    assert CDX11_HEADER == b" CDX N b a m s k r M S V g"
    assert CDX9_HEADER == b" CDX N b a m s k r V g"
    assert min(CDX9_HEADER, CDX11_HEADER) > b" "
    assert max(CDX9_HEADER, CDX11_HEADER) < b"!"
