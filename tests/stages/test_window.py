"""A window returns the bytes of the file at any offset; a gzip member is inflated to its content."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages import window as window_module
from cdxmill.stages.window import MemberError, SummedReads, Window, WindowFile, inflate, inflate_start

datas = st.binary(max_size=200)
chunks = st.integers(1, 60)
looks = st.lists(st.tuples(st.integers(0, 220), st.integers(0, 80), st.booleans()), max_size=20)


def window_of(data: bytes, chunk: int) -> Window:
    return Window(lambda offset, size: data[offset : offset + size], chunk)


@given(datas, chunks, looks)
def test_every_range_is_that_of_the_file(data: bytes, chunk: int, reads: list[tuple[int, int, bool]]) -> None:
    window = window_of(data, chunk)
    for offset, size, aside in reads:
        look = window.peek if aside else window.get
        assert look(offset, size) == data[offset : offset + size]
        buffer, index = window.at(offset, size)
        assert buffer[index : index + size] == data[offset : offset + size]


@given(datas, chunks, looks)
def test_the_end_is_found_after_any_reads(
    data: bytes, chunk: int, reads: list[tuple[int, int, bool]]
) -> None:
    window = window_of(data, chunk)
    for offset, size, _ in reads:
        window.get(offset, size)
    assert window.end() == len(data)


@given(st.binary(max_size=300), chunks, st.integers(0, 320))
def test_a_search_finds_the_next_match_across_reads(data: bytes, chunk: int, offset: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_module, "OVERLAP", 8)
        match = re.compile(rb"[\0-\x1f]{1,3}[a-z]?").search(data, offset)
        found = window_of(data, chunk).search(re.compile(rb"[\0-\x1f]{1,3}[a-z]?"), offset)
    assert found == (match.start() if match else -1)


@pytest.mark.parametrize("chunk", [1, 16, 20, 24, 50])
def test_a_search_reads_until_the_only_match(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "OVERLAP", 8)
    for place in range(120):
        data = b"x" * place + b"\n" + b"y" * 30
        assert window_of(data, chunk).search(re.compile(rb"\n"), 0) == place


def test_sequential_reading_reads_no_byte_twice() -> None:
    data = bytes(100_000)
    read = 0

    def read_at(offset: int, size: int) -> bytes:
        nonlocal read
        read += len(data[offset : offset + size])
        return data[offset : offset + size]

    window = Window(read_at, 1000)
    for offset in range(0, len(data), 700):
        window.get(offset, 900)
    assert read == len(data)


@given(st.binary(max_size=500), st.binary(max_size=40), st.integers(1, 50))
def test_a_member_is_inflated_up_to_its_end(content: bytes, behind: bytes, chunk: int) -> None:
    member = gzip.compress(content)
    pieces = inflate(window_of(b"xy" + member + behind, chunk), 2)
    assert b"".join(pieces) == content
    assert pieces.end == 2 + len(member)


def test_a_member_that_expands_a_thousand_times_comes_in_small_pieces() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    data = packer.compress(bytes(64 << 20)) + packer.flush()
    sizes = [len(piece) for piece in inflate(window_of(data, 4 << 20), 0)]
    assert sum(sizes) == 64 << 20
    assert max(sizes) <= 256 << 10


@given(st.binary(max_size=200), st.data())
def test_a_truncated_member_is_reported_as_truncated(content: bytes, data: st.DataObject) -> None:
    member = gzip.compress(content)
    size = data.draw(st.integers(1, len(member) - 1))
    with pytest.raises(MemberError) as error:
        b"".join(inflate(window_of(member[:size], 50), 0))
    assert error.value.truncated
    assert error.value.reached == size


@given(st.binary(min_size=1, max_size=500), st.integers(20, 600))
def test_the_start_of_a_member_is_read_without_the_rest(content: bytes, size: int) -> None:
    member = gzip.compress(content)
    start = inflate_start(window_of(member, 50), 0, size)
    assert content.startswith(start)
    assert start or size < len(member)


@given(st.binary(min_size=1, max_size=200), chunks, looks, st.integers(0, 10), st.integers(0, 100))
def test_a_window_never_goes_back_when_the_file_is_truncated(
    data: bytes, chunk: int, reads: list[tuple[int, int, bool]], calls: int, left: int
) -> None:
    def read_at(offset: int, size: int) -> bytes:
        nonlocal calls
        calls -= 1
        return (data if calls >= 0 else data[:left])[offset : offset + size]

    window, reached = Window(read_at, chunk), 0
    for offset, size, aside in reads:
        found = (window.peek if aside else window.get)(offset, size)
        if found and not aside:
            reached = max(reached, offset + len(found))
    assert window.end() >= reached


def with_header(content: bytes, extra: int) -> bytes:
    """A member whose header has a field of `extra` bytes."""
    member = gzip.compress(content)
    return member[:3] + b"\x10" + member[4:10] + b"c" * extra + b"\0" + member[10:]


@pytest.mark.parametrize("extra", [0, 100, 400, 500, 501, 502, 511, 512, 513, 1013, 5000, (1 << 17) - 11])
def test_the_content_after_a_header_of_any_size(extra: int) -> None:
    content = b"a page of words " * 40
    member = with_header(content, extra)
    window = window_of(b"xy" + member + b"z", 700)
    assert inflate_start(window, 2, 100) == content[:100]
    assert inflate_start(window, 2, 5000) == content
    assert b"".join(inflate(window, 2)) == content
    assert inflate_start(window, 1, 5) == inflate_start(window, 10**9, 5) == b""


@pytest.mark.parametrize("extra", [0, 300, 480, 490, 500, 501, 502, 1024])
@pytest.mark.parametrize("spread", [4, 8])
def test_the_first_bytes_are_there_whatever_comes_before_them(spread: int, extra: int) -> None:
    """A long name in the header, and the tables of deflate: those of texts with many characters are long."""
    rng = Random(3)
    content = bytes(int(rng.expovariate(1) * 2**spread) & 255 for _ in range(9000))
    window = window_of(with_header(content, extra) + b"z" * 5000, 1 << 16)
    for size in (1, 5, 500, 4096):
        assert inflate_start(window, 0, size) == content[:size]


def test_what_is_in_view_is_not_read_again() -> None:
    data, reads = bytes(range(250)), list[tuple[int, int]]()

    def read_at(offset: int, size: int) -> bytes:
        reads.append((offset, len(data[offset : offset + size])))
        return data[offset : offset + size]

    window = Window(read_at, 100)
    for offset, size in ((0, 10), (0, 100), (0, 10), (99, 1), (50, 50)):
        assert window.get(offset, size) == window.peek(offset, size) == data[offset : offset + size]
    assert reads == [(0, 100)]
    assert (window.get(50, 200), window.peek(50, 200)) == (data[50:], data[50:])
    assert reads[1:] == [(100, 150)]
    assert (window.get(50, 201), window.peek(249, 9), window.get(250, 9), window.peek(250, 9)) == (
        data[50:],
        data[249:],
        b"",
        b"",
    )
    assert reads[2:] in ([], [(250, 0)])
    seen = len(reads)
    for look in (window.get, window.peek):
        assert [look(offset, 9) for offset in (50, 249, 250, 251, 999)] == [
            data[50:59],
            data[249:],
            b"",
            b"",
            b"",
        ]
    assert window.end() == 250
    assert len(reads) == seen
    far = Window(read_at, 100)
    far.get(0, 1)
    far.get(0, 150)
    assert reads[seen:] == [(0, 100), (100, 100)], "what is held is kept"


MEMBER = gzip.compress(b"a page of words " * 40)
CORRUPT = {
    "gzip header longer than 128 KiB": (with_header(b"x", 1 << 17), 1 << 17, False),
    "no gzip member starts here": (b"no gzip at all", 0, False),
    "corrupt gzip header (reserved flags are set)": (MEMBER[:3] + b"\xe0" + MEMBER[4:], 0, False),
    "corrupt gzip data (invalid deflate block found)": (MEMBER[:10] + b"\x07" * 90, 100, False),
    "gzip CRC32 mismatch": (MEMBER[:-8] + b"\0" + MEMBER[-7:], len(MEMBER), True),
    "gzip length mismatch (ISIZE)": (MEMBER[:-1] + b"\1", len(MEMBER), True),
}


@pytest.mark.parametrize("behind", [b"", MEMBER])
@pytest.mark.parametrize("reason", CORRUPT)
def test_what_is_wrong_with_a_member_and_how_far_it_was_read(reason: str, behind: bytes) -> None:
    data, reached, ended = CORRUPT[reason]
    with pytest.raises(MemberError) as error:
        b"".join(inflate(window_of(b"xyz" + data + behind, 1 << 20), 3))
    found = error.value
    assert (str(found), found.truncated, found.ended, found.hint) == (reason, False, ended, "")
    assert found.reached in (3 + reached, 3 + reached + len(behind))
    assert found.reached == 3 + reached or not ended


@given(
    st.binary(max_size=200),
    st.integers(0, 220),
    st.integers(0, 220),
    st.lists(st.integers(-1, 90), max_size=9),
)
def test_a_range_of_a_window_is_read_like_a_file(data: bytes, start: int, end: int, sizes: list[int]) -> None:
    left = data[start : max(start, end)]
    file = WindowFile(window_of(data, 30), start, max(start, end))
    for size in [*sizes, -1, 5]:
        wanted = left if size < 0 else left[:size]
        assert file.read(size) == wanted
        left = left[len(wanted) :]


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 320), st.integers(0, 90)), max_size=9))
def test_the_sum_of_a_file_is_that_of_its_bytes_in_whatever_order_they_are_read(
    data: bytes, reads: list[tuple[int, int]]
) -> None:
    given, known = 0, 0

    def read_at(offset: int, size: int) -> bytes:
        nonlocal given
        found = data[offset : offset + size]
        given += len(found)
        return found

    summed = SummedReads(read_at)
    for offset, size in reads:
        assert summed(offset, size) == data[offset : offset + size]
        if offset <= known:
            known = max(known, min(offset + size, len(data)))
        assert (summed.size, summed.sha256_so_far()) == (known, hashlib.sha256(data[:known]).hexdigest())
    before = given
    assert (summed.sha256(), summed.size) == (hashlib.sha256(data).hexdigest(), len(data))
    assert given - before == len(data) - known, "no byte is read twice"


def test_of_a_far_file_the_first_reads_are_small() -> None:
    sizes = []

    def read_at(offset: int, size: int) -> bytes:
        sizes.append(size)
        return bytes(100_000)[offset : offset + size]

    window = Window(read_at, 100, 5000)
    for offset in range(0, 20_000, 100):
        window.get(offset, 100)
    assert sizes[:6] == [100, 400, 1600, 5000, 5000, 5000]
    window = Window(read_at, 100)
    assert (window.get(0, 700), sizes[-1]) == (bytes(700), 700)
    window.get(700, 1)
    assert sizes[-1] == 100
