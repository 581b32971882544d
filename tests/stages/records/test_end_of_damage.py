"""Where a damaged record of an uncompressed archive ends, in small files: no byte too much, and no inner record too many."""

from __future__ import annotations

import pytest

from cdxmill.capture import Damage
from cdxmill.stages.records.parse_header import FETCH_IF_MISSING, NOT_AN_ARCHIVE, REPAIR
from cdxmill.stages.records.read_plain import read_plain
from cdxmill.stages.window import Window

C = b"\r\n\r\n"
HTTP = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"


def warc(block: bytes, length: int | str | None = 0, version: bytes = b"WARC/1.0") -> bytes:
    """A record without its closing. `length`: 0 for the right one, None for no field."""
    field = b"" if length is None else b"Content-Length: %b\r\n" % str(length or len(block)).encode()
    return version + b"\r\nWARC-Type: resource\r\n" + field + b"\r\n" + block


def arc(block: bytes) -> bytes:
    return b"http://a.com/ 1.2.3.4 20200101000000 text/plain %d\n%b\n" % (len(block), block)


BAD_ARC = arc(b"").replace(b" 0\n\n", b" many\n")
"""The line before a damaged ARC record."""
TWO_ARC, TWO_WARC = arc(b"a") + arc(b"b"), warc(b"a") + C + warc(b"b") + C

