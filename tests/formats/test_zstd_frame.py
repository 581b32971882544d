"""The ends of Zstandard frames that python-zstandard wrote."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.zstd_frame import FrameError, frame_end, is_skippable

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


@given(st.binary(max_size=60))
def test_any_bytes_have_an_end_or_a_reason(data: bytes) -> None:
    try:
        assert frame_end(reader(data), 0) <= len(data)
    except FrameError as error:
        assert str(error)
