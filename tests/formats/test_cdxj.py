"""CDXJ lines, read back by Python's json; the order of fields is Common Crawl's (docs/formats/cdxj.md)."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from cdxmill.capture import Capture
from cdxmill.formats.lines.cdx_lines import (
    format_cdxj,
    format_placeless,
    is_of_revisit,
    quote,
    up_to_digest,
    url_in,
    with_place,
)

# As `collections/CC-MAIN-2024-10` and later have them; method and requestBody are pywb's.
ORDER = [
    "url", "mime", "mime-detected", "status", "digest", "length", "offset", "filename", "charset", "languages",
    "truncated", "redirect", "method", "requestBody",
]  # fmt: skip

keys = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1).map(str.encode)
texts = st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace"))
optional = st.none() | texts


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    """Captures with any text in their fields."""
    head = draw(keys), draw(st.from_regex(rb"\A[0-9]{14}\Z")), draw(texts)
    numbers = draw(st.integers(0, 2**63)), draw(st.integers(0, 2**63))
    before, behind = [draw(optional) for _ in range(4)], [draw(optional) for _ in range(6)]
    return Capture._make([*head, *before, *numbers, draw(texts), *behind])


def values_of(capture: Capture) -> dict[str, str]:
    """The expected content of the JSON."""
    names = [name.replace("-", "_") for name in ORDER[:-1]]
    values = [*(getattr(capture, name) for name in names), capture.request_body]
    return {
        name: str(value) if isinstance(value, int) else value.decode()
        for name, value in zip(ORDER, values, strict=True)
        if value is not None
    }


@given(captures())
def test_a_line_is_key_timestamp_and_the_json_of_all_present_fields(capture: Capture) -> None:
    key, timestamp, text = format_cdxj(capture).split(b" ", 2)
    assert (key, timestamp) == (capture.urlkey, capture.timestamp)
    assert json.loads(text) == values_of(capture)


@given(captures())
def test_the_json_is_written_as_python_writes_it_in_the_published_order(capture: Capture) -> None:
    text = format_cdxj(capture).split(b" ", 2)[2]
    values = values_of(capture)
    assert list(json.loads(text)) == [name for name in ORDER if name in values]
    assert text == json.dumps(values).encode()


@given(captures())
def test_a_line_is_ascii_and_has_no_control_characters(capture: Capture) -> None:
    assert all(0x20 <= byte < 0x7F for byte in format_cdxj(capture))


@given(texts)
def test_quoted_text_is_read_back_by_json(text: bytes) -> None:
    assert json.loads(quote(text)).encode() == text


@given(st.binary(max_size=40))
def test_bytes_that_are_not_utf8_become_replacement_characters(data: bytes) -> None:
    assert json.loads(quote(data)) == data.decode("utf-8", "replace")


@given(captures(), texts)
def test_a_line_gets_its_place_later(capture: Capture, filename: bytes) -> None:
    whole = format_cdxj(capture._replace(offset=17, filename=filename))
    assert with_place(format_placeless(capture), 17, quote(filename)[1:-1]) == whole


@given(captures())
def test_the_start_of_a_line_does_not_depend_on_its_place(capture: Capture) -> None:
    line = format_cdxj(capture)
    start = up_to_digest(line)
    assert start == up_to_digest(format_cdxj(capture._replace(length=1, offset=2, filename=b"x")))
    fields = json.loads(start.split(b" ", 2)[2] + b"}")
    assert [*fields] == [
        name for name in ("url", "mime", "mime-detected", "status", "digest") if name in values_of(capture)
    ]
    assert is_of_revisit(line) == (capture.mime == b"warc/revisit")
    if capture.url.isalnum():
        assert json.loads(b'"%b"' % url_in(line)) == capture.url.decode()
