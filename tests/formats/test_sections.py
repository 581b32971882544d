"""The table of the sections of a block: both ways, and with any byte changed."""

from __future__ import annotations

import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.clusters.compressor import Compressor, checked_compressor
from cdxmill.formats.clusters.sections import (
    MOST_SECTIONS,
    TRAILER,
    Sections,
    cut_sections,
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
