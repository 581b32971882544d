"""Files made to mislead a reader. A docstring says what went wrong, or could."""

from __future__ import annotations

import gzip
import os
import struct
import zlib

import pytest

from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import MAX_DAMAGE, index_archive
from cdxmill.stages.records.read_records import read_records

from .accounting import findings
from .read_back import name_in
from .sources import CRLF, gzip_member, zstd_frame

NAME = "<urn:uuid:1>"


def record(
    block: bytes = b"hello", more: bytes = b"", name: str = NAME, length: bytes | None = None
) -> bytes:
    """A WARC record with its closing line ends; `more` are header lines, `length` replaces the correct Content-Length."""
    size = length if length is not None else str(len(block)).encode()
    return (
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://example.org/\r\n"
        b"WARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Record-ID: %s\r\n%sContent-Length: %s\r\n\r\n%s\r\n\r\n"
        % (name.encode(), more, size, block)
    )


def names(data: bytes) -> list[str]:
    """The names of the records at the ranges of the lines, read by warcio."""
    return [name_in(data[begin : begin + length]) for begin, length in findings(data).lines]


def reasons(data: bytes) -> list[str]:
    """The reported reasons, without the number of skipped bytes."""
    return [damage.reason.split(";")[0] for damage in findings(data).damage]


PACKERS = {"plain": bytes, "gz": gzip_member, "zst": zstd_frame}
packed = pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)


def test_a_member_does_not_swallow_one_of_its_size_whose_magic_is_damaged() -> None:
    """The assumed end of a member was accepted if the size before it was right."""
    one, two = (gzip_member(record(name=f"<urn:uuid:{number}>")) for number in (1, 2))
    data = one + b"\0" + two[1:] + one
    assert names(data) == [NAME, NAME]
    assert reasons(data) == ["no gzip member starts here"]


def test_every_optional_field_of_a_gzip_header_is_read() -> None:
    body = gzip_member(record())[10:]
    fields = b"\x05\0extra" + b"name\0" + b"comment\0"
    header = b"\x1f\x8b\x08\x1f" + bytes(6) + fields
    header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    assert names(header + body) == [NAME]
    assert reasons(header[:-1] + b"\0" + body) == ["gzip header CRC16 mismatch"]


def test_an_archive_inside_a_record_gets_no_lines() -> None:
    inner = b"".join(gzip_member(record(name=f"<urn:uuid:{number}>")) for number in (7, 8))
    for level in (0, 9):  # level 0 leaves the inner members as they are
        assert names(gzip_member(record(inner), level)) == [NAME]
    assert names(zstd_frame(record(zstd_frame(record(name="<urn:uuid:7>"))))) == [NAME]
    assert names(record(record(name="<urn:uuid:7>"))) == [NAME]


def test_an_archive_inside_a_record_is_skipped_if_the_outer_checksum_is_wrong() -> None:
    inner = b"".join(gzip_member(record(name=f"<urn:uuid:{number}>")) for number in (7, 8))
    outer = gzip_member(record(inner), 0)
    data = outer[:-8] + b"\0\0\0\0" + outer[-4:] + gzip_member(record())
    assert names(data) == [NAME]
    assert reasons(data) == ["gzip CRC32 mismatch"]


def test_a_truncated_member_does_not_hide_its_copy() -> None:
    """A download that was restarted inside the file: both members inflate as one, up to the copy's end."""
    member = gzip_member(record(b"x" * 50 + os.urandom(200) + b"y" * 50))
    for cut in range(20, len(member) - 1):
        assert names(member[:cut] + member) == [NAME], cut


@packed
def test_members_of_all_sizes_around_the_pieces_of_reading(pack: type[bytes]) -> None:
    for size in (0, 1, 65536, 262144, 524288, 16 << 20, 17 << 20):
        block = bytes(size - 8) + os.urandom(8) if size > 8 else bytes(size)
        data = pack(record(block)) + pack(record(name="<urn:uuid:2>"))
        assert names(data) == [NAME, "<urn:uuid:2>"], size


@packed
def test_a_large_member_that_does_not_compress(pack: type[bytes]) -> None:
    data = pack(record(os.urandom(6 << 20))) + pack(record(name="<urn:uuid:2>"))
    assert names(data) == [NAME, "<urn:uuid:2>"]


