"""A whole block with sections: its text, if the sections, the table and the gzip member all say the same."""

from __future__ import annotations

import zlib

import pytest

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.sections import format_header, format_trailer, header_bytes
from cdxmill.formats.clusters.zipnum import BlockRef, key_of
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.window import MemberError, Window
from cdxmill.stages.zipnum import block_pieces, sectioned_block
from cdxmill.stages.zipnum.block_pieces import BlockPieces, Tables
from cdxmill.stages.zipnum.block_text import BlockText
from cdxmill.stages.zipnum.check_shard import Fault, ShardBlock, read_texts
from cdxmill.stages.zipnum.secondary_index import DamagedCluster
from cdxmill.stages.zipnum.sectioned_block import SectionedBlock, read_sectioned

LINES = [b"com,h%05d)/ 2020 %020x" % (number, number**4) for number in range(900)]
TEXT = text_of(LINES)
BLOCK = Compressor("zlib", 6, 300).compress_block(len(LINES), TEXT, key_of(LINES[0]))
PLAIN = Compressor("zlib", 6, 0).compress(TEXT)


def window_of(data: bytes) -> Window:
    return Window(lambda offset, size: data[offset : offset + size], 1 << 12)


@pytest.mark.parametrize("before", [b"", b"x" * 5000])
@pytest.mark.parametrize("behind", [b"", PLAIN])
def test_the_text_of_a_block_is_read_with_the_starts_of_its_sections(before: bytes, behind: bytes) -> None:
    found = read_sectioned(window_of(before + BLOCK + behind), len(before))
    assert found is not None
    assert (found.text, found.end) == (TEXT, len(before) + len(BLOCK))
    assert len(found.starts) == 3
    assert found.starts == sorted({0, *found.starts})
    assert all(TEXT[start - 1 : start] == b"\n" for start in found.starts[1:])


@pytest.mark.parametrize(
    "data", [PLAIN, BLOCK[:-1], BLOCK[:-300], BLOCK[:100], BLOCK[:11], b"", b"garbage" * 9]
)
def test_what_is_no_whole_block_with_sections_is_left_to_others(data: bytes) -> None:
    assert read_sectioned(window_of(data), 0) is None


