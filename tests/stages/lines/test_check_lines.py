"""Which lines are CDX lines, wherever the pieces of a file are cut, in C and in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.lines import cdx_text
from cdxmill.stages.lines.cdx_text import CDXJ, LineError, checked, fields_of, odd_line
from tests.material.sanitizers import run_sanitized

JSON = b'com,a)/ 20200101000000 {"url": "http://a.com/", "offset": "7"}'
CDX11 = b"com,a)/ 2020 http://a.com/ text/html 200 AAAA - - 17 5 a.warc.gz"
CDX9 = b"com,a)/ 2020 http://a.com/ text/html 200 AAAA - 5 a.warc.gz"
HEADER = b" CDX N b a m s k r M S V g"


@pytest.fixture(autouse=True, params=["c", "python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    way: str = request.param
    if way == "python":
        monkeypatch.setattr(cdx_text, "_native_odd_line", None)
    return way


def fault(text: bytes, size: int = 1 << 20) -> str | None:
    """The error of a text that comes in pieces of `size` bytes."""
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    try:
        assert b"".join(checked(pieces)) == text
    except LineError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "lines",
    [
        [JSON],
        [CDX11],
        [CDX9 + b"\r"],
        [JSON, JSON],
        [HEADER, b"", CDX11, HEADER, CDX11, b""],
        [CDX9] * 3,
        [JSON + b"\r", JSON],
        [CDX11 + b"\r"] * 2,
        [b'com,a)/  {"url": "x"}', JSON, b'com,a)/ - {"url": "x"}', b"com,a)/ 1 {}"],
        [b"com,a)/\t\x08\xff 2020 {}", JSON],
        [b"com,a)/ 2020 http://a.com/  - x", b"com,a)/ - u m s d"],
        [b'com,a)/ 2020 {"a": {"b": " {"}}', JSON],
        [HEADER],
        [JSON, HEADER],
        [CDX9, b"", HEADER],
        [],
    ],
)
@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_lines_that_tools_write_pass(lines: list[bytes], end: bytes, size: int) -> None:
    assert fault(b"\n".join(lines) + end, size) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"<!DOCTYPE html>\n<html>\n", "line 1 is not a CDX or CDXJ line: b'<!DOCTYPE html>'"),
        (b"WARC/1.0\r\nWARC-Type: response\r\n", "line 1 is not a CDX or CDXJ line: b'WARC/1.0\\r'"),
        (HEADER + b"\n" + JSON + b"\n" + CDX11 + b"\n", "line 3 is CDX with 11 fields, but the lines before are CDXJ: b'com"),
        (CDX11 + b"\n" + CDX9 + b"\n", "line 2 is CDX with 9 fields, but the lines before are CDX with 11"),
        (CDX11 + b"\n" + JSON + b"\n", "line 2 is CDXJ, but"),
        (JSON + b"\n" + JSON[:-9] + b"\n", "line 2 is not a CDXJ line: b'com,a)/ 2020"),
        (JSON + b"\n" + JSON[:-9], "line 2 is truncated, the file ends in it: b'com"),
        (JSON + b'\ncom,a)/ 2020 {"a": {"b": 1}', "line 2 is truncated, the file ends in it"),
        (CDX11 + b"\n" + CDX11[:-20], "line 2 is truncated, the file ends in it"),
        (JSON + b"\n" + JSON.replace(b" 2020", b"2020"), "line 2 is truncated"),
        (JSON + b"\ncom,a)/ {}\n" + JSON + b"\n", "line 2 is not a CDXJ line"),
        (JSON + b"\n {}\n" + JSON + b"\n", "line 2 is not a CDXJ line"),
        (JSON + b"\n 2020 {}\n" + JSON + b"\n", "line 2 is not a CDXJ line"),
        (JSON + b"\n\r\n" + JSON + b"\n", "line 2 is not a CDXJ line: b'\\r'"),
        (JSON + b"\n\n" + JSON[:20] + b"\0" * 9 + JSON + b"\n", "line 3 has NUL bytes"),
        (b"\0" * 5000, "line 1 has NUL bytes"),
        (b"<html>", "line 1 is not a CDX or CDXJ line: b'<html>'"),
        (HEADER + b"\n" + JSON[:-1], "line 2 is not a CDX or CDXJ line: b'com"),
        (JSON + b"\n\r", "line 2 is truncated, the file ends in it: b'\\r'"),
        (JSON + b"\n" + CDX11, "line 2 is truncated, the file ends in it: b'com"),
        (CDX11 + b"\n" + CDX11 + b" x", "line 2 is truncated, the file ends in it: b'com"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_the_first_other_line_is_found(text: bytes, wanted: str, size: int) -> None:
    found = fault(text, size)
    assert found is not None
    assert found.startswith(wanted)


def test_a_line_has_a_maximum_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdx_text, "MAX_LINE", 1 << 20)
    line = b"com,a)/ 2020 {%b}" % (b" " * ((1 << 20) - 15))
    assert len(line) == 1 << 20
    for number, before in ((1, b""), (2, JSON + b"\n")):
        assert fault(before + line + b"\n", 1 << 15) is None
        longer = before + line[:-1] + b" }\n"
        assert fault(longer, 1 << 15) == f"line {number} is longer than 1 MiB"


lines = st.lists(
    st.sampled_from([JSON, CDX11, CDX9, HEADER, b"", JSON + b"\r", b"com,a)/  {}", b"a 1 {x", b"a 1 x}", b"a {}", b"{}", b" "])
    | st.binary(max_size=12).map(lambda text: text.replace(b"\n", b"")),
    max_size=8,
)  # fmt: skip


@given(lines, st.sampled_from([CDXJ, 3, 9, 11]))
def test_a_line_that_is_passed_quickly_is_valid(lines: list[bytes], fields: int) -> None:
    text = b"".join(line + b"\n" for line in lines)
    offset, passed = odd_line(b"x\n" + text, 2, len(text) + 2, fields)
    assert offset - 2 == sum(len(line) + 1 for line in lines[:passed])
    assert all(fields_of(line) == fields or b"\0" in line for line in lines[:passed])


@given(lines, st.integers(1, 40))
def test_the_size_of_the_pieces_does_not_matter(lines: list[bytes], size: int) -> None:
    text = b"\n".join(lines)
    assert fault(text, size) == fault(text)


@pytest.mark.parametrize(
    ("line", "fields"), [(JSON, CDXJ), (b"a 1 {}", CDXJ), (CDX11, 11), (CDX9, 9), (b"a 1 x", 3)]
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_usual_lines_are_passed_quickly(line: bytes, fields: int, end: bytes, way: str) -> None:
    if end == b"\r\n" and fields == CDXJ and way == "python":
        end = b"\n"  # others are passed one by one
    text = (line + end) * 3
    assert odd_line(b"x\n" + text + b"\n", 2, 2 + len(text), fields) == (2 + len(text), 3)
    for wrong in (9, 11, 3, CDXJ):
        assert wrong == fields or odd_line(text, 0, len(text), wrong) == (0, 0)


def test_json_is_checked_only_where_a_file_may_be_truncated() -> None:
    assert fault(b"com,a)/ 2020 {not JSON}\n" + JSON) is None
    assert fault(JSON + b"\ncom,a)/ 2020 {not JSON}") is not None


@pytest.mark.parametrize("size", [0, 100, (1 << 14) - 1, 1 << 14, 3 << 14])
def test_a_nul_anywhere_in_a_large_piece_is_found(size: int) -> None:
    lines = (CDX9 + b"\n") * (1 + size // len(CDX9))
    for place in (0, 30, len(lines) - 3, len(lines) // 2):
        text = CDX9 + b"\n" + lines[:place] + b"\0" + lines[place:]
        number = text.count(b"\n", 0, text.index(b"\0")) + 1
        assert fault(text) == f"line {number} has NUL bytes"


SANITIZED = """
import random, _native
rng = random.Random(1)
parts = [b"com,a)/ ", b"20200101000000", b" ", b"{", b"}", b"\\n", b"\\r", b"7", b"x", b"\\0"]
for _ in range(8_000):
    text = b"".join(rng.choices(parts, k=rng.randrange(30)))
    start = rng.randrange(len(text) + 1)
    end = rng.randrange(start, len(text) + 1)
    for fields in (0, 3, 11):
        offset, lines = _native.odd_line(text[: end], start, end, fields)
        assert start <= offset <= end and text.count(b"\\n", start, offset) == lines
"""


def test_c_reads_only_the_text(tmp_path: Path) -> None:
    run_sanitized(SANITIZED, tmp_path)
