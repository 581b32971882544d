"""Records of a Zstandard archive (IIPC WARC-Zstd 1.0). Each record has one or more frames.

The first frame may be a skippable one that contains a dictionary, as it is or as a frame.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cached_property
from typing import TypeVar

import zstandard

from cdxmill.capture import CrawlNotes, Damage, Note, Record
from cdxmill.formats.archives.framing import (
    DICTIONARY_MAGIC,
    ZSTD_MAGIC,
    FrameError,
    frame_end,
    is_skippable,
)
from cdxmill.formats.archives.framing import frame_within as _frame_within
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.formats.archives.zstd_dictionary import (
    DICTIONARY,
    MAX_DICTIONARY,
    Inflater,
    dictionary_of,
    known,
)
from cdxmill.messages import count
from cdxmill.regex import regex
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
)
from cdxmill.stages.records.read_units import QUICK_CONTENT, read_units
from cdxmill.stages.records.take_record import ReadCommon
from cdxmill.stages.records.units import Found, Units
from cdxmill.stages.window import MemberError, Pieces, Window, WindowFile

Common = TypeVar("Common")

ZSTD_START = regex(re.escape(ZSTD_MAGIC))
_ANY_START = regex(b"|".join(map(re.escape, (ZSTD_MAGIC, DICTIONARY_MAGIC))))

frame_within = native.frame_within or _frame_within

_SKIPPABLE_HEADER = 8
_FRAME_HEADER = 18
"""Bytes of the longest header of a frame."""
_MOST_PROBES = 1000
"""Of one skippable frame. Frames that start by chance are far fewer."""
_OTHER = "another zstd dictionary starts here (id {}), and readers know only the one at the start of a file; {} bytes skipped"
_HIDDEN = "a skippable zstd frame contains frames, which are ignored (noted once per file)"
_CONTENT_PIECE = _SEARCHED_PIECE = 1 << 18
_INPUT = 1 << 16


def read_zst(
    window: Window,
    lineless: frozenset[bytes] = frozenset(),
    read_common: ReadCommon[Common] | None = None,
    max_window: int | None = None,
) -> Iterator[Record | Common | CrawlNotes | Damage | Note]:
    """Every record of the file in `window`. `lineless` and `read_common`: see `read_units`."""
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
    yield from read_units(frames, pos, HeaderShapes(), lineless, read_common)


class Passed:
    """Skippable frames: the offset of the first, how many they are, and their bytes."""

    def __init__(self) -> None:
        self.first = self.number = self.bytes = self._reached = 0

    def add(self, pos: int, end: int) -> None:
        """Add a frame. Those that were added before are read again, perhaps."""
        if pos < self._reached:
            return
        self.first = self.first if self.number else pos
        self.number += 1
        self.bytes += end - pos
        self._reached = end


class Frames(Units):
    """The frames of a file. Their dictionary is that of `inflater`, or the one in the file."""

    start, whole_start = ZSTD_START, _ANY_START
    name, to_repair = "zstd frame", RECOMPRESS_FRAMES

    def __init__(self, window: Window, inflater: Inflater | None = None) -> None:
        super().__init__(window)
        self.inflater = inflater or Inflater()
        self.passed = Passed()
        """The skippable frames that were passed when content was read."""
        self._is_noted = False

    def read_dictionary(self) -> int:
        """Read the dictionary frame, if there is one; returns its end offset. Raises MemberError.

        Without one, the dictionary is the one that the first frame names, if the user gave it.
        """
        if self.window.get(0, 4) != DICTIONARY_MAGIC:
            if (dictionary := known(self.window.get(0, _FRAME_HEADER))) is not None:
                self._use(dictionary)
            return 0
        end = self._end(0)
        if end > MAX_DICTIONARY:
            raise MemberError(f"larger than {MAX_DICTIONARY >> 20} MiB", end)
        try:
            self._use(dictionary_of(self.window.get(0, end)))
        except (zstandard.ZstdError, ValueError) as error:
            raise MemberError(_reason(error), end) from None
        if self._has_frames_up_to(end):
            raise MemberError("its length reaches over other frames", end)
        return end

    def _use(self, dictionary: zstandard.ZstdCompressionDict | None) -> None:
        self.inflater = Inflater(dictionary, self.inflater.max_window)
        self.__dict__.pop("_streams", None)

    def _other_dictionary(self, pos: int, end: int) -> zstandard.ZstdCompressionDict | None:
        """The dictionary in the skippable frame at `pos`, if it has one and that is not the one in use."""
        if not self._has_dictionary(pos, end):
            return None
        try:
            found = dictionary_of(self.window.get(pos, end - pos))
        except (zstandard.ZstdError, ValueError):
            return None
        data, own = found.as_bytes(), self.inflater.dictionary
        is_other = data.startswith(DICTIONARY) and (own is None or own.as_bytes() != data)
        return found if is_other else None

    def _has_frames_up_to(self, end: int) -> bool:
        """Whether frames fill the end of an uncompressed dictionary: its length is wrong, and would hide records."""
        data = self.window.get(0, end)
        if data.startswith(ZSTD_MAGIC, _SKIPPABLE_HEADER):  # a compressed dictionary
            return False
        for magic in ZSTD_START.finditer(data, _SKIPPABLE_HEADER):
            pos = magic.start()
            with suppress(FrameError):
                while pos < end:
                    pos = frame_end(self.window.peek, pos)
                if pos == end:
                    return True
        return False

    def whole(self, buffer: bytes, start: int) -> Iterator[tuple[bytes, int]]:
        """See Units."""
        inflate = self.inflater.whole.decompress
        while (end := frame_within(buffer, start, QUICK_CONTENT)) >= 0:
            try:
                yield inflate(buffer[start:end]), end
            except zstandard.ZstdError:
                return
            start = end

    def passed_over(self) -> Note | None:
        """See Units."""
        one = self.passed
        if not one.number:
            return None
        what = f"{count(one.number, 'skippable zstd frame')} ({one.bytes} bytes)"
        return Note(one.first, f"{what} {'is' if one.number == 1 else 'are'} not copied")

    def follows(self, pos: int) -> bool:
        """Whether a frame starts at `pos`."""
        head = self.window.peek(pos, 4)
        return head == ZSTD_MAGIC or is_skippable(head)

    def take(self, pos: int) -> Found:
        """See Units."""
        if not is_skippable(self.window.get(pos, 4)):
            return super().take(pos)
        try:
            end = self._skippable_end(pos)
        except MemberError as error:
            return self.corrupt(pos, error)
        if (dictionary := self._other_dictionary(pos, end)) is not None:
            end = self._end_of_part(end)
            reason = _OTHER.format(dictionary.dict_id(), end - pos)
            return Found(Damage(pos, reason, RECOMPRESS_FRAMES, is_miscut=True), end)
        if self._is_noted or not self._has_record(pos + _SKIPPABLE_HEADER, end):
            return Found(None, end)
        self._is_noted = True
        return Found(Note(pos, _HIDDEN), end)

    def _end_of_part(self, pos: int) -> int:
        """Where the dictionary at the start of the file is used again, after the part with another one at `pos`."""
        try:
            while self.window.get(pos, 1):
                end = self._end(pos)
                is_own = self._has_dictionary(pos, end) and self._other_dictionary(pos, end) is None
                if is_own and self.inflater.dictionary is not None:
                    break
                pos = end
        except MemberError:
            return self.window.end()
        return pos

    def _has_dictionary(self, pos: int, end: int) -> bool:
        head = self.window.get(pos, _SKIPPABLE_HEADER + len(DICTIONARY))
        is_one = head[:4] == DICTIONARY_MAGIC and head[_SKIPPABLE_HEADER:] in (ZSTD_MAGIC, DICTIONARY)
        return is_one and end - pos <= MAX_DICTIONARY

    def reread(self, pos: int, end: int, error: RecordError) -> Found:
        """See Units. More frames may continue the record."""
        return self.take(pos)

    def content(self, pos: int) -> Pieces:
        """See Units. A skippable frame has none."""
        return Pieces(self._inflate(pos))

    def continues(self, pos: int) -> bool:
        """See Units. Its content starts no record."""
        if self.window.get(pos, 4) != ZSTD_MAGIC:
            return False
        return bool(self.first_bytes(pos, 1)) and not self.probe(pos).is_start

    def first_bytes(self, pos: int, size: int) -> bytes:
        """See Units."""
        try:
            with self._reader(WindowFile(self.window, pos, 1 << 62), 1 << 12) as reader:
                return reader.read(size)
        except zstandard.ZstdError:
            return b""

    def _inflate(self, pos: int) -> Generator[bytes, None, int]:
        end = self._end(pos)
        if is_skippable(self.window.get(pos, 4)):
            self._pass(pos, end)
            return end
        try:
            with self._reader(WindowFile(self.window, pos, end), _INPUT) as reader:
                while piece := reader.read(_CONTENT_PIECE):
                    yield piece
        except zstandard.ZstdError as error:
            raise self._error(pos, end, _reason(error)) from None
        return end

    def _pass(self, pos: int, end: int) -> None:
        """Pass the skippable frame at `pos`. The frames that follow use its dictionary, if it has one."""
        if (dictionary := self._other_dictionary(pos, end)) is not None:
            self._use(dictionary)
        elif self.window.get(pos, 4) != DICTIONARY_MAGIC:
            self.passed.add(pos, end)

    def _error(self, pos: int, end: int, reason: str) -> MemberError:
        """Why the frame from `pos` to `end` cannot be decompressed."""
        try:
            frame = zstandard.get_frame_parameters(self.window.get(pos, _FRAME_HEADER))
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
        """The end of a skippable frame. Raises MemberError if its length is wrong, and would skip records."""
        end = self._end(pos)
        if not self.follows(end) and self.window.peek(end, 1):
            raise MemberError("no zstd frame follows the skippable frame", end)
        return end

    def _has_record(self, pos: int, end: int) -> bool:
        """Whether a record starts between `pos` and `end`. True also if too many frames seem to start there."""
        probes = 0
        while pos < end:
            data = self.window.get(pos, min(_SEARCHED_PIECE, end - pos))
            for magic in ZSTD_START.finditer(data):
                probes += 1
                if probes > _MOST_PROBES or self.probe(pos + magic.start()).is_start:
                    return True
            pos += max(len(data) - len(ZSTD_MAGIC) + 1, 1)
        return False

    def _end(self, pos: int) -> int:
        try:
            return frame_end(self.window.peek, pos)
        except FrameError as error:
            raise MemberError(str(error), error.reached, error.truncated) from None

    def refused(self, pos: int, end: int, error: RecordError) -> Found:
        """See Units."""
        if isinstance(error, BlankContent):
            return Found(None, end)
        if (several := self.several(pos, end)) is not None:
            return Found(several, end)
        hint = NOT_AN_ARCHIVE if isinstance(error, NotARecord) and not pos else error.hint
        return Found(Damage(pos, error.reason, hint), end)


def _mib(size: int) -> int:
    """A size in MiB, rounded up."""
    return -(-size >> 20)


def _reason(error: Exception) -> str:
    """The last part of zstd's message, `zstd decompress error: Data corruption detected`."""
    return str(error).rpartition(": ")[2].lower()
