"""The table of the sections of a block: both ways, and with any byte changed."""

from __future__ import annotations

import sys
import zlib
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.clusters.compressor import Compressor, checked_compressor
from cdxmill.formats.clusters.sections import (
    MOST_SECTIONS,
    TRAILER,
    Sections,
    cut_sections,
    format_header,
    format_trailer,
    header_bytes,
    parse_sections,
)
from cdxmill.formats.clusters.zipnum import key_of

line = st.binary(min_size=1, max_size=30).filter(lambda line: b"\n" not in line)
long_line = st.binary(min_size=250, max_size=260).map(lambda end: b"k" * 300 + end.replace(b"\n", b"-"))
lines_of_blocks = st.lists(line | long_line, unique=True, min_size=1, max_size=200).map(sorted)
compressors = st.builds(
    Compressor, st.sampled_from(["zlib", "zlib-ng"]), st.integers(1, 9), st.integers(1, 50)
)


def block_of(lines: list[bytes], compressor: Compressor) -> bytes:
    text = b"".join(line + b"\n" for line in lines)
    return compressor.compress_block(len(lines), text, key_of(lines[0]))


@given(lines_of_blocks, compressors)
def test_each_section_alone_has_the_lines_from_its_key_on(lines: list[bytes], compressor: Compressor) -> None:
    block = block_of(lines, compressor)
    assert zlib.decompress(block, 31).split(b"\n")[:-1] == lines
    found = parse_sections(block, len(block))
    if found is None:
        assert (
            len(cut_sections(b"".join(line + b"\n" for line in lines), len(lines), compressor.section_lines))
            == 1
        )
        return
    assert found.starts[0] == header_bytes(block)
    texts = [
        zlib.decompressobj(-15).decompress(block[start:stop]).split(b"\n")[:-1]
        for start, stop in pairwise(found.starts)
    ]
    assert [line for part in texts for line in part] == lines
    assert found.keys[0] == key_of(lines[0])[:255]
    for before, part, key in zip(texts, texts[1:], found.keys[1:], strict=False):
        assert before[-1] < key <= part[0]
        assert key[:-1] <= before[-1]


