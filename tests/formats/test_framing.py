"""The ends of Zstandard frames that python-zstandard wrote."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from cdxmill.formats.archives.framing import FrameError, frame_end, frame_within, is_skippable
from cdxmill.stages import native
from tests.material.sanitizers import run_sanitized

contents = st.binary(max_size=200) | st.builds(lambda part: part * 50_000, st.binary(min_size=1, max_size=9))


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """Frames of every kind, and skippable frames."""
    content = draw(contents)
    if draw(st.booleans()):
        magic = bytes([0x50 | draw(st.integers(0, 15))]) + b"\x2a\x4d\x18"
        return magic + len(content).to_bytes(4, "little") + content
    packer = zstandard.ZstdCompressor(
        level=draw(st.integers(1, 5)),
        write_checksum=draw(st.booleans()),
        write_content_size=draw(st.booleans()),
    )
    return packer.compress(content)


def reader(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, size: data[offset : offset + size]


@given(st.binary(max_size=20), frames(), st.binary(max_size=20))
def test_the_end_of_a_frame_is_found(before: bytes, frame: bytes, behind: bytes) -> None:
    data = before + frame + behind
    assert frame_end(reader(data), len(before)) == len(before) + len(frame)
    assert is_skippable(frame[:4]) == (frame[:4] != zstandard.FRAME_HEADER)


@given(frames(), st.data())
def test_a_truncated_frame_is_reported_as_truncated(frame: bytes, data: st.DataObject) -> None:
    with pytest.raises(FrameError, match=r"truncated inside") as error:
        frame_end(reader(frame[: data.draw(st.integers(4, len(frame) - 1))]), 0)
    assert error.value.truncated


CHECKED = zstandard.ZstdCompressor(write_checksum=True).compress(b"text")


@pytest.mark.parametrize(
    ("data", "reason", "reached", "truncated"),
    [
        (b"", "the file is truncated inside a zstd frame", 2, True),
        (zstandard.FRAME_HEADER, "the file is truncated inside a zstd frame", 6, True),
        (CHECKED[:-1], "the file is truncated inside a zstd frame", 2 + len(CHECKED) - 4, True),
        (b"\x5f\x2a\x4d\x18\0\0", "the file is truncated inside a skippable frame", 8, True),
        (b"\x50\x2a\x4d\x18\2\0\0\0x", "the file is truncated inside a skippable frame", 2 + 9, True),
        (b"\x4f\x2a\x4d\x18" + bytes(9), "no zstd frame starts here", 2, False),
        (b"Plain text", "no zstd frame starts here", 2, False),
        (b"\x60\x2a\x4d\x18" + bytes(9), "no zstd frame starts here", 2, False),
        (zstandard.FRAME_HEADER + b"\x20\0\7\0\0", "corrupt zstd data (invalid block header)", 8, False),
    ],
)
def test_an_error_has_a_reason_and_the_offset_up_to_which_was_read(
    data: bytes, reason: str, reached: int, truncated: bool
) -> None:
    with pytest.raises(FrameError) as error:
        frame_end(reader(b"ab" + data), 2)
    assert (str(error.value), error.value.reached, error.value.truncated) == (reason, reached, truncated)


def test_a_skippable_frame_may_have_nothing_in_it() -> None:
    empty = b"\x50\x2a\x4d\x18" + bytes(4)
    assert frame_end(reader(empty), 0) == 8
    assert frame_end(reader(empty + empty), 8) == 16


@given(st.binary(max_size=60))
def test_any_bytes_have_an_end_or_a_reason(data: bytes) -> None:
    try:
        assert frame_end(reader(data), 0) <= len(data)
    except FrameError as error:
        assert str(error)


@given(st.binary(max_size=20), frames(), st.binary(min_size=18, max_size=30), st.integers(0, 500_000))
@example(
    b"", zstandard.compress(bytes(256)), bytes(18), 256
)  # the first size that is stored in two bytes, as 0
def test_a_frame_in_a_buffer_ends_where_it_ends_in_a_file(
    before: bytes, frame: bytes, behind: bytes, limit: int
) -> None:
    end = frame_within(before + frame + behind, len(before), limit)
    size = -1 if is_skippable(frame[:4]) else zstandard.frame_content_size(frame)
    assert end == (len(before) + len(frame) if 0 < size <= limit else -1)


def test_a_skippable_frame_in_a_buffer_is_left_to_others() -> None:
    """Its size, 0x120, looks like a header of a frame that states its size."""
    frame = b"\x50\x2a\x4d\x18" + (0x120).to_bytes(4, "little") + bytes(0x120)
    assert native.frame_within is not None
    for way in (native.frame_within, frame_within):
        assert way(frame + bytes(20), 0, 1000) == -1


@given(frames() | st.binary(max_size=60).map(lambda data: zstandard.FRAME_HEADER + data), st.data())
def test_both_ways_find_the_same_end(frame: bytes, data: st.DataObject) -> None:
    changed = bytearray(frame[: data.draw(st.integers(0, len(frame)))])
    for place in data.draw(st.lists(st.integers(4, 30), max_size=2)):
        if place < len(changed):
            changed[place] ^= data.draw(st.integers(1, 255))
    text = bytes(changed)
    assert native.frame_within is not None
    assert native.frame_within(text, 0, 1 << 20) == frame_within(text, 0, 1 << 20)


def headers_of(size: int) -> list[bytes]:
    """A frame of `size` equal bytes with each header that states a size: with dictionary ids, sums, and all widths."""
    blocks = b"".join(
        (one << 3 | 2 | last).to_bytes(3, "little") + b"a"
        for one, last in [(100_000, 0)] * (size // 100_000) + [(size % 100_000, 1)]
    )
    found = []
    for flag, wide in enumerate((1, 2, 4, 8)):
        stated = size - 256 * (wide == 2)
        if not 0 <= stated < 1 << 8 * wide:
            continue
        for is_single, has_sum, named in product((True, False), (0, 4), range(4)):
            if flag or is_single:
                descriptor = flag << 6 | is_single << 5 | has_sum | named
                head = bytes([descriptor]) + bytes(not is_single) + b"\7" * (0, 1, 2, 4)[named]
                found.append(
                    zstandard.FRAME_HEADER + head + stated.to_bytes(wide, "little") + blocks + b"s" * has_sum
                )
    return found


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65_535, 65_536, 65_791, 65_792, 131_073, 300_000])
def test_both_ways_know_every_header(size: int) -> None:
    assert native.frame_within is not None
    for frame in headers_of(size):
        for before, cut, limit in product((b"", b"x" * 40), (-1, 0, 1, 18), (size - 1, size, size + 1)):
            if limit >= 0:
                text = before + frame[: len(frame) + min(cut, 0)] + bytes(max(cut, 0))
                found = native.frame_within(text, len(before), limit)
                assert found == frame_within(text, len(before), limit)
                assert cut < 18 or found == (len(before) + len(frame) if 0 < size <= limit else -1)


@pytest.mark.parametrize("kind", range(4))
def test_both_ways_know_which_blocks_are_possible(kind: int) -> None:
    """A block has up to 128 KiB. One kind is reserved."""
    assert native.frame_within is not None
    for size in (0, 1, 20, 131_071, 131_072, 131_073, (1 << 21) - 1):
        taken = 1 if kind == 1 else size
        for last in (0, 1):
            block = (size << 3 | kind << 1 | last).to_bytes(3, "little") + bytes(taken)
            text = zstandard.FRAME_HEADER + b"\x20\x05" + block + b"\1\0\0" + bytes(40)
            is_whole = kind != 3 and size <= 131_072
            end = (6 + len(block) + 3 * (not last)) if is_whole else -1
            assert native.frame_within(text, 0, 5) == frame_within(text, 0, 5) == end


@pytest.mark.parametrize("size", range(7, 12))
def test_a_frame_may_fill_the_longest_header(size: int) -> None:
    """A frame of 18 bytes is read where it is; one of 17 is left to the reader of files."""
    frame = zstandard.FRAME_HEADER + bytes([0x20, size]) + (size << 3 | 1).to_bytes(3, "little") + b"a" * size
    assert native.frame_within is not None
    for way in (native.frame_within, frame_within):
        assert way(frame, 0, 100) == (len(frame) if len(frame) >= 18 else -1)
        assert way(bytes(30) + frame, 30, 100) == (30 + len(frame) if len(frame) >= 18 else -1)


def test_wrong_arguments_are_refused() -> None:
    assert native.frame_within is not None
    with pytest.raises(TypeError):
        native.frame_within(bytearray(20), 0, 1)  # type: ignore[arg-type]
    for start, limit in ((-1, 1), (3, 1), (0, -1)):
        with pytest.raises(ValueError, match=r"at least 0|not a range"):
            native.frame_within(b"ab", start, limit)


SANITIZED = """
import random, _native
rng = random.Random(1)
for _ in range(20_000):
    data = b"\\x28\\xb5\\x2f\\xfd" + bytes(rng.choices((0, 1, 2, 8, 32, 255, rng.randrange(256)), k=rng.randrange(40)))
    start = rng.choice((0, rng.randrange(len(data) + 1)))
    for begin, text in ((0, data), (len(data), data), (start, data), (30, bytes(30) + data)):
        assert -1 <= _native.frame_within(text, begin, 1 << 60) <= len(text)
"""


def test_c_reads_only_the_buffer(tmp_path: Path) -> None:
    run_sanitized(SANITIZED, tmp_path)
