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
from cdxmill.stages.records.resync import Resync
from cdxmill.stages.records.take_record import (
    NO_ARCHIVE,
    BlankContent,
    NotARecord,
    RecordError,
    SeveralRecords,
    check_rest,
    starts_record,
    take_block,
)
from cdxmill.stages.records.zst_dictionary import MAX_DICTIONARY, inflater_with
from cdxmill.stages.window import Window

ZSTD_START = re.compile(re.escape(MAGIC))
REFETCH = "fetch the file again if you can"
CUT = "the file is cut: fetch it again"
RECOMPRESS = "compress it again with one frame a record, then index that"

_PIECE = 1 << 18
_INPUT = 1 << 16


def read_zst(window: Window) -> Iterator[Record | Damage]:
    """Every record of the file in `window`; what gets no record is told as Damage."""
    frames = Frames(window)
    try:
        end = frames.read_dictionary()
    except MemberError as error:
        yield Damage(0, f"the dictionary cannot be read: {error}", "fetch the file again")
        return
    pos = frames.after_dictionary(end)
    if pos > end:
        yield Damage(0, f"no frame follows the dictionary; {pos} bytes skipped", REFETCH)
    while window.get(pos, 1):
        found, pos = frames.take(pos)
        if found is not None:
            yield found


class Frames:
    """The frames of a file, decompressed with the file's own dictionary."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._inflater = inflater_with(b"")
        self._resync = Resync(window, ZSTD_START, self.looked_at)

    def read_dictionary(self) -> int:
        """Take the dictionary frame in, if there is one; the offset behind it. Raises MemberError."""
        if self._window.get(0, 4) != DICTIONARY_MAGIC:
            return 0
        end = self._end(0)
        if end > MAX_DICTIONARY:
            raise MemberError(f"it is larger than {MAX_DICTIONARY >> 20} MiB", end)
        try:
            self._inflater = inflater_with(self._window.get(0, end))
        except (zstandard.ZstdError, ValueError) as error:
            raise MemberError(_what(error), end) from None
        return end

    def after_dictionary(self, end: int) -> int:
        """`end`, or where the first record starts behind damage: the dictionary's length may be a lie."""
        return self._resync.first(end) if end and not self._frame_follows(end) else end

    def take(self, pos: int) -> tuple[Record | Damage | None, int]:
        """What stands at `pos` (None for a frame without content), and where to go on."""
        pieces = _Frame(pos)
        pieces.pieces = self._record_pieces(pos, pieces)
        try:
            if is_skippable(self._window.get(pos, 4)):
                return None, self._skippable_end(pos)
            try:
                record, tail = take_block(pos, pieces)
                pieces.is_last = True
                check_rest(tail, pieces, record.is_arc)
            except RecordError as error:
                pieces.is_last = isinstance(error, BlankContent)
                for _ in pieces:
                    pass
                return self._refused(pos, pieces.end, error)
        except MemberError as error:
            return self._damaged(pos, error)
        return record._replace(length=pieces.end - pos), pieces.end

    def looked_at(self, pos: int) -> int:
        """0 where a frame starts at `pos` whose content starts with a record; else bytes looked at."""
        looked = 0

        def read(size: int) -> bytes:
            nonlocal looked
            looked = size
            return self._start(pos, size)

        return 0 if starts_record(read) else looked

    def _start(self, pos: int, size: int) -> bytes:
        """The first `size` bytes of the content at `pos`; b"" where there is no frame."""
        try:
            with self._reader(_Range(self._window, pos, 1 << 62), 1 << 12) as reader:
                return reader.read(size)
        except zstandard.ZstdError:
            return b""

    def _record_pieces(self, pos: int, pieces: _Frame) -> Iterator[bytes]:
        """The content of the frame at `pos`, and of those behind it that start no record."""
        while True:
            yield from self._frame(pos, pieces)
            pos = pieces.end
            if pieces.is_last or self._window.get(pos, 4) != MAGIC or not self._goes_on(pos):
                return

    def _goes_on(self, pos: int) -> bool:
        return bool(self._start(pos, 1)) and self.looked_at(pos) > 0

    def _frame(self, pos: int, pieces: _Frame) -> Iterator[bytes]:
        end = self._end(pos)
        try:
            with self._reader(_Range(self._window, pos, end), _INPUT) as reader:
                while piece := reader.read(_PIECE):
                    yield piece
        except zstandard.ZstdError as error:
            raise MemberError(f"the zstd data are damaged ({_what(error)})", end, ended=True) from None
        pieces.end = end

    def _reader(self, source: io.RawIOBase, size: int) -> zstandard.ZstdDecompressionReader:
        return self._inflater.stream_reader(source, read_size=size, read_across_frames=False)  # type: ignore[arg-type]

    def _skippable_end(self, pos: int) -> int:
        """A length that lies would skip records: another frame, or the file's end, shows that it does not."""
        end = self._end(pos)
        if not self._frame_follows(end):
            raise MemberError("no frame follows the skippable one", end)
        return end

    def _frame_follows(self, pos: int) -> bool:
        head = self._window.peek(pos, 4)
        return not head or head == MAGIC or is_skippable(head)

    def _end(self, pos: int) -> int:
        try:
            return frame_end(self._window.peek, pos)
        except FrameError as error:
            raise MemberError(str(error), error.reached, error.cut) from None

    def _refused(self, pos: int, end: int, error: RecordError) -> tuple[Damage | None, int]:
        if isinstance(error, BlankContent):
            return None, end
        if isinstance(error, SeveralRecords):
            return Damage(pos, "the frame holds more than one record", RECOMPRESS), end
        hint = NO_ARCHIVE if isinstance(error, NotARecord) and not pos else error.hint
        return Damage(pos, error.reason, hint), end

    def _damaged(self, pos: int, error: MemberError) -> tuple[Damage, int]:
        end = error.reached
        if error.ended and not (self._window.get(end, 1) and self.looked_at(end)):
            end = self._resync.inside(pos, end, self._behind_frame)
        else:
            end = self._resync.behind(pos, end - pos)
        if error.cut and not self._window.get(end, 1):
            return Damage(pos, str(error), CUT), end
        return Damage(pos, f"{error}; {end - pos} bytes skipped", REFETCH), end

    def _behind_frame(self, pos: int) -> int:
        frame = _Frame(pos)
        for _ in self._frame(pos, frame):
            pass
        return frame.end


class _Frame(Pieces):
    """`is_last` once the frame that is read now is known to be the record's last."""

    is_last = False


class _Range(io.RawIOBase):
    """The bytes from `pos` to `end` of a window as a file."""

    def __init__(self, window: Window, pos: int, end: int) -> None:
        self._window, self._pos, self._end = window, pos, end

    def read(self, size: int = -1) -> bytes:
        left = self._end - self._pos
        data = self._window.get(self._pos, min(size, left) if size >= 0 else left)
        self._pos += len(data)
        return data


def _what(error: Exception) -> str:
    """What zstd says, `zstd decompress error: Data corruption detected`, in short."""
    return str(error).rpartition(": ")[2].lower()
