"""The first bytes of a file decide how it is read; what is no archive is reported as one piece of damage."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import pytest
import zstandard

from cdxmill.capture import Damage, Record
from cdxmill.stages.records.fetch_record import Archive
from cdxmill.stages.records.parse_header import FETCH_AGAIN, FETCH_IF_MISSING, NOT_AN_ARCHIVE
from cdxmill.stages.records.read_plain import probe_header
from cdxmill.stages.records.read_records import Container, container_of, read_records
from cdxmill.stages.window import Window

from .test_changing_files import record

WARC = record(1, 50)
ARC = b"http://a.b/ 1.2.3.4 20240101000000 text/plain 4\ntext\n"
ODD_ARC = b"http://a.b/ localhost 2024 html 4\ntext\n"


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", b"text")
    return file.getvalue()


def read(data: bytes) -> list[object]:
    """The offset of each record, and the damage as a whole."""
    items = read_records(lambda pos, size: data[pos : pos + size])
    return [item.offset if isinstance(item, Record) else item for item in items]


@pytest.mark.parametrize(
    ("data", "reason", "hint"),
    [
        (b"", "the file is empty", FETCH_AGAIN),
        (bz2.compress(WARC), "bzip2 files cannot be indexed", "decompress it and index the result"),
        (lzma.compress(WARC), "xz files cannot be indexed", "decompress it and index the result"),
        (b"\x04\x22\x4d\x18" + WARC, "lz4 files cannot be indexed", "decompress it and index the result"),
        (zipped(), "zip files cannot be indexed", "unpack it and index its files, or, if it is a WACZ, let its name end in .wacz"),
        (b"some text\n" * 99, "no WARC or ARC record found", NOT_AN_ARCHIVE),
        (b"\x28\xb5\x2f", "no WARC or ARC record found", NOT_AN_ARCHIVE),
    ],
    ids=["empty", "bz2", "xz", "lz4", "zip", "text", "cut"],
)  # fmt: skip
def test_what_is_no_archive_is_said(data: bytes, reason: str, hint: str) -> None:
    assert read(data) == [Damage(0, reason, hint)]


@pytest.mark.parametrize(
    ("data", "container"),
    [
        (WARC, Container.PLAIN),
        (ARC, Container.PLAIN),
        (b"\r\n\n " + WARC, Container.PLAIN),
        (gzip.compress(WARC), Container.GZIP),
        (zstandard.compress(WARC), Container.ZST),
        (b"\x50\x2a\x4d\x18\x01\0\0\0x" + zstandard.compress(WARC), Container.ZST),
        (b"some text", None),
        (b"", None),
    ],
    ids=range(8),
)
def test_the_container_is_known_after_damage_too(data: bytes, container: Container | None) -> None:
    for before in (b"", b"?\n", b"text\n" * 99, b"http://a.b/ localhost 2024 html 4\n"):
        found = container_of(Window(lambda pos, size, data=before + data: data[pos : pos + size]))  # type: ignore[misc]
        assert found is container


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gz", "zst"])
@pytest.mark.parametrize("size", [1, 99, 70_000])
def test_damage_at_the_start_costs_no_record(pack: type[bytes], size: int) -> None:
    one = pack(WARC)
    first, *rest = read(b"?" * size + one + one)
    assert isinstance(first, Damage)
    assert (first.offset, first.reason.partition(";")[2]) == (0, f" {size} bytes skipped")
    assert rest == [size, size + len(one)]


@pytest.mark.parametrize("blanks", [1, 2, 1022, 1023, 1024])
def test_blank_lines_between_arc_records_are_no_damage(blanks: int) -> None:
    assert read(ARC[:-1] + b"\n" * blanks + ARC) == [0, len(ARC) - 1 + blanks]


@pytest.mark.parametrize("blanks", [1, 1022, 1023, 1024, 1025, 1026])
def test_what_follows_blank_lines_shows_whether_the_length_is_right(blanks: int) -> None:
    found = read(ARC[:-1] + b"\n" * blanks + b"garbage")
    assert [one for one in found if isinstance(one, int)] == []
    assert found[0].reason.startswith("wrong Content-Length (no record follows the block)")  # type: ignore[attr-defined]


@pytest.mark.parametrize("behind", [b"", ARC])
def test_the_blank_line_of_an_http_head_is_not_the_end_of_an_arc_record(behind: bytes) -> None:
    start = b"HTTP/1.1 200 OK\r\nX: y"
    bad = ARC.replace(b" 4\ntext\n", b" %d\n%b\r\n\r\nbody\n" % (len(start), start))
    damage, *rest = read(bad + behind)
    assert isinstance(damage, Damage)
    assert (damage.offset, damage.reason.partition(" (")[0]) == (0, "wrong Content-Length")
    assert rest == ([len(bad)] if behind else [])


@pytest.mark.parametrize("end", range(12, len(ARC) - 5))
def test_a_file_that_ends_within_a_header_line_of_arc_keeps_the_record_before(end: int) -> None:
    first, last = read(ARC + ARC[:end])
    assert first == 0
    assert isinstance(last, Damage)
    assert last.offset == len(ARC)


@pytest.mark.parametrize("behind", [b"", b"\n"])
def test_the_text_after_a_warc_record_is_damage_of_its_own(behind: bytes) -> None:
    first, last = read(WARC + b"some text" + behind)
    assert first == 0
    assert last == Damage(
        len(WARC), f"no WARC or ARC record starts here; {9 + len(behind)} bytes skipped", FETCH_IF_MISSING
    )


def test_a_record_with_an_odd_header_is_fetched_where_an_index_says_it_is() -> None:
    data = ARC + ODD_ARC + ARC
    archive = Archive(lambda pos, size: data[pos : pos + size])
    for length in (None, len(ODD_ARC) - 1):
        found = archive.record(len(ARC), length)
        assert b"".join(found.content()) == ODD_ARC
        assert b"".join(found.stored()) == ODD_ARC[:-1]


@pytest.mark.parametrize(
    ("data", "is_start"),
    [
        (WARC, True),
        (ARC, True),
        (ODD_ARC, False),
        (ARC.replace(b"1.2.3.4", b"localhost"), False),
        (ARC.replace(b"20240101000000 text/plain", b"2024 html"), False),
        (WARC[:20], False),
        (b"", False),
    ],
)
def test_a_header_starts_a_record_if_it_is_whole_and_that_of_arc_is_usual(
    data: bytes, is_start: bool
) -> None:
    found = probe_header(Window(lambda offset, size: data[offset : offset + size]), 0)
    assert found.is_start is is_start
    assert is_start or found.cost <= len(data)
