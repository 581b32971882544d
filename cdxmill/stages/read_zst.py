"""Records of a Zstandard archive (IIPC WARC-Zstd 1.0): one or more frames a record.

The first frame may be a skippable one that holds the dictionary, raw or itself a frame.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import zstandard

from cdxmill.capture import Damage, Record
from cdxmill.formats.zstd_frame import DICTIONARY_MAGIC, MAGIC, FrameError, frame_end, is_skippable
from cdxmill.stages.inflate import MemberError, Pieces
from cdxmill.stages.take_record import BlankContent, NotARecord, RecordError, parse_header, take_stream
from cdxmill.stages.window import Window

_MAX_WINDOW = 128 << 20
_PIECE = 1 << 18
_MAGIC = re.compile(re.escape(MAGIC))


def read_zst(window: Window) -> Iterator[Record | Damage]:
    """Every record of the file in `window`; what gets no record is told as Damage."""
    frames, pos = _Frames(window), 0
    try:
        pos = frames.read_dictionary()
    except MemberError as error:
        yield Damage(0, f"the dictionary cannot be read: {error}", "fetch the file again")
        return
    while window.get(pos, 1):
        found, pos = frames.take(pos)
        if found is not None:
            yield found


class _Frames:
    def __init__(self, window: Window) -> None:
        self._window = window
        self._inflater = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)

    def read_dictionary(self) -> int:
        """Take the dictionary frame in, if there is one; the offset behind it."""
        if self._window.get(0, 4) != DICTIONARY_MAGIC:
            return 0
        end = self._end(0)
        data = self._window.get(8, end - 8)
        if data[:4] == MAGIC:
            try:
                data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
            except zstandard.ZstdError as error:
                raise MemberError(str(error)) from None
        dictionary = zstandard.ZstdCompressionDict(data)
        self._inflater = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=_MAX_WINDOW)
        return end

    def take(self, pos: int) -> tuple[Record | Damage | None, int]:
        """What stands at `pos` (None for a frame without content), and where to go on."""
        pieces = Pieces(pos)
        pieces.pieces = self._record_pieces(pos, pieces)
        try:
            if is_skippable(self._window.get(pos, 4)):
                return None, self._end(pos)
            try:
                record = take_stream(pos, pieces)
            except RecordError as error:
                for _ in pieces:
                    pass
                return self._refused(pos, pieces.end, error)
        except MemberError as error:
            return self._damaged(pos, error)
        return record._replace(length=pieces.end - pos), pieces.end

    def _record_pieces(self, pos: int, pieces: Pieces) -> Iterator[bytes]:
        """The content of the frame at `pos` and of those behind it that start no record."""
        while True:
            yield from self._frame(pos, pieces)
            pos = pieces.end
            head = self._window.get(pos, 4)
            if head != MAGIC or self._starts_record(pos):
                return

    def _frame(self, pos: int, pieces: Pieces) -> Iterator[bytes]:
        end = self._end(pos)
        source = _Range(self._window, pos, end)
        try:
            with self._inflater.stream_reader(source, read_across_frames=False) as reader:  # type: ignore[arg-type]
                while piece := reader.read(_PIECE):
                    yield piece
        except zstandard.ZstdError as error:
            raise MemberError(f"the zstd data are damaged ({error})") from None
        pieces.end = end

    def _end(self, pos: int) -> int:
        try:
            return frame_end(self._window.get, pos)
        except FrameError as error:
            raise MemberError(str(error), error.cut) from None

    def _starts_record(self, pos: int) -> bool:
        try:
            parse_header(next(self._frame(pos, Pieces(pos)), b""))
        except (BlankContent, NotARecord, MemberError):
            return False
        except RecordError:
            return True
        return True

    def _refused(self, pos: int, end: int, error: RecordError) -> tuple[Damage | None, int]:
        if isinstance(error, BlankContent):
            return None, end
        return Damage(pos, error.reason, error.hint), end

    def _damaged(self, pos: int, error: MemberError) -> tuple[Damage, int]:
        end = self._next(pos + 1)
        if error.cut and not self._window.get(end, 1):
            return Damage(pos, str(error), "the file is cut: fetch it again"), end
        return Damage(pos, f"{error}; {end - pos} bytes skipped", "fetch the file again if you can"), end

    def _next(self, pos: int) -> int:
        while (found := self._window.search(_MAGIC, pos)) >= 0:
            if self._starts_record(found):
                return found
            pos = found + 1
        return self._window.end(pos)


class _Range(io.RawIOBase):
    """The bytes from `pos` to `end` of a window as a file."""

    def __init__(self, window: Window, pos: int, end: int) -> None:
        self._window, self._pos, self._end = window, pos, end

    def read(self, size: int = -1) -> bytes:
        left = self._end - self._pos
        data = self._window.get(self._pos, min(size, left) if size >= 0 else left)
        self._pos += len(data)
        return data