@packed
def test_a_record_header_of_any_size_up_to_a_mebibyte(pack: type[bytes]) -> None:
    for size in (5000, 70_000, 300_000, 1_000_000):
        data = pack(record(more=b"X-Long: %s\r\n" % (b"x" * size))) + pack(record(name="<urn:uuid:2>"))
        assert names(data) == [NAME, "<urn:uuid:2>"], size
    data = pack(record(more=b"X-Long: %s\r\n" % (b"x" * (2 << 20)))) + pack(record(name="<urn:uuid:2>"))
    assert names(data) == ["<urn:uuid:2>"]
    assert reasons(data) == ["incomplete record header (no blank line ends it)"]


@packed
def test_an_arc_header_line_of_up_to_64_kib(pack: type[bytes]) -> None:
    line = b"http://example.org/%s 1.2.3.4 20200101000000 text/plain 5\nhello\n"
    assert len(findings(pack(line % (b"x" * 60_000)) + pack(line % b"")).lines) == 2
    assert len(findings(pack(line % (b"x" * 70_000)) + pack(line % b"")).lines) == 1


@packed
@pytest.mark.parametrize(
    "length", ["-5", "4_6", "+5", "5.0", "0x5", "٣", "5 5", "1" * 30, "1" * 5000, "", "9" * 18]
)
def test_a_wrong_content_length_is_reported(pack: type[bytes], length: str) -> None:
    data = pack(record(length=length.encode())) + pack(record(name="<urn:uuid:2>"))
    assert names(data) == ["<urn:uuid:2>"]
    assert len(reasons(data)) == 1 and "Content-Length" in reasons(data)[0]


@packed
@pytest.mark.parametrize("length", [b" 5", b"5  ", b"\t5", b"0005"])
def test_a_length_with_space_or_zeros_is_read(pack: type[bytes], length: bytes) -> None:
    assert names(pack(record(length=length))) == [NAME]


@pytest.mark.parametrize("pack", [gzip_member, zstd_frame], ids=["gz", "zst"])
def test_a_second_record_after_many_blank_lines_is_reported(pack: type[bytes]) -> None:
    """Only the first 256 KiB after a block were checked."""
    data = pack(record() + b"\r\n" * 200_000 + record(name="<urn:uuid:2>"))
    assert findings(data).lines == []
    (reason,) = reasons(data)
    assert reason.endswith("contains more than one record: 2")


@pytest.mark.parametrize("pack", [gzip_member, zstd_frame], ids=["gz", "zst"])
def test_a_record_after_many_blank_lines_is_not_skipped(pack: type[bytes]) -> None:
    """A member whose first piece is line ends was treated as a member without content."""
    data = pack(b"\r\n" * 500_000 + record()) + pack(record(name="<urn:uuid:2>"))
    assert names(data) == ["<urn:uuid:2>"]
    assert reasons(data) == ["no WARC or ARC record starts here"]


def test_a_frame_of_garbage_after_a_frame_of_line_ends_is_reported() -> None:
    data = zstd_frame(CRLF) + zstd_frame(b"garbage") + zstd_frame(record())
    assert names(data) == [NAME]
    assert reasons(data) == ["no WARC or ARC record starts here"]


def test_a_dictionary_frame_of_gigabytes_is_refused() -> None:
    bomb = zstd_frame(bytes(100 << 20))
    data = b"\x5d\x2a\x4d\x18" + struct.pack("<I", len(bomb)) + bomb + zstd_frame(record())
    assert reasons(data) == ["cannot read the zstd dictionary (larger than 16 mib)"]


@packed
def test_a_file_that_shrinks_while_it_is_read(pack: type[bytes]) -> None:
    whole = b"".join(pack(record(os.urandom(3000))) for _ in range(3000))
    for reads in range(1, 4):
        left = reads

        def read_at(offset: int, size: int) -> bytes:
            nonlocal left
            left -= 1
            data = whole if left >= 0 else whole[: len(whole) // 2]
            return data[offset : offset + size]

        assert list(read_records(read_at))


def test_damage_is_reported_separately_up_to_a_limit() -> None:
    data = record(length=b"no") * (MAX_DAMAGE + 5) + record()
    indexer = index_archive(lambda offset, size: data[offset : offset + size], b"x", CaptureOptions())
    lines = list(indexer)
    damage = indexer.findings.damage
    assert len(damage) == MAX_DAMAGE + 1
    assert damage[-1].reason.startswith("5 more errors up to offset")
    assert damage[-1].offset == MAX_DAMAGE * len(record(length=b"no"))
    assert [len(some) for some in lines] == [1]


def test_gzip_is_read_by_others_as_we_read_it() -> None:
    """The members built here are those of Python's gzip, except for the name and the time in the header."""
    assert gzip.decompress(gzip_member(record())) == record()
