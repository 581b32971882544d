"""Every row of the section *Counting* of docs/reliability.md, tested with the command."""

from __future__ import annotations

import gzip
import re
from functools import cache
from pathlib import Path

import pytest

from cdxmill.cli.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs/reliability.md"
_ROW = re.compile(
    r"^\| (?P<damage>[^|]+) \| `(?P<what>[a-z]+)` \|(?: `(?P<message>[^|]+)`)? \| (?P<status>\d) \|$", re.M
)
ROWS = list(_ROW.finditer(PAGE.read_text().partition("\n## Counting\n")[2].partition("\n## ")[0]))


def record(kind: str, media: str, block: bytes) -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.org/\r\nContent-Type: {media}\r\n"
    return gzip.compress(head.encode() + b"Content-Length: %d\r\n\r\n%b\r\n\r\n" % (len(block), block), 1)


def wat(json: bytes) -> bytes:
    return record("metadata", "application/json", json)


def page(payload: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{more}\r\n"
    return record("response", "application/http; msgtype=response", head.encode() + payload)


def text(data: bytes) -> bytes:
    return record("conversion", "text/plain", data)


GZIP = "Content-Encoding: gzip\r\n"
INNER = b'{"Headers":{"Server":"nginx"},"HTML-Metadata":{"Links":[{"path":"A@/href","url":"http://b.org/"}]}}'


def _envelope(response: bytes) -> bytes:
    """The JSON about a response."""
    url = b'{"WARC-Target-URI":"http://a.org/"}'
    return b'{"Envelope":{"WARC-Header-Metadata":%b,"Payload-Metadata":{"HTTP-Response-Metadata":%b}}}' % (
        url,
        response,
    )


GOOD_WAT = wat(_envelope(INNER))
ODD_WAT = (
    GOOD_WAT
    + wat(
        _envelope(b'{"Headers":{"X-Server":"a","X":{"Server":"b"},"Y":"\\"Server\\":\\"c\\""},"Server":"d"}')
    )
    + wat(_envelope(b'{"Headers":{"Server":null}}'))
    + wat(
        b'{"Server":"e","Envelope":{"Payload-Metadata":{"HTTP-Request-Metadata":{"Headers":{"Server":"f"}}}}}'
    )
)
GOOD = page(b"<p><a href='http://b.org/'>")
ODD = b"<div>" * 100_000 + b"<!-- <!--- --><script><!-- <script></script --></script><i <u" + b"<!--" * 1000


@cache
def cases() -> list[tuple[bytes, bytes]]:
    """Archives, and what is counted; to make them takes longer than to collect all tests of a file."""
    return [
        (GOOD_WAT + wat(b'{"Envelope": ') + GOOD_WAT, b"nginx\t2\n"),
        (GOOD_WAT + wat(b'{"Envelope":' * 100_000), b"org.a org.b\t1\n"),
        (GOOD + page(b"\x89PNG\r\n\x1a\n\0\0<p>"), b"a\t1\np\t1\n"),
        (GOOD + page(gzip.compress(b"<i>" * 999)[:-9], GZIP), b"a\t1\ni\t947\np\t1\n"),
        (GOOD + page(gzip.compress(b"<i>" + b" " * 50_000_000, 1), GZIP), b"a\t1\ni\t1\np\t1\n"),
        (
            GOOD + page(b"<a href='http://c.org/'>", "Content-Encoding: x-odd\r\n"),
            b"org.a org.b\t1\norg.a org.c\t1\n",
        ),
        (page(ODD), b"div\t100000\nscript\t1\n"),
        (ODD_WAT, b"nginx\t1\n"),
        (GOOD_WAT + wat(_envelope(b'{"Headers":{"X":"\xfc","Server":"nginx"}}')) + GOOD_WAT, b"nginx\t2\n"),
        (GOOD_WAT + GOOD_WAT[:-20], b"org.a org.b\t1\n"),
        (text(b"to be") + text(b"or not")[:-20], b"be\t1\nto\t1\n"),
        (text(b"a \xff\xfe b\xc2 a"), b"a\t2\nb\xc2\t1\n\xff\xfe\t1\n"),
        (text(b"x" * 5_000_000 + b" y"), b"x" * 1000 + b"\t1\ny\t1\n"),
        (text(b"ab " * 34_000_000), b"a\t1\nab\t22369621\n"),
    ]


def test_every_row_has_a_case() -> None:
    assert len(ROWS) == len(cases()) + 2


@pytest.mark.parametrize("number", range(len(ROWS) - 2), ids=lambda number: ROWS[number]["damage"])
def test_a_row_is_what_happens(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row, (data, expected) = ROWS[number], cases()[number]
    (tmp_path / "a.warc.gz").write_bytes(data)
    status = main(["count", row["what"], "-o", str(tmp_path / "out"), str(tmp_path / "a.warc.gz")])
    said = [line for line in capsys.readouterr().err.splitlines() if " different " not in line]
    assert (status, (tmp_path / "out").read_bytes()) == (int(row["status"]), expected)
    assert len(said) == bool(row["message"]), said
    assert all(matches(row["message"], line) for line in said), said


def matches(message: str, line: str) -> bool:
    pattern = re.escape(message)
    for name, form in (("FILE", r"\S+"), ("TEXT", ".+"), ("N", r"\d+")):
        pattern = re.sub(rf"\b{name}\b", lambda _, form=form: form, pattern)  # type: ignore[misc]
    return re.fullmatch(pattern, line) is not None


def test_archives_without_such_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.warc.gz").write_bytes(GOOD)
    (tmp_path / "b.warc.wet.gz").write_bytes(text(b"a"))
    for row, inputs in zip(ROWS[-2:], (["a.warc.gz", "b.warc.wet.gz"], ["a.warc.gz"]), strict=True):
        files = [str(tmp_path / name) for name in inputs]
        assert main(["count", "words", "--replace", "-o", str(tmp_path / "out"), *files]) == int(
            row["status"]
        )
        assert matches(row["message"], capsys.readouterr().err.splitlines()[0])
    assert (tmp_path / "out").read_bytes() == b"a\t1\n"
