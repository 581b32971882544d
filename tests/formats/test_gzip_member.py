"""Gzip members against Python's own zlib."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cdxmill.formats.archives.framing import header_size
from cdxmill.formats.archives.small_member import inflate_member, inflate_members, inflate_next

names = st.binary(max_size=20).filter(lambda name: b"\0" not in name)
contents = st.binary(max_size=60) | st.binary(min_size=1, max_size=3).map(lambda part: part * 400)


@st.composite
def headers(draw: st.DrawFn) -> bytes:
    """Headers with any of the optional parts (RFC 1952, 2.3.1)."""
    extra, name, comment = (draw(st.none() | part) for part in (st.binary(max_size=20), names, names))
    has_crc = draw(st.booleans())
    flags = 4 * (extra is not None) + 8 * (name is not None) + 16 * (comment is not None) + 2 * has_crc
    data = b"\x1f\x8b\x08" + bytes([flags | draw(st.booleans())]) + draw(st.binary(min_size=6, max_size=6))
    data += len(extra).to_bytes(2, "little") + extra if extra is not None else b""
    data += b"".join(text + b"\0" for text in (name, comment) if text is not None)
    return data + (zlib.crc32(data) & 0xFFFF).to_bytes(2, "little") * has_crc


def member_of(header: bytes, content: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    trailer = zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little")
    return header + packer.compress(content) + packer.flush() + trailer


members = st.builds(member_of, headers(), contents)


def first_member(data: bytes) -> tuple[bytes, int]:
    """The content of the member at the start, and its size. Raises zlib.error."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    content = inflater.decompress(data)
    if not inflater.eof:
        raise zlib.error("cut")
    return content, len(data) - len(inflater.unused_data)


@given(headers(), st.binary(max_size=20))
def test_a_header_ends_behind_its_optional_parts(header: bytes, behind: bytes) -> None:
    assert header_size(header + behind) == len(header)


@given(headers(), st.data())
def test_a_truncated_header_has_no_size(header: bytes, data: st.DataObject) -> None:
    assert header_size(header[: data.draw(st.integers(0, len(header) - 1))]) is None


@given(headers(), st.data())
def test_a_corrupt_magic_is_not_a_header(header: bytes, data: st.DataObject) -> None:
    damaged = bytearray(header)
    damaged[data.draw(st.integers(0, 2))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match="no gzip member"):
        header_size(damaged)


@pytest.mark.parametrize("flags", [0x20, 0x40, 0x80, 0xE0 | 31])
def test_a_header_with_reserved_flags_is_corrupt(flags: int) -> None:
    """RFC 1952 demands an error: they may announce parts of the header that nobody knows."""
    with pytest.raises(ValueError, match="reserved flags are set"):
        header_size(b"\x1f\x8b\x08" + bytes([flags]) + bytes(16))


@given(headers(), st.integers(0, 15))
def test_a_header_with_a_wrong_checksum_is_corrupt(header: bytes, bit: int) -> None:
    plain = header[:3] + bytes([header[3] | 2]) + header[4 : len(header) - (header[3] & 2)]
    checksum = (zlib.crc32(plain) & 0xFFFF) ^ 1 << bit
    with pytest.raises(ValueError, match=r"^gzip header CRC16 mismatch$"):
        header_size(plain + checksum.to_bytes(2, "little"))


@given(members, st.binary(max_size=30) | members, st.data())
def test_the_quick_way_gives_what_zlib_gives(member: bytes, behind: bytes, data: st.DataObject) -> None:
    whole = bytearray(member + behind)
    for _ in range(data.draw(st.integers(0, 2))):
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = inflate_next(bytes(whole), 0, 1 << 20)
    assert found is None or (bytes(found[0]), found[1]) in acceptable(bytes(whole), member)
    several = list(inflate_members(bytes(whole), 0, 1 << 20))
    assert [(bytes(content), end) for content, end in several[:1]] == (
        [(bytes(found[0]), found[1])] if found else []
    )


def acceptable(data: bytes, member: bytes) -> list[tuple[bytes, int]]:
    """libdeflate reads the length codes 286 and 287, which no writer uses, as 285; then the content is right."""
    try:
        return [first_member(data)]
    except zlib.error:
        return [first_member(member)]


