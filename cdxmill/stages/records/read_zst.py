"""Records of a Zstandard archive (IIPC WARC-Zstd 1.0). Each record has one or more frames.

The first frame may be a skippable one that contains a dictionary, as it is or as a frame.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Final, TypeVar

import zstandard

from cdxmill.capture import CrawlNotes, Damage, Outcome, Record
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.formats.archives.zstd_dictionary import MAX_DICTIONARY, MAX_WINDOW, Inflater, dictionary_of
from cdxmill.formats.archives.zstd_frame import (
    DICTIONARY_MAGIC,
    MAGIC,
    FrameError,
    frame_end,
    is_skippable,
)
from cdxmill.formats.archives.zstd_frame import frame_within as _frame_within
from cdxmill.stages import native
from cdxmill.stages.records.parse_header import (
    FETCH_AGAIN,
    LARGE_WINDOW,
    NOT_AN_ARCHIVE,
    RECOMPRESS_FRAMES,
    WITH_DICTIONARY,
    BlankContent,
    NotARecord,
    RecordError,
    SeveralRecords,
)
from cdxmill.stages.records.resync import Probe, Resync, probe_content
from cdxmill.stages.records.take_record import Found, ReadCommon, check_rest, take_block, take_whole
from cdxmill.stages.window import MemberError, Pieces, Window, WindowFile

Common = TypeVar("Common")

ZSTD_START = re.compile(re.escape(MAGIC))

frame_within = native.frame_within or _frame_within

AHEAD = 1 << 17
"""Bytes from the start of a frame that are in the window. Nearly all frames are shorter."""
QUICK_FRAME = 1 << 20
"""Compressed bytes of the largest frame that the quick way is tried on a second time. Larger ones are streamed."""
QUICK_CONTENT = 16 << 20

_SKIPPABLE_HEADER = 8
_FRAME_HEADER = 18
"""Bytes of the longest header of a frame."""
_MOST_PROBES = 1000
"""Of one skippable frame. Frames that start by chance are far fewer."""
_CONTENT_PIECE = _SEARCHED_PIECE = 1 << 18
_INPUT = 1 << 16


def read_zst(
    window: Window,
    lineless: frozenset[bytes] = frozenset(),
    read_common: ReadCommon[Common] | None = None,
    max_window: int = MAX_WINDOW,
) -> Iterator[Record | Common | CrawlNotes | Damage]:
    """Every record of the file in `window`. What cannot be read as a record is reported as Damage.

    `lineless` and `read_common` are used as in `read_gzip`.
    """
    frames = Frames(window, Inflater(max_window=max_window))
    try:
        end = frames.read_dictionary()
    except MemberError as error:
        yield Damage(0, f"cannot read the zstd dictionary ({error})", FETCH_AGAIN)
        return
    pos = end
    if end and not frames.follows(end):  # nothing follows, or the dictionary's length is wrong
        pos = frames.first(end)
        yield Damage(0, f"no zstd frame follows the dictionary; {pos} bytes skipped", FETCH_AGAIN)
    yield from frames.records(pos, HeaderShapes(), lineless, read_common)


class Frames:
    """The frames of a file, decompressed with the dictionary of that file: that of `inflater`, or the one in the file."""

    def __init__(self, window: Window, inflater: Inflater | None = None) -> None:
        self._window = window
        self.inflater = inflater or Inflater()
        self._resync = Resync(window, ZSTD_START, self.probe)

    def read_dictionary(self) -> int:
        """Read the dictionary frame, if there is one; returns its end offset. Raises MemberError."""
        if self._window.get(0, 4) != DICTIONARY_MAGIC:
            return 0
        end = self._end(0)
        if end > MAX_DICTIONARY:
            raise MemberError(f"larger than {MAX_DICTIONARY >> 20} MiB", end)
        try:
            self.inflater = Inflater(dictionary_of(self._window.get(0, end)), self.inflater.max_window)
        except (zstandard.ZstdError, ValueError) as error:
            raise MemberError(_reason(error), end) from None
        if self._has_frames_up_to(end):
            raise MemberError("its length reaches over other frames", end)
        return end

    def _has_frames_up_to(self, end: int) -> bool:
        """Whether frames fill the end of an uncompressed dictionary: its length is wrong, and would hide records."""
        data = self._window.get(0, end)
        if data.startswith(MAGIC, _SKIPPABLE_HEADER):  # a compressed dictionary
            return False
        for magic in ZSTD_START.finditer(data, _SKIPPABLE_HEADER):
            pos = magic.start()
            with suppress(FrameError):
                while pos < end:
                    pos = frame_end(self._window.peek, pos)
                if pos == end:
                    return True
        return False

    def records(
        self,
        pos: int,
        shapes: HeaderShapes | None = None,
        lineless: frozenset[bytes] = frozenset(),
        read_common: ReadCommon[Common] | None = None,
    ) -> Iterator[Record | Common | CrawlNotes | Damage]:
        """The records from `pos` on, in the quick way if their frames allow it, else by `take`."""
        ahead = AHEAD
        no_line: Final = Outcome.NO_LINE
        not_common: Final = Outcome.NOT_COMMON
        found: Record | Common | CrawlNotes | Damage | Outcome | None
        while True:
            buffer, index = self._window.at(pos, ahead)
            if index == len(buffer):
                return
            start = index
            for data, end in self._whole_frames(buffer, index):
                found = not_common if read_common is None else read_common(data, pos, end - index)
                if found is not_common:
                    try:
                        found = take_whole(pos, end - index, data, shapes, lineless)
                    except RecordError:
                        break
                if found is not no_line:
                    yield found
                pos, index = pos + end - index, end
            else:
                if index == start and ahead < QUICK_FRAME:
                    ahead = QUICK_FRAME
                    continue
                ahead = AHEAD
                if index > start:
                    continue
            found, pos = self.take(pos)
            if found is not None:
                yield found

    def contents(self, pos: int, end: int) -> Iterator[bytes]:
        """The content of the frames from `pos` to `end`, in pieces. Raises MemberError."""
        while pos < end:
            buffer, index = self._window.at(pos, AHEAD)
            start = index
            for data, stop in self._whole_frames(buffer[: index + end - pos], index):
                yield data
                pos, index = pos + stop - index, stop
            if index == start:
                content = self.content(pos)
                yield from content
                pos = content.end

    def _whole_frames(self, buffer: bytes, start: int) -> Iterator[tuple[bytes, int]]:
        """The frames of `buffer` from `start` on: the content of each and its end, up to the first that needs care."""
        inflate = self.inflater.whole.decompress
        while (end := frame_within(buffer, start, QUICK_CONTENT)) >= 0:
            try:
                yield inflate(buffer[start:end]), end
            except zstandard.ZstdError:
                return
            start = end

    def follows(self, pos: int) -> bool:
        """Whether a frame starts at `pos`."""
        head = self._window.peek(pos, 4)
        return head == MAGIC or is_skippable(head)

    def first(self, pos: int) -> int:
        """The offset of the first record from `pos` on, or the file's size."""
        return self._resync.first(pos)

    def take(self, pos: int) -> Found:
        """The record, or the damage, that starts at `pos`."""
        try:
            if is_skippable(self._window.get(pos, 4)):
                return Found(None, self._skippable_end(pos))
            return self._take_record(pos)
        except MemberError as error:
            return self._corrupt(pos, error)

    def _take_record(self, pos: int) -> Found:
        content = _RecordContent(self, pos)
        try:
            record, tail = take_block(pos, content)
            check_rest(tail, content.rest_of_frame(), record.is_arc)
        except RecordError as error:
            try:
                for _ in content:
                    pass
            except MemberError as broken:
                return self._corrupt(pos, broken, isinstance(error, SeveralRecords))
            return self._refused(pos, content.end, error)
        return Found(record._replace(length=content.end - pos), content.end)

    def probe(self, pos: int) -> Probe:
        """Whether a frame starts at `pos` whose content starts with a record header."""
        return probe_content(lambda size: self._first_bytes(pos, size))

    def content(self, pos: int) -> Pieces:
        """The content of the frame at `pos`. Iterating raises MemberError."""
        return Pieces(self._inflate(pos))

    def content_or_nothing(self, pos: int) -> Pieces:
        """As `content`, but a skippable frame has none."""
        return Pieces(self._skip(pos)) if is_skippable(self._window.get(pos, 4)) else self.content(pos)

    def _skip(self, pos: int) -> Generator[bytes, None, int]:
        yield from ()
        return self._end(pos)

    def continues(self, pos: int) -> bool:
        """Whether a frame starts at `pos` whose content starts no record: it continues the one before."""
        if self._window.get(pos, 4) != MAGIC:
            return False
        return bool(self._first_bytes(pos, 1)) and not self.probe(pos).is_start

    def _first_bytes(self, pos: int, size: int) -> bytes:
        """The first `size` bytes of the content at `pos`; b"" if there is no frame."""
        try:
            with self._reader(WindowFile(self._window, pos, 1 << 62), 1 << 12) as reader:
                return reader.read(size)
        except zstandard.ZstdError:
            return b""

    def _inflate(self, pos: int) -> Generator[bytes, None, int]:
        end = self._end(pos)
        try:
            with self._reader(WindowFile(self._window, pos, end), _INPUT) as reader:
                while piece := reader.read(_CONTENT_PIECE):
                    yield piece
        except zstandard.ZstdError as error:
            raise self._error(pos, end, _reason(error)) from None
        return end

    def _error(self, pos: int, end: int, reason: str) -> MemberError:
        """Why the frame from `pos` to `end` cannot be decompressed."""
        try:
            frame = zstandard.get_frame_parameters(self._window.get(pos, _FRAME_HEADER))
        except zstandard.ZstdError:
            return MemberError(f"corrupt zstd data ({reason})", end, ended=True)
        own = self.inflater.dictionary_id
        if frame.dict_id not in (0, own):
            reason = f"the frame needs the zstd dictionary {frame.dict_id}, and the file has "
            return MemberError(f"{reason}{own or 'none'}", end, ended=True, hint=WITH_DICTIONARY)
        limit = self.inflater.max_window
        if frame.window_size > limit:
            reason = (
                f"the frame needs a window of {_mib(frame.window_size)} MiB; the limit is {_mib(limit)} MiB"
            )
            hint = (
                LARGE_WINDOW % _mib(frame.window_size)
                if frame.window_size <= 1 << zstandard.WINDOWLOG_MAX
                else ""
            )
            return MemberError(reason, end, ended=True, hint=hint)
        return MemberError(f"corrupt zstd data ({reason})", end, ended=True)

    def _reader(self, source: WindowFile, size: int) -> zstandard.ZstdDecompressionReader:
        return self._streams.stream_reader(source, read_size=size, read_across_frames=False)  # type: ignore[arg-type]

    @cached_property
    def _streams(self) -> zstandard.ZstdDecompressor:
        """For streams. While one is read, the decompressor can do nothing else."""
        return self.inflater.new()

    def _skippable_end(self, pos: int) -> int:
        """The end of a skippable frame, where another frame or the end of the file has to follow.

        Without these checks a wrong length would skip records.
        """
        end = self._end(pos)
        if not self.follows(end) and self._window.peek(end, 1):
            raise MemberError("no zstd frame follows the skippable frame", end)
        if self._has_record(pos + _SKIPPABLE_HEADER, end):
            raise MemberError("a record starts inside the skippable frame", end)
        return end

    def _has_record(self, pos: int, end: int) -> bool:
        """Whether a record starts between `pos` and `end`. True also if too many frames seem to start there."""
        probes = 0
        while pos < end:
            data = self._window.get(pos, min(_SEARCHED_PIECE, end - pos))
            for magic in ZSTD_START.finditer(data):
                probes += 1
                if probes > _MOST_PROBES or self.probe(pos + magic.start()).is_start:
                    return True
            pos += max(len(data) - len(MAGIC) + 1, 1)
        return False

    def _end(self, pos: int) -> int:
        try:
            return frame_end(self._window.peek, pos)
        except FrameError as error:
            raise MemberError(str(error), error.reached, error.truncated) from None

    def _refused(self, pos: int, end: int, error: RecordError) -> Found:
        if isinstance(error, BlankContent):
            return Found(None, end)
        if isinstance(error, SeveralRecords):
            reason = "the zstd frame contains more than one record"
            return Found(Damage(pos, reason, RECOMPRESS_FRAMES, is_miscut=True), end)
        hint = NOT_AN_ARCHIVE if isinstance(error, NotARecord) and not pos else error.hint
        return Found(Damage(pos, error.reason, hint), end)

    def _corrupt(self, pos: int, error: MemberError, is_miscut: bool = False) -> Found:
        end = error.reached
        if error.ended and (not self._window.get(end, 1) or self.probe(end).is_start):
            end = self._resync.inside(pos, end, self._end_of_frame)
        else:
            end = self._resync.after(pos, end - pos)
        if error.truncated and not self._window.get(end, 1):
            return Found(Damage(pos, str(error), FETCH_AGAIN, is_miscut), end)
        hint = error.hint or FETCH_AGAIN
        return Found(Damage(pos, f"{error}; {end - pos} bytes skipped", hint, is_miscut), end)

    def _end_of_frame(self, pos: int) -> int:
        content = self.content(pos)
        for _ in content:
            pass
        return content.end


class _RecordContent:
    """The content of the frame at `pos` and of the frames that continue its record.

    `end` is the end of the last frame that was read to its end.
    """

    def __init__(self, frames: Frames, pos: int) -> None:
        self.end = pos
        self._frame = frames.content(pos)
        self._pieces = self._all_frames(frames)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)

    def _all_frames(self, frames: Frames) -> Iterator[bytes]:
        yield from self.rest_of_frame()
        while frames.continues(self.end):
            self._frame = frames.content(self.end)
            yield from self.rest_of_frame()

    def rest_of_frame(self) -> Iterator[bytes]:
        """The pieces of the current frame that were not read yet."""
        yield from self._frame
        self.end = self._frame.end


def _mib(size: int) -> int:
    """A size in MiB, rounded up."""
    return -(-size >> 20)


def _reason(error: Exception) -> str:
    """The last part of zstd's message, `zstd decompress error: Data corruption detected`."""
    return str(error).rpartition(": ")[2].lower()