@given(lines_of_blocks, st.integers(1, 50))
def test_a_block_has_few_sections_of_about_equal_size(lines: list[bytes], section_lines: int) -> None:
    text = b"".join(line + b"\n" for line in lines)
    starts = cut_sections(text, len(lines), section_lines)
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert len(starts) <= min(MOST_SECTIONS, -(-len(lines) // section_lines))
    assert all(text[start - 1 : start] == b"\n" for start in starts[1:])


@given(lines_of_blocks, st.data())
def test_every_changed_byte_of_a_table_is_found(lines: list[bytes], data: st.DataObject) -> None:
    block = block_of(lines, Compressor("zlib", 1, 1))
    whole = parse_sections(block, len(block))
    if whole is None:
        return
    changed = bytearray(block)
    changed[data.draw(st.integers(16, header_bytes(block) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match="its table of sections"):
        parse_sections(bytes(changed), len(block))
    with pytest.raises(ValueError, match="its table of sections is invalid"):
        parse_sections(block, len(block) + 1)


@pytest.mark.parametrize(
    "extra",
    [b"", b"ZS", b"ZS\x05\0", b"ZS\xff\xff", b"BC\x02\0\x01\x02", b"ZS\0\0", b"ZS\x02\0\0\0", b"ZS\x01\0a"],
)
def test_other_extra_fields_are_no_tables(extra: bytes) -> None:
    head = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff" + len(extra).to_bytes(2, "little") + extra
    try:
        assert parse_sections(head + b"\0" * 50, 100) is None
    except ValueError as error:
        assert "table of sections" in str(error)


def test_sections_are_chosen_by_their_keys() -> None:
    found = Sections([b"b", b"d", b"f"], [50, 60, 70, 80], [0, 0, 0])
    ranges = {
        (b"a", b"b"): (0, 1),
        (b"a", b"z"): (0, 3),
        (b"d", b"f"): (1, 2),
        (b"c", b"d"): (0, 1),
        (b"c", b"d!"): (0, 2),
        (b"x", b"z"): (2, 3),
    }
    assert {keys: found.containing(*keys) for keys in ranges} == ranges
    assert TRAILER == 8


def test_libdeflate_has_no_sections() -> None:
    assert checked_compressor("libdeflate") == ("libdeflate", 6, 0)
    assert checked_compressor("zlib-ng") == ("zlib-ng", 5, 500)
    assert checked_compressor("zlib", None, 0) == ("zlib", 6, 0)
    with pytest.raises(ValueError, match="libdeflate cannot make sections"):
        checked_compressor("libdeflate", 6, 300)
    for level in (0, 13):
        with pytest.raises(ValueError, match=f"invalid level {level}: libdeflate has levels 1 to 12"):
            checked_compressor("libdeflate", level)
    with pytest.raises(ValueError, match="invalid compressor 'xz': expected zlib-ng, libdeflate or zlib"):
        checked_compressor("xz")


@pytest.mark.parametrize(("library", "module"), [("zlib-ng", "zlib_ng"), ("libdeflate", "deflate")])
def test_a_compressor_that_is_not_installed_is_refused(
    library: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=r"not installed"):
        checked_compressor(library)


def number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little")


def test_a_header_has_the_bytes_of_the_specification() -> None:
    """docs/formats/zipnum.md"""
    sections, keys, checksums = [b"abc", b"defgh"], [b"com,a", b"com,b"], [7, 1 << 31]
    table = number(2, 2) + number(3, 4) + number(7, 4) + number(5, 4) + number(1 << 31, 4) + b"com,a\ncom,b"
    field = b"ZS" + number(len(table) + 4, 2) + table + number(crc32(table), 4)
    header = bytes.fromhex("1f8b08040000000000ff") + number(len(field), 2) + field
    assert format_header(sections, keys, checksums) == header
    size = len(header)
    assert header_bytes(header[:12]) == size
    assert parse_sections(header) == Sections(keys, [size, size + 3, size + 8], (7, 1 << 31))
    assert header_bytes(header[:11]) == header_bytes(b"\x1f\x8b\x08\0" + header[4:]) == 0
    assert parse_sections(header[:-1]) is None
    assert format_trailer(1, (1 << 32) + 5) == number(1, 4) + number(5, 4)


def sealed(table: bytes) -> bytes:
    """A header with this table and its checksum."""
    field = b"ZS" + number(len(table) + 4, 2) + table + number(crc32(table), 4)
    return bytes.fromhex("1f8b08040000000000ff") + number(len(field), 2) + field


@pytest.mark.parametrize(
    "table",
    [
        number(0, 2),
        number(0, 2) + b"a",
        number(1, 2) + number(0, 4) + number(7, 4) + b"a",
        number(1, 2) + number(3, 4) + number(7, 4) + b"a\nb",
        number(2, 2) + (number(3, 4) + number(7, 4)) * 2 + b"a",
        number(2, 2) + (number(3, 4) + number(7, 4)) * 2 + b"b\na",
    ],
    ids=bytes.hex,
)
def test_a_table_with_a_valid_checksum_may_be_invalid(table: bytes) -> None:
    with pytest.raises(ValueError, match="its table of sections is invalid"):
        parse_sections(sealed(table))


def test_a_table_of_one_byte_is_corrupt() -> None:
    with pytest.raises(ValueError, match="does not match"):
        parse_sections(sealed(b"a"))


def test_a_key_of_more_than_255_bytes_is_cut_or_begins_no_section() -> None:
    key = b"k" * 254
    lines = [key + b"k" * 10, key + b"m", key + b"mm" * 5]
    text = b"".join(line + b"\n" for line in lines)
    block = Compressor("zlib", 6, 1).compress_block(3, text, lines[0])
    found = parse_sections(block, len(block))
    assert found is not None
    assert found.keys == [b"k" * 255, key + b"m"]
    assert zlib.decompress(block, 31) == text