CASES: dict[str, tuple[list[bytes], str]] = {
    "too short for a header: a damaged record": ([b"??", warc(b"t") + b"\n??"], "00"),
    "too short for a header: an ARC record": ([b"???\n", arc(b"text\r\n\r\n"), b"\n"], "0r "),
    "too short for a header, behind blank lines": ([b"\r\n", b".", warc(HTTP[:-2]), C + b"\n"], " 0r "),
    "the length leads to the only other record": (
        [warc(b"t", version=b"WARC/7.0") + b"\r\n", warc(b"t"), b"\n"],
        "0r ",
    ),
    "an ARC record in a file with more line ends": (
        [arc(b"t\r\n"), b"\n", b"WARC/1.0\r\n", b"WARC-Type: r" + arc(b"") + b"\n"],
        "r 0r",
    ),
    "an ARC record is the payload of one with fields, in such a file": (
        [arc(b"t\r\n"), b"\n", warc(b"", None) + arc(b"") + b"\n"],
        "r 1",
    ),
    "an ARC record is the payload in a file with more line ends": (
        [warc(b"t\r\n"), C + C, warc(b"", None) + arc(b"t\r\n") + b"\n\r\n\r\n"],
        "r 1",
    ),
    "the length leads to the end of the file, and the last record is damaged": (
        [warc(b"", 117)[:-2] + b"X\nt" + warc(b"t\r\n") + C + warc(b"t") + b"more\n"],
        "1",
    ),
    "the length leads to a record without line ends before it": (
        [warc(b"t" + C, 5 + len(warc(b"x") + C), b"WARC/7.0"), warc(b"x"), C, warc(b"y"), C],
        "0r r ",
    ),
    "garbage in place of the line ends of both": (
        [warc(warc(b"t") + C, version=b"WARC/7.0") + b"garbage", warc(b"x"), C, warc(b"y"), C],
        "1r r ",
    ),
    "the last inner record has no line ends of its own": (
        [warc(warc(b"t") + C + warc(b"u"), version=b"WARC/7.0") + C, warc(b"x"), C, warc(b"y"), C],
        "2r r ",
    ),
    "damaged records between the inner ones do not count": (
        [warc(3 * (warc(b"t") + C + warc(b"u", None) + C) + b"more", version=b"WARC/7.0") + C, warc(b"x"), C],
        "3r ",
    ),
    "ARC records after a text in one of them": (
        [arc(b"x"), BAD_ARC + b"text\r\n" + TWO_ARC + b"\n", arc(b"y"), arc(b"z")],
        "r2rr",
    ),
    "WARC records after a text in an ARC record": (
        [arc(b"x"), BAD_ARC + b"text\r\n" + TWO_WARC + b"\n", arc(b"y"), arc(b"z")],
        "r2rr",
    ),
    "ARC records after a text in a WARC record": (
        [warc(b"x"), C, warc(b"text\r\n" + TWO_ARC, None) + C, warc(b"y"), C, warc(b"z"), C],
        "r 2r r ",
    ),
    "a blank line between ARC and WARC records": (
        [warc(b"t", None) + C, arc(b"a"), arc(b"b"), b"\n", warc(b"x"), C],
        "0rr r ",
    ),
    "one more line end between others": (
        [warc(b"t", None) + C, warc(b"a"), C, warc(b"b"), C + b"\n", warc(b"y"), C],
        "0r r r ",
    ),
    "one record after a text, and one more line end at the end of the file": (
        [warc(b"text\r\n" + warc(b"a") + C, None) + C, warc(b"y"), C + b"\n"],
        "1r ",
    ),
    "cut off, and its payload does not start with a record": ([warc(b"H", 162), warc(b"x"), C], "0r "),
    "the end of the inner records is not that of the file": (
        [warc(b"X/1.0\r\nWARC-Type: a\r\n\r\n", 7, b"WARC/7.0"), warc(b"t\r\n"), b"\r\n"],
        "0r ",
    ),
    "cut off in its payload": ([warc(warc(b"t\r\n") + C, 999)], "1"),
    "the length leads to the end of the file": (
        [warc(b"text\r\n\r\n" + arc(b"t") + b"?", version=b"WARC/7.0") + C],
        "1",
    ),
    "garbage before an ARC record with the line ends of two": ([b"garbage line\n", arc(b""), b"\n"], "0r "),
    "a long line of garbage before such a record": ([b"g" * 31 + b"\n" + arc(b"") + b"\n"], "1"),
    "a version that breaks off before an ARC record": (
        [warc(b""), b"WARC/1" + arc(b"") + b"\n", arc(HTTP), b"\n"],
        "r0r ",
    ),
    "a header breaks off behind a record with the usual line ends": (
        [warc(b""), b"\r\n", b"WARC/1.0\r\nWAR" + warc(b"t\r\n") + C + b"\r\n"],
        "r 1",
    ),
    "a block without closing before garbage": ([warc(b"") + b"\n?"], "0"),
    "the length leads to a blank line inside the payload": (
        [warc(b"X/1.0\r\nWARC-Type: a\r\n\r\n" + warc(b"t\r\n"), 71) + C + C],
        "1",
    ),
    "an ARC length leads into a line": (
        [arc(b"t\r\nWARC")[:-1] + b"/1.0\r\nWARC-T"],
        "0",
    ),
    "an ARC record before garbage without a line end": ([arc(b"") + b"?"], "0"),
    "an ARC record whose first line starts with garbage": ([b"??" + arc(b""), b"\n"], "00"),
    "a line like an ARC header, with a length that leads nowhere": (
        [b"?? 20200101000000 text/plain 3\nlonger text\n", arc(b"x")],
        "0r",
    ),
    "a line like an ARC header, with a length that leads to a text": (
        [b"?? 20200101000000 text/plain 3\nabc\ntext\n", arc(b"x")],
        "0r",
    ),
}


def seen(data: bytes) -> list[tuple[int, str]]:
    """The offset of each record (r), and of each damage with the number of records in its payload."""
    found = []
    for item in read_plain(Window(lambda offset, size: data[offset : offset + size])):
        inside = "r"
        if isinstance(item, Damage):
            inside = item.reason.partition("an archive of ")[2].split(" ")[0] or "0"
        found.append((item.offset, inside))
    return found


@pytest.mark.parametrize("name", CASES)
def test_damage_ends_where_the_next_record_of_the_file_starts(name: str) -> None:
    parts, marks = CASES[name]
    starts = [sum(map(len, parts[:number])) for number in range(len(parts))]
    wanted = [(start, mark) for start, mark in zip(starts, marks, strict=False) if mark != " "]
    assert seen(b"".join(parts)) == wanted


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"garbage", NOT_AN_ARCHIVE),
        (warc(b"x") + C + b"garbage", FETCH_IF_MISSING),
        (warc(b"x", None) + C, REPAIR),
    ],
)
def test_the_hint_of_damage_says_what_to_do_about_it(data: bytes, hint: str) -> None:
    found = list(read_plain(Window(lambda offset, size: data[offset : offset + size])))
    assert [item.hint for item in found if isinstance(item, Damage)] == [hint]
