"""The text of CDX files, plain or gzip of any making: exactly what is there, or an error."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.errors import InputError
from cdxmill.stages.lines.cdx_text import read_cdx, read_content, read_large_pieces
from cdxmill.stages.window import MemberError, Window

from .test_line_lists import members, window_of

Read = Callable[[Window], Iterator[bytes | bytearray]]
readers = pytest.mark.parametrize("read", [read_content, read_large_pieces])

contents = st.binary(max_size=300) | st.integers(0, 700_000).map(
    lambda size: b"0123456789abcdef" * (size // 16)
)


@readers
@given(contents.filter(lambda content: content[:1] != b"\x1f" and content[1:2] != b"\x8b"))
def test_a_plain_file_is_what_it_holds(read: Read, content: bytes) -> None:
    assert b"".join(read(window_of(content))) == content


@readers
@given(contents, st.lists(st.integers(0, 1000), max_size=6), st.sampled_from([1, 7, 1 << 12, 4 << 20]))
def test_gzip_of_any_number_of_members_holds_what_all_of_them_do(
    read: Read, content: bytes, cuts: list[int], chunk: int
) -> None:
    pieces = list(read(window_of(b"".join(members(content, cuts)), chunk)))
    assert b"".join(pieces) == content
    assert all(0 < len(piece) <= (1 << 18 if read is read_content else 4 << 20) for piece in pieces)


def test_a_member_is_one_piece_up_to_4_mib() -> None:
    data = b"".join(map(gzip.compress, (b"a" * (4 << 20), b"b" * ((4 << 20) + 1), b"c")))
    sizes = [len(piece) for piece in read_large_pieces(window_of(data))]
    assert (sizes[0], sizes[-1]) == (4 << 20, 1)
    assert max(sizes[1:-1]) <= 1 << 18


@readers
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(b"abc\n" * 99)[:-9], "truncated inside"),
        (gzip.compress(b"abc\n" * 99)[:-8] + b"\0" * 8, "CRC32 mismatch"),
        (gzip.compress(b"abc\n") + b"more", "no gzip member"),
        (gzip.compress(b"abc\n") + b"\0" * 512, "no gzip member"),
        (gzip.compress(b"abc\n") * 3 + gzip.compress(b"abc\n" * 99)[:-9], "truncated inside"),
        (b"\x1f\x8c" + gzip.compress(b"abc\n")[2:], "no gzip member"),
    ],
)
def test_damage_is_an_error(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(MemberError, match=reason):
        list(read(window_of(data)))


LINE = b"com,a)/ 2020 {}\n"


@readers
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.cdx: the file is empty; rebuild this index"),
        (b"WARC/1.0\r\n", "it is an archive, not an index; index it first with cdxmill index"),
        (b"\n WARC/1.0\r\n", "rebuild this index"),
        (b"filedesc://a.arc 0.0.0.0 2020 text/plain 9\n", "index it first with cdxmill index"),
        (LINE + b"WARC/1.0\r\n", "line 2 is not a CDXJ line: b'WARC/1.0\\r'; rebuild this index"),
        (LINE * 3 + b"x\n", "a.cdx: line 4 is not a CDXJ line: b'x'; rebuild this index"),
    ],
)
def test_what_a_user_can_do_about_a_file_is_said(read: Read, data: bytes, message: str) -> None:
    for content in (data, gzip.compress(data)) if data else (data,):
        with pytest.raises(InputError) as error:
            list(read_cdx("a.cdx", window_of(content), read))
        assert str(error.value).endswith(message)
    assert b"".join(read_cdx("a.cdx", window_of(LINE * 3), read)) == LINE * 3


@readers
def test_a_corrupt_file_is_an_error_of_the_input(read: Read) -> None:
    with pytest.raises(InputError, match=r"a\.cdx: .*truncated inside.*; rebuild this index"):
        list(read_cdx("a.cdx", window_of(gzip.compress(LINE * 99)[:-9]), read))


@readers
@pytest.mark.parametrize(
    "data", [b"\x1f", b"\x1f\x8b", b"\x1f\x8b\x07", b"x\x8b\x08", b"\x1fx\x08", b"x\x8b"]
)
def test_a_file_whose_start_is_nearly_that_of_gzip_is_corrupt(read: Read, data: bytes) -> None:
    if data == b"x\x8b":
        assert list(read(window_of(data))) == [data]
        return
    with pytest.raises(MemberError):
        list(read(window_of(data)))
