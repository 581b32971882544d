"""The compiled reader returns the lines that the Python modules return, or leaves the record to them."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdxmill.capture import CommonLine, CrawlNotes, Outcome
from cdxmill.formats.lines.cdx_lines import is_of_revisit, quote, up_to_digest, url_in, with_place
from cdxmill.stages import native
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import Findings, common_reader, index_archive
from cdxmill.stages.captures.match_record import common_payload, is_revisit
from tests.material.sanitizers import run_sanitized
from tests.stages.captures.common_records import archive, contents, one_odd

USUAL = CaptureOptions()


class Indexed(NamedTuple):
    """The lines of an archive, and the findings about it."""

    lines: list[bytes]
    findings: Findings


def indexed(data: bytes, options: CaptureOptions = USUAL, line_format: str = "cdxj") -> Indexed:
    indexer = index_archive(
        lambda offset, size: data[offset : offset + size], b"a\xc3\xa9.warc.gz", options, line_format
    )
    return Indexed([line for lines in indexer for line in lines], indexer.findings)


def in_python(data: bytes, options: CaptureOptions = USUAL, line_format: str = "cdxj") -> Indexed:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "read", None)
        return indexed(data, options, line_format)


def gzip_files(paths: list[Path]) -> list[Path]:
    return [path for path in paths if path.read_bytes()[:2] == b"\x1f\x8b"]


def test_all_samples_get_the_same_lines(sample_archives: list[Path], pywb_archives: list[Path]) -> None:
    lines = 0
    for path in gzip_files([*sample_archives, *pywb_archives]):
        data = path.read_bytes()
        found = indexed(data)
        assert found == in_python(data), path
        lines += len(found.lines)
    assert lines > 2_000


def test_usual_captures_of_crawls_are_read_by_the_compiled_reader() -> None:
    near_sessions = b"http://example.com/?left=1&cfa=2&cf&id=3&s=4&mid=5&sin=6"
    for url in (b"https://www.example.com/a/?b=1&a=2", b"http://example.com/", near_sessions):
        assert isinstance(taken(COMMON % url), CommonLine)
    for kind, block in ((b"revisit", 1), (b"response", 1)):
        content = (COMMON % b"http://example.com/").replace(b"response", kind, block)
        assert isinstance(taken(content), CommonLine)
    notes, request = _metadata()
    assert taken(notes) == CrawlNotes(b"<urn:x:1>", b"UTF-8", b"eng")
    assert taken(request) is Outcome.NO_LINE


@pytest.mark.parametrize(
    "date",
    [
        *(
            f"2024-{month:02d}-{day}"
            for month in range(1, 13)
            for day in ("01", "28", str(30 - 2 * (month == 2)))
        ),
        *(f"2024-{month:02d}-31" for month in (1, 3, 5, 7, 8, 10, 12)),
        "1000-01-01",
        "9999-12-31",
    ],
)
def test_captures_of_every_day_are_read_by_the_compiled_reader(date: str) -> None:
    """But for that of a leap year: Python knows these."""
    content = COMMON % b"http://example.com/"
    (given,) = set(re.findall(rb"WARC-Date: ([^\r]*)\r", content))
    for time in ("T00:00:00Z", "T23:59:59Z", "T12:30:00.25Z"):
        found = taken(content.replace(given, (date + time).encode()))
        assert isinstance(found, CommonLine), date


def taken(content: bytes) -> object:
    read = common_reader(b"x", USUAL)
    assert read is not None
    return read(bytearray(content), 0, 1)


@pytest.mark.parametrize(
    "options",
    [
        CaptureOptions(keep_www=True),
        CaptureOptions(minimal=True),
        CaptureOptions(unsurt=True),
        CaptureOptions(post_append=True),
        CaptureOptions(records=None),
        CaptureOptions(records=frozenset((b"revisit",))),
    ],
    ids=["keep-www", "minimal", "unsurt", "post-append", "all-records", "revisits"],
)
def test_options_have_the_same_effect(options: CaptureOptions, sample_archives: list[Path]) -> None:
    for path in gzip_files(sample_archives)[::10]:
        data = path.read_bytes()
        assert indexed(data, options) == in_python(data, options), path
        assert indexed(data, options, "cdx11") == in_python(data, options, "cdx11"), path


@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(contents(), min_size=1, max_size=3))
def test_any_records_get_the_same_lines(records: list[bytes]) -> None:
    data = archive(records)
    assert indexed(data) == in_python(data)


@pytest.mark.parametrize("line_format", ["cdxj", "cdx11"])
def test_records_with_one_odd_value_get_the_same_line(line_format: str) -> None:
    records = one_odd()
    for record in records:
        data = archive([record])
        assert indexed(data, line_format=line_format) == in_python(data, line_format=line_format), record
    assert sum(isinstance(taken(record), CommonLine) for record in records) > len(records) / 3


def test_a_host_without_a_key_is_left_to_python() -> None:
    assert taken(COMMON % b"http://example.com:99999/a") is Outcome.NOT_COMMON


def test_wrong_arguments_are_refused() -> None:
    assert native.read is not None
    wrong: list[tuple[Any, ...]] = [(), ((), b"", 0, 0), (FACTS, "text", 0, 0), (FACTS, b"", "0", 0)]
    for arguments in wrong:
        with pytest.raises(TypeError):
            native.read(*arguments)


def made(content: bytes, filename: bytes = b"", offset: int = 0) -> CommonLine:
    read = common_reader(filename, USUAL)
    assert read is not None
    found = read(bytearray(content), offset, 9)
    assert isinstance(found, CommonLine)
    return found


def test_what_others_know_of_a_compiled_line_is_what_the_reader_writes() -> None:
    """`copy` and its check look at parts of the line and of the record. See cdx_lines.py, match_record.py and line.c."""
    url = b"http://example.com/a"
    response = (COMMON % url).replace(b"200 OK", b"200 OK\r\nContent-Type: text/html; charset=x")
    response = response.replace(b"Length: 21", b"Length: 57")
    revisit = response.replace(b"WARC-Type: response", b"warc-type: revisit")
    for content in (response, revisit):
        found = made(content)
        line = found.start + found.end
        later = made(content, b"\xc3\xa9.warc.gz", 17)
        assert with_place(line, 17, quote(b"\xc3\xa9.warc.gz")[1:-1]) == later.start + later.end
        assert up_to_digest(found.start) == up_to_digest(later.start)
        assert up_to_digest(found.start).endswith(b'", "digest": "YCTSX5TRBTYS76C5PKEW43YWT2AWUSSM"')
        assert url_in(found.start) == url
        assert bytes(common_payload(bytearray(content))) == b"Hi"
        assert is_of_revisit(line) == is_revisit(bytearray(content)) == (content is revisit)


FACTS: tuple[Any, ...] = ({}, b"x", len)
COMMON = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2024-05-17T23:41:22Z\r\nWARC-Record-ID: <urn:x:1>\r\n"
    b"WARC-Target-URI: %b\r\nWARC-Payload-Digest: sha1:YCTSX5TRBTYS76C5PKEW43YWT2AWUSSM\r\nContent-Length: 21\r\n\r\n"
    b"HTTP/1.1 200 OK\r\n\r\nHi\r\n\r\n"
)

_FUZZ = """
import ctypes, random, sys
from _native import read
from cdxmill.capture import Outcome
class Origins(dict):
    __missing__ = lambda self, origin: b""
