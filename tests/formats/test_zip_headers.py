"""The header before the bytes of a file in a zip, and its entry in the directory: what contradicts the other is refused."""

from __future__ import annotations

import pytest

from cdxmill.formats.archives.zip_directory import FETCH_AGAIN, REPACK, ZipError, data_offset, read_directory

from ..material.wacz_files import make_wacz

LOCAL, ENTRY = b"PK\x03\x04", b"PK\x01\x02"
CONTENT = b"x" * 100
ZIP = make_wacz({"a": CONTENT, "b": CONTENT})
"""Of both parts of `a`, by their offset: the header has flags 6, method 8, sizes 18 and 22, its name 30. The entry has
flags 8, method 10, sizes 20 and 24, the offset of the header 42."""


def changed(data: bytes, *changes: tuple[bytes, int, bytes]) -> bytes:
    """The zip with other bytes at offsets of the header or entry of the first file."""
    result = bytearray(data)
    for part, offset, new in changes:
        at = data.index(part) + offset
        result[at : at + len(new)] = new
    return bytes(result)


def content(data: bytes, name: str = "a") -> bytes:
    def read_at(offset: int, size: int) -> bytes:
        assert offset >= 0 and size >= 0
        return data[offset : offset + size]

    member = read_directory(read_at, len(data))[name]
    start = data_offset(read_at, member)
    return data[start : start + member.size]


@pytest.mark.parametrize(
    ("part", "offset", "new", "reason"),
    [
        (LOCAL, 6, b"\x01", "compressed or encrypted"),
        (LOCAL, 8, b"\x08", "compressed or encrypted"),
        (LOCAL, 18, b"\x63", "disagree about its size"),
        (LOCAL, 22, b"\x65", "disagree about its size"),
        (LOCAL, 0, b"pk", "the header of a in the zip is missing"),
        (LOCAL, 30, b"c", "the header of a in the zip has another name"),
        (ENTRY, 8, b"\x01", "is encrypted in the zip"),
        (ENTRY, 10, b"\x08", "is compressed in the zip"),
        (ENTRY, 20, b"\x63", "its size or offset in the directory of the zip is wrong"),
        (ENTRY, 24, b"\x63", "its size or offset in the directory of the zip is wrong"),
        (ENTRY, 42, b"\x01", "the header of a in the zip is missing"),
        (ENTRY, 42, b"\0\0\x10", "the header of a in the zip is missing"),
        (ENTRY, 42, (len(ZIP) - 10).to_bytes(3, "little"), "the header of a in the zip is missing"),
    ],
)
def test_a_file_whose_header_and_entry_disagree_is_refused(
    part: bytes, offset: int, new: bytes, reason: str
) -> None:
    data = changed(ZIP, (part, offset, new))
    with pytest.raises(ZipError, match=reason) as error:
        content(data)
    is_packed = "compressed" in reason
    assert (error.value.hint == REPACK, error.value.hint == FETCH_AGAIN) == (
        is_packed,
        not is_packed and "encrypted" not in reason,
    )
    assert content(data, "b") == CONTENT


@pytest.mark.parametrize(("size", "is_read"), [(99, True), (100, True), (101, False)])
def test_a_file_ends_before_the_next_one(size: int, is_read: bool) -> None:
    sizes = bytes((size, 0, 0, 0)) * 2
    data = changed(ZIP, (LOCAL, 18, sizes), (ENTRY, 20, sizes))
    if is_read:
        assert content(data) == CONTENT[:size]
        return
    with pytest.raises(ZipError, match="overlap with those of another file"):
        content(data)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"\xff\xff\xff\xff" * 2, None),
        (b"\x64\0\0\0\xff\xff\xff\xff", None),
        (b"\0\0\0\0" * 2, "its header and the directory of the zip disagree"),
        (b"\xff\xff\xff\xff\0\0\0\0", "its header and the directory of the zip disagree"),
    ],
)
def test_a_size_may_be_elsewhere_only_if_the_header_says_so(header: bytes, reason: str | None) -> None:
    """0xFFFFFFFF: in the extra field, as with 64 bits. 0: behind the bytes, if the flag 8 is set."""
    data = changed(ZIP, (LOCAL, 18, header))
    if reason is None:
        assert content(data) == CONTENT
    else:
        with pytest.raises(ZipError, match=reason):
            content(data)
    with pytest.raises(ZipError, match="the sizes after its bytes"):
        content(changed(data, (LOCAL, 6, b"\x08"), (LOCAL, 18, bytes(8))))


def test_of_two_files_with_one_name_none_is_read() -> None:
    data = make_wacz({"a": CONTENT, "b": CONTENT, "c": CONTENT}).replace(b"b", b"a")
    with pytest.raises(ZipError, match="the zip has 2 files with this name"):
        content(data)
    assert content(data, "c") == CONTENT


def test_names_are_in_the_encoding_that_the_header_says() -> None:
    data = make_wacz({"\xe9": CONTENT})
    assert content(data, "\xe9") == CONTENT
    old = data.replace("\xe9".encode(), b"\x82x")
    assert content(changed(old, (LOCAL, 6, b"\0\0"), (ENTRY, 8, b"\0\0")), "\xe9x") == CONTENT
    with pytest.raises(ZipError, match="has another name"):
        content(changed(data, (LOCAL, 6, b"\0\0")), "\xe9")


@pytest.mark.parametrize("size", [0, 10, len(ZIP) - 1, len(ZIP) - 30])
def test_a_truncated_zip_is_no_zip(size: int) -> None:
    with pytest.raises(ZipError, match="truncated or not a zip file") as error:
        content(ZIP[:size])
    assert error.value.hint == FETCH_AGAIN
