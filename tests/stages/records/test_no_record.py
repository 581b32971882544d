"""Why one record of an archive cannot be read: the reason names what is damaged."""

from __future__ import annotations

import gzip
import struct

import pytest
import zstandard

from cdxmill.stages.records.fetch_record import Archive, NoRecord

from .test_fetch_record import LARGE, record

ZST = zstandard.ZstdCompressor().compress
DICTIONARY = 0x184D2A5D


def after_dictionary(content: bytes, size: int | None = None) -> bytes:
    """A .warc.zst with a frame for its dictionary, whose length field may be wrong."""
    return struct.pack("<II", DICTIONARY, len(content) if size is None else size) + content + ZST(record(10))


def fetch(data: bytes, offset: int, length: int | None) -> bytes:
    found = Archive(lambda start, size: data[start : start + size]).record(offset, length)
    return b"".join(found.content())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (after_dictionary(b"\x28\xb5\x2f\xfd", 200 << 20), "the file is truncated inside a skippable frame"),
        (
            after_dictionary(b"content", 7 + len(ZST(record(10)))) + ZST(record(10)),
            "its length reaches over other frames",
        ),
    ],
)
def test_a_dictionary_that_cannot_be_read_is_the_reason(data: bytes, reason: str) -> None:
    frame = ZST(record(10))
    with pytest.raises(NoRecord, match=rf"cannot read the zstd dictionary \(.*{reason}"):
        fetch(data, len(data) - len(frame), len(frame))


@pytest.mark.parametrize("blanks", [b"\r\n", b"\r\n\r\n"])
def test_an_offset_before_a_record_is_not_its_offset(blanks: bytes) -> None:
    data = b"x" + blanks + record(10)
    assert fetch(data, 1 + len(blanks), None)
    with pytest.raises(NoRecord, match="no record starts at this offset"):
        fetch(data, 1, None)


def test_a_large_record_that_changes_while_it_is_read_is_not_given() -> None:
    data = bytearray(gzip.compress(record(LARGE), 0))
    found = Archive(lambda start, size: bytes(data[start : start + size])).record(0, len(data))
    data[LARGE // 2] ^= 1
    with pytest.raises(NoRecord):
        b"".join(found.content())


def test_the_reason_is_what_is_wrong_with_the_bytes_there() -> None:
    whole = gzip.compress(record(10))
    for data, reason in (
        (whole[:-8] + b"\0" * 4 + whole[-4:], "gzip CRC32 mismatch"),
        (whole[:-9], "the file is truncated inside a gzip"),
        (gzip.compress(b"\r\n"), "^no record found$"),
        (b"", "^the file ends before this offset$"),
        (whole * 2, r"^the range has more than one record \(another record follows\)$"),
        (whole + b"text", r"^the range has more than one record \(no gzip member starts here"),
    ):
        with pytest.raises(NoRecord, match=reason):
            fetch(data, 0, len(data))