origins = Origins({b"http://example.com": b"com,example)"})
random = random.Random(7)
seeds = [bytes.fromhex(line) for line in open(sys.argv[1])]
taken = 0
for number in range(15000):
    data = bytearray(random.choice(seeds))
    for _ in range(random.choice((0, 1, 2, 5))):
        at = random.randrange(len(data) + 1)
        data[at : at + random.choice((0, 1, 1, 9))] = random.choice((b"", b"\\n", b"\\r\\n", b":", b"&", b"9", b'"', bytes([random.randrange(256)])))
    if not random.randrange(4):
        del data[random.randrange(len(data) + 1) :]
    exact = (ctypes.c_char * len(data)).from_buffer_copy(data)  # a bytearray has a NUL after its last byte
    taken += read((origins, b"x", lambda content, start, end: b"D"), exact, 1, 2) is not Outcome.NOT_COMMON
assert taken > 3000, taken
"""


def test_no_byte_outside_the_record_is_read(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds"
    drawn = random.Random(5)
    blocks = [COMMON % b"http://example.com/a?b=1&a=2", COMMON % b"http://example.com/", *_metadata()]
    seeds.write_text("".join(block.hex() + "\n" for block in drawn.sample(blocks, len(blocks))))
    run_sanitized(_FUZZ, tmp_path, str(seeds))


def _metadata() -> list[bytes]:
    notes = b'fetchTimeMs: 9\r\ncharset-detected: UTF-8\r\nlanguages-cld2: {"l":[{"code-iso-639-3":"eng"}]}\r\n\r\n'
    head = b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Concurrent-To: <urn:x:1>\r\nContent-Type: application/warc-fields\r\n"
    length = b"Content-Length: %d\r\n\r\n" % len(notes)
    return [head % kind + length + notes + b"\r\n\r\n" for kind in (b"metadata", b"request")]
