"""The text of CDX files, plain or gzip of any making: exactly what is there, or an error."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.inflate import MemberError
from cdxmill.stages.lines.read_content import read_content

from .test_line_lists import members, window_of

contents = st.binary(max_size=300) | st.integers(0, 700_000).map(
    lambda size: b"0123456789abcdef" * (size // 16)
)


@given(contents.filter(lambda content: content[:1] != b"\x1f" and content[1:2] != b"\x8b"))
def test_a_plain_file_is_what_it_holds(content: bytes) -> None:
    assert b"".join(read_content(window_of(content))) == content


@given(contents, st.lists(st.integers(0, 1000), max_size=6), st.sampled_from([1, 7, 1 << 12, 4 << 20]))
def test_gzip_of_any_number_of_members_holds_what_all_of_them_do(
    content: bytes, cuts: list[int], chunk: int
) -> None:
    pieces = list(read_content(window_of(b"".join(members(content, cuts)), chunk)))
    assert b"".join(pieces) == content
    assert all(0 < len(piece) <= 1 << 18 for piece in pieces)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(b"abc\n" * 99)[:-9], "truncated inside"),
        (gzip.compress(b"abc\n" * 99)[:-8] + b"\0" * 8, "CRC32 mismatch"),
        (gzip.compress(b"abc\n") + b"more", "no gzip member"),
        (b"\x1f\x8c" + gzip.compress(b"abc\n")[2:], "no gzip member"),
    ],
)
def test_damage_is_an_error(data: bytes, reason: str) -> None:
    with pytest.raises(MemberError, match=reason):
        list(read_content(window_of(data)))
