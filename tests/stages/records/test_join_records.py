"""What a crawl's metadata record adds to a capture."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.records.take_record import crawl_notes

lines = st.sampled_from(
    [
        b"fetchTimeMs: 12",
        b"charset-detected: UTF-8",
        b"charset-detected:  UTF-8 ",
        b"charset-detected: ",
        b'languages-cld2: {"languages":[{"code-iso-639-3":"eng"},{"code-iso-639-3":"fra"}]}',
        b'languages-cld2: {"code-iso-639-3" : "deu"} ',
        b"languages-cld2: ",
        b"languages-cld2: {}",
        b"x: charset-detected: KOI8-R",
        b'x: languages-cld2: {"code-iso-639-3":"rus"}',
    ]
)
ends = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b""])
blocks = st.lists(st.tuples(lines, ends).map(b"".join), max_size=5).map(b"".join)


def test_charset_and_languages_are_taken() -> None:
    block = (
        b"fetchTimeMs: 12\r\ncharset-detected: UTF-8\r\n"
        b'languages-cld2: {"languages":[{"code-iso-639-3":"eng"},{"code-iso-639-3":"fra"}]}\r\n\r\n'
    )
    assert crawl_notes(bytearray(block)) == (b"UTF-8", b"eng,fra")


@given(blocks)
def test_notes_say_the_same_behind_another_line(block: bytes) -> None:
    assert crawl_notes(block) == crawl_notes(b"x: y\r\n" + block)


@pytest.mark.parametrize(
    ("block", "notes"),
    [
        (b"", (None, None)),
        (b"charset-detected: A\r\nlanguages-cld2: {\"code-iso-639-3\":\"eng\"}\r\n", (b"A", b"eng")),
        (b"charset-detected: A\r\nlanguages-cld2: {}\r\n", (b"A", None)),
        (b"charset-detected: A", (b"A", None)),
        (b"charset-detected: A\r", (b"A", None)),
        (b"charset-detected:  A B \r\n", (b"A B", None)),
        (b"charset-detected: \r\n", (None, None)),
        (b"charset-detected:\r\n", (None, None)),
        (b"x\ncharset-detected: A\r\n", (b"A", None)),
        (b"x\rcharset-detected: A\r\n", (None, None)),
        (b"xcharset-detected: A\r\n", (None, None)),
        (b"x: charset-detected: A\r\ncharset-detected: B\r\n", (None, None)),
        (b"languages-cld2: {\"code-iso-639-3\": \"eng\"}", (None, b"eng")),
        (b"languages-cld2: {\"code-iso-639-3\" : \"eng\", \"code-iso-639-3\":\"fra\"}\r\n", (None, b"eng,fra")),
        (b"languages-cld2: {\"code-iso-639-3\":\"eng\"}\r\n\"code-iso-639-3\":\"fra\"\r\n", (None, b"eng")),
        (b"fetchTimeMs: x\r\ncharset-detected: A\r\nlanguages-cld2: {}\r\n", (b"A", None)),
    ],
    ids=range(16),
)  # fmt: skip
def test_notes_are_the_first_lines_with_their_names(
    block: bytes, notes: tuple[bytes | None, bytes | None]
) -> None:
    assert crawl_notes(block) == crawl_notes(bytearray(block)) == notes