alike = st.builds(lambda content: member_of(b"\x1f\x8b\x08" + bytes(7), content), contents)


@given(st.lists(alike | members, min_size=1, max_size=5), st.data())
def test_consecutive_members_are_what_zlib_gives(several: list[bytes], data: st.DataObject) -> None:
    whole = bytearray(b"".join(several))
    for _ in range(data.draw(st.integers(0, 2))):
        start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
        at = data.draw(st.integers(0, len(whole)))
        whole[at:at] = whole[start:stop]
    at = 0
    for content, end in inflate_members(bytes(whole), 0, 1 << 20):
        assert (bytes(content), end - at) == first_member(bytes(whole[at:]))
        at = end


@pytest.mark.parametrize(
    "behind",
    [
        member_of(b"\x1f\x8b\x08\0" + b"time" + b"\0\3", b"abc" * 99),  # the same content again
        b"garbage" + (297).to_bytes(4, "little"),
        b"garbage" + zlib.crc32(b"abc" * 99).to_bytes(4, "little") + (297).to_bytes(4, "little"),
        b"\0" * 9,
    ],
)
def test_bytes_between_members_are_never_read_as_part_of_a_member(behind: bytes) -> None:
    """Also if they end with the length, or with the whole trailer, of the member before."""
    member = member_of(b"\x1f\x8b\x08" + bytes(7), b"abc" * 99)
    assert [end for _, end in inflate_members(member * 2 + behind + member, 0, 1 << 20)] == [len(member)]


def test_a_length_that_occurs_by_chance_loses_no_member() -> None:
    content = bytes(range(256)) * 40 + (10_244).to_bytes(4, "little")
    packer = zlib.compressobj(
        0, zlib.DEFLATED, -zlib.MAX_WBITS
    )  # stored, so that the member contains the content's bytes
    trailer = zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little")
    member = b"\x1f\x8b\x08" + bytes(7) + packer.compress(content) + packer.flush() + trailer
    assert member.count(trailer[4:]) == 2
    assert [end for _, end in inflate_members(member * 3, 0, 1 << 20)] == [len(member), 2 * len(member)]


@given(members, st.integers(0, 2000))
def test_a_member_alone_is_inflated_whole_up_to_the_limit(member: bytes, limit: int) -> None:
    assume(b"\x1f\x8b\x08" not in member[3:])  # an assumed end that is too early is left to the careful way
    content, _ = first_member(member)
    found = inflate_next(member, 0, limit)
    has_checksum = member[3] & 2  # of the header: left to the careful way
    assert (found and found[0]) == (content if 0 < len(content) <= limit and not has_checksum else None)


@given(members, st.binary(min_size=1, max_size=9))
def test_only_exactly_one_member_is_inflated(member: bytes, more: bytes) -> None:
    content, _ = first_member(member)
    is_quick = content and not member[3] & 2
    for limit, wanted in ((len(content), is_quick), (len(content) - 1, False)):
        assert inflate_member(member, limit) == (content if wanted else None)
    for size in range(len(member)):
        assert inflate_member(member[:size], 1 << 20) is None
    assert inflate_member(member + more, 1 << 20) is None


@given(members, st.data())
def test_a_truncated_or_flipped_member_is_never_inflated(member: bytes, data: st.DataObject) -> None:
    start = header_size(member) or 0
    damaged = bytearray(member)
    damaged[data.draw(st.integers(start, len(member) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = inflate_next(bytes(damaged), 0, 1 << 20)
    assert found is None or found[0] == first_member(member)[0]
    assert inflate_next(member[: data.draw(st.integers(0, len(member) - 1))], 0, 1 << 20) is None


@pytest.mark.parametrize("flags", [0, 1, 2, 3])
def test_members_whose_header_has_a_checksum_are_left_to_others(flags: int) -> None:
    header = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + (b"\0\0" if flags & 2 else b"")
    member = member_of(header, b"some text")
    found = [(bytes(data), end) for data, end in inflate_members(member * 3, 0, 100)]
    if flags & 2:
        assert found == []
    elif flags:  # only headers without any option are searched together
        assert found == [(b"some text", len(member))]
    else:
        assert found == [(b"some text", len(member) * number) for number in (1, 2)]