def packed(text: bytes, mode: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(text) + packer.flush(mode)


def stored(text: bytes, last: bytes) -> bytes:
    """Text as it is, and an empty block of deflate, which may be the last."""
    size = len(text)
    return (
        b"\0"
        + size.to_bytes(2, "little")
        + (0xFFFF - size).to_bytes(2, "little")
        + text
        + last
        + b"\0\0\xff\xff"
    )


def block_of(sections: list[bytes], keys: list[bytes], text: bytes) -> bytes:
    checksums = list(map(zlib.crc32, sections))
    end = format_trailer(zlib.crc32(text), len(text))
    return format_header(sections, keys, checksums) + b"".join(sections) + end


FULL, END = zlib.Z_FULL_FLUSH, zlib.Z_FINISH
ONE, TWO = b"com,a)/ 1 {}\n", b"com,b)/ 1 {}\n"
KEYS = [b"com,a)/ 1", b"com,b"]


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (block_of([packed(ONE, FULL), packed(TWO, END)], KEYS, ONE + TWO), None),
        (block_of([packed(ONE, FULL), packed(TWO, END)], KEYS, ONE + ONE), "not the text of its gzip member"),
        (block_of([packed(ONE, END), packed(TWO, END)], KEYS, ONE + TWO), "its section 1 does not end where"),
        (
            block_of([packed(ONE, FULL), packed(TWO, FULL)], KEYS, ONE + TWO),
            "its section 2 does not end where",
        ),
        (
            block_of([packed(ONE, FULL), packed(TWO, END) + b"x"], KEYS, ONE + TWO),
            "its section 2 does not end",
        ),
        (block_of([stored(ONE, b"\0"), packed(TWO, END)], KEYS, ONE + TWO), None),
        (block_of([stored(ONE, b"\1"), packed(TWO, END)], KEYS, ONE + TWO), "its section 1 does not end"),
        (block_of([packed(ONE, FULL)[:-1], packed(TWO, END)], KEYS, ONE + TWO), "its section 1 does not end"),
        (block_of([packed(ONE, FULL), b"\xff\xff"], KEYS, ONE + TWO), "its section 2 is corrupt"),
        (
            block_of([packed(ONE, FULL), packed(TWO, END)], [KEYS[0], b"com,b)"], ONE + TWO),
            "not those of its lines",
        ),
        (
            block_of([packed(ONE, FULL), packed(TWO, END)], [b"com,a)/", KEYS[1]], ONE + TWO),
            "not those of its lines",
        ),
        (
            block_of([packed(ONE[:-1], FULL), packed(b"\n" + TWO, END)], KEYS, ONE + TWO),
            "does not begin with a line",
        ),
        (
            block_of([packed(ONE + TWO, FULL), packed(b"", END)], KEYS, ONE + TWO),
            "does not begin with a line",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_table_that_contradicts_its_block_is_an_error(block: bytes, reason: str | None) -> None:
    if reason is None:
        assert read_sectioned(window_of(block), 0) == SectionedBlock(ONE + TWO, len(block), [0, len(ONE)])
        return
    with pytest.raises(MemberError, match=reason):
        read_sectioned(window_of(block), 0)


@pytest.mark.parametrize(
    ("sections", "keys", "reason"),
    [
        ([packed(ONE, FULL), packed(TWO, END)], KEYS, None),
        ([packed(ONE, END), packed(TWO, END)], KEYS, "its section 1 does not end where its table says"),
        ([packed(ONE, FULL), packed(TWO, FULL)], KEYS, "its section 2 does not end where its table says"),
        ([packed(ONE, FULL), packed(TWO, END) + b"x"], KEYS, "its section 2 does not end where"),
        ([packed(ONE, FULL), b"\xff\xff"], KEYS, "the block is corrupt"),
        (
            [packed(ONE, FULL), packed(TWO, END)],
            [KEYS[0], b"com,aa"],
            "does not begin with its key b'com,aa'",
        ),
        ([packed(ONE, FULL), packed(TWO, END)], [b"com,a)/ 2", KEYS[1]], "with its key b'com,a\\)/ 1'"),
    ],
)
@pytest.mark.parametrize("is_exact", [True, False])
def test_a_search_refuses_sections_that_their_table_contradicts(
    sections: list[bytes],
    keys: list[bytes],
    reason: str | None,
    is_exact: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if the last piece of a section is as long as others."""
    data = block_of(sections, keys, ONE + TWO)
    if is_exact:
        monkeypatch.setattr(block_pieces, "_SECTION_PIECE", len(sections[1]))
    source = BlockPieces(
        BlockRef(key_of(ONE), b"s", 0, len(data)), lambda _, at, size: data[at : at + size], Tables()
    )
    if reason is None:
        assert BlockText(source).between(b"com,a)/", b"com,b)/!") == ([ONE[:-1], TWO[:-1]], False)
        return
    with pytest.raises(DamagedCluster, match=reason):
        BlockText(source).between(b"com,a)/", b"com,b)/!")


@pytest.mark.parametrize(
    "place", [20, header_bytes(BLOCK) - 1, header_bytes(BLOCK) + 9, len(BLOCK) - 20, len(BLOCK) - 1]
)
def test_a_changed_byte_is_an_error_and_the_next_block_is_read(place: int) -> None:
    data = BLOCK[:place] + bytes([BLOCK[place] ^ 1]) + BLOCK[place + 1 :]
    with pytest.raises(MemberError):
        read_sectioned(window_of(data), 0)
    shard = data + PLAIN
    found = list(read_texts(lambda pos, size: shard[pos : pos + size], {0: len(data), len(data): len(PLAIN)}))
    assert [type(one) for one in found] == [Fault, ShardBlock]
    assert found[1] == ShardBlock(2, len(data), len(PLAIN), TEXT, [0])


def test_a_block_has_a_largest_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sectioned_block, "MAX_BLOCK", len(TEXT))
    assert read_sectioned(window_of(BLOCK), 0) is not None
    monkeypatch.setattr(sectioned_block, "MAX_BLOCK", len(TEXT) - 1)
    with pytest.raises(MemberError, match="it has more than"):
        read_sectioned(window_of(BLOCK), 0)


def test_a_table_that_names_more_bytes_than_a_block_may_have_is_left_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it names is not read."""
    end = len(BLOCK) - 8
    assert end < len(TEXT)
    monkeypatch.setattr(sectioned_block, "MAX_BLOCK", end - 1)
    assert read_sectioned(window_of(BLOCK), 0) is None
    monkeypatch.setattr(sectioned_block, "MAX_BLOCK", end)
    with pytest.raises(MemberError, match="it has more than"):
        read_sectioned(window_of(BLOCK), 0)


def test_a_section_has_the_checksum_of_its_table() -> None:
    sections = [packed(ONE, FULL), packed(TWO, END)]
    checksums = list(map(zlib.crc32, sections))
    trailer = format_trailer(zlib.crc32(ONE + TWO), len(ONE + TWO))
    for number in range(2):
        wrong = [checksum ^ (index == number) for index, checksum in enumerate(checksums)]
        block = format_header(sections, KEYS, wrong) + b"".join(sections) + trailer
        with pytest.raises(
            MemberError, match=f"the CRC32 of its section {number + 1} does not match"
        ) as raised:
            read_sectioned(window_of(block), 0)
        assert raised.value.reached == header_bytes(block) + number * len(sections[0])
