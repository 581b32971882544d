"""Every record of an archive with all its bytes, in order, so that it can be written again.

    gzip, zst    the content of a record's member or frames, and of blank ones that follow it
    plain        the bytes up to the next record

Joined, the contents are the decompressed archive, without what is reported as Damage. Members and frames that do not
have exactly one record are decompressed to a scratch file, which is read like a plain archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import chain
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from cdxmill.capture import CrawlNotes, Damage, Note, Outcome, Record
from cdxmill.formats.archives.framing import DICTIONARY_MAGIC
from cdxmill.formats.archives.small_member import inflate_member
from cdxmill.formats.archives.warc_header import Head, HeaderMatch, HeaderShapes, head_of
from cdxmill.stages import native
from cdxmill.stages.records.parse_header import FETCH_AGAIN
from cdxmill.stages.records.read_records import Container, container_of, read_records
from cdxmill.stages.records.read_units import Members
from cdxmill.stages.records.take_record import ReadCommon, is_one_record
from cdxmill.stages.records.units import Units
from cdxmill.stages.window import CHUNK, LOCAL_CHUNK, MemberError, ReadAt, Window

if TYPE_CHECKING:
    from cdxmill.stages.records.fetch_record import Archive

Chosen = TypeVar("Chosen")

HELD = 8 << 20
"""Bytes of the largest content that is held in memory."""
_BLANK = b"\r\n \t\0"
_SCRATCH = "content"


class Content(NamedTuple):
    """All bytes of one record: `size` bytes. They are in `data` if they are few (HELD), else `stream` reads them.

    `offset` and `length` are its byte range in the archive. It has one record; or none, if it is blank; or a group.
    `line_length` is the length that an index line of the record has; 0 if the archive cannot have such a line.
    """

    offset: int
    length: int
    size: int
    data: bytes | bytearray | None
    stream: Callable[[], Iterator[bytes]] = lambda: iter(())
    records: int = 1
    line_length: int = 0

    def pieces(self) -> Iterator[bytes]:
        """The bytes."""
        return self.stream() if self.data is None else iter((bytes(self.data),))


class ScratchFiles(Protocol):
    """Scratch files by name."""

    def create(self, name: str, /) -> AbstractContextManager[IO[bytes]]:
        """Create a file to write."""

    def reader(self, name: str, /) -> ReadAt:
        """Open a file to read."""


def read_contents(
    read_at: ReadAt, scratch: ScratchFiles, chunk: int = CHUNK, max_window: int | None = None
) -> Iterator[Content | Damage | Note]:
    """The contents of the archive that `read_at(offset, size)` reads. Everything that is skipped is Damage, or Note.

    Zstandard frames may need a window of `max_window` bytes. A content is valid until the next one is asked for.
    """
    window, shapes = Window(read_at, chunk), HeaderShapes()

    def take(data: bytearray | bytes, offset: int, length: int) -> Content | Outcome:
        if len(data) > HELD or not is_one_record(data, shapes):
            return Outcome.NOT_COMMON
        return Content(offset, length, len(data), data, line_length=length)

    items = read_records(read_at, chunk=chunk, read_common=take, max_window=max_window)
    units = _units_of(window, max_window)
    yield from _contents(items, _Bytes(window, units), scratch)
    if units is not None and (note := units.passed_over()) is not None:
        yield note


def contents_between(read_at: ReadAt, chunk: int) -> Callable[[int, int], Iterator[Content]]:
    """A function that gives the content between two offsets of an archive; none if it is empty."""
    window = Window(read_at, chunk)
    archive: list[_Bytes] = []

    def contents(start: int, end: int) -> Iterator[Content]:
        if not archive:  # the first bytes of a file are read only if they are needed
            archive.append(_Bytes(window, _units_of(window)))
        return archive[0].contents(start, end, None)

    return contents


def dictionary_in(read_at: ReadAt) -> bytes:
    """The dictionary that an archive starts with; b"" if it has none, or one that `recompress` cannot write.

    Content without tables of probabilities, which has no id, is not a dictionary that WARC-Zstd allows.
    """
    if read_at(0, len(DICTIONARY_MAGIC)) != DICTIONARY_MAGIC:
        return b""
    from cdxmill.formats.archives.zstd_dictionary import dictionary_id
    from cdxmill.stages.records.read_zst import Frames  # the library is slow to import

    frames = Frames(Window(read_at, LOCAL_CHUNK))
    try:
        frames.read_dictionary()
        dictionary_id(frames.inflater.dictionary_bytes)
    except ValueError:
        return b""
    return frames.inflater.dictionary_bytes


def without_notes(
    items: Iterator[Content | Damage | Note], take: Callable[[Note], object]
) -> Iterator[Content | Damage]:
    """The contents and the damage. `take` gets the notes."""
    for item in items:
        if isinstance(item, Note):
            take(item)
        else:
            yield item


class Refusals(NamedTuple):
    """Quick tests for records that nobody asks for: by its type and URL, and by all bytes of the record."""

    by_head: Callable[[Head], bool] | None = None
    by_content: Callable[[bytes | bytearray], bool] | None = None


def choose_contents(
    read_at: ReadAt,
    scratch: ScratchFiles,
    choose: Callable[[Content, HeaderMatch | None], Chosen | None],
    chunk: int = CHUNK,
    refusals: Refusals = Refusals(),  # noqa: B008 - it cannot be changed
    note: Callable[[Note], object] = lambda _: None,
) -> Iterator[Chosen | Damage]:
    """What `choose` makes of each record's content and of its header's match, if that is known; without None.

    It is not asked about a record that is refused. `note` gets what is unusual in the archive. If a member or frame does not have exactly one record, the
    archive is read again from there, as `read_contents` does.
    """
    window, shapes = Window(read_at, chunk), HeaderShapes()
    take = _taker(choose, shapes, refusals)
    archive = _Bytes(window, _units_of(window))
    found: Iterator[Content | Damage | Note]
    for item in read_records(read_at, chunk=chunk, read_common=take):
        assert not isinstance(item, CrawlNotes)  # they stand only for records of types that are not asked for
        if isinstance(item, Damage) and item.is_miscut:
            again = read_contents(read_at, scratch, chunk)
            found = (one for one in again if one.offset >= item.offset)
        elif isinstance(item, Record):
            found = archive.contents(item.offset, item.offset + item.length, None)
        elif isinstance(item, Note):
            note(item)
            continue
        else:
            yield item
            continue
        for one in found:
            if isinstance(one, Damage):
                yield one
            elif isinstance(one, Content) and one.records and (chosen := choose(one, None)) is not None:
                yield chosen
        if isinstance(item, Damage):
            return


def choose_at(
    choose: Callable[[Content, HeaderMatch | None], Chosen | None],
) -> Callable[[Archive, bytes, int, int | None], Chosen | None]:
    """A function of an archive, the bytes of a record there if they are in memory, its offset and its length.

    It returns what `choose` makes of the record at this place, and raises what `Archive.record` raises.
    """
    take = _taker(choose, HeaderShapes(), Refusals())

    def choose_record(archive: Archive, held: bytes, offset: int, length: int | None) -> Chosen | None:
        data = inflate_member(held, HELD)
        chosen = Outcome.NOT_COMMON if data is None else take(data, offset, len(held))
        if chosen is Outcome.NOT_COMMON:
            fetched = archive.record(offset, length)
            found, size = _held(fetched.content())
            return choose(Content(offset, fetched.record.length, size, found, fetched.content), None)
        return None if isinstance(chosen, Outcome | CrawlNotes) else chosen

    return choose_record


def _taker(
    choose: Callable[[Content, HeaderMatch | None], Chosen | None], shapes: HeaderShapes, refusals: Refusals
) -> ReadCommon[Chosen]:
    match_header, no_line = shapes.match, Outcome.NO_LINE
    by_head, by_content = refusals
    read_head = native.head

    def take(data: bytearray | bytes, offset: int, length: int) -> Chosen | Outcome:
        if len(data) > HELD:
            return Outcome.NOT_COMMON
        if by_head is not None and read_head is not None:
            head = read_head(data)
            if head is not None and by_head(Head(*head)):
                return no_line
        found = match_header(data)
        if found is not None:
            shape, match = found  # does the record end where the data does?
            if match.end() + int(match[shape.length]) + 4 == len(data) and data.endswith(b"\r\n\r\n"):
                if by_head is not None and read_head is None and by_head(head_of(found)):
                    return no_line
                if by_content is not None and by_content(data):
                    return no_line
                return choose(Content(offset, length, len(data), data), found) or no_line
        if not is_one_record(data, shapes):
            return Outcome.NOT_COMMON
        return choose(Content(offset, length, len(data), data), found) or no_line

    return take


def _contents(
    items: Iterator[Content | Record | CrawlNotes | Damage | Note], archive: _Bytes, scratch: ScratchFiles
) -> Iterator[Content | Damage]:
    start, last, miscut = 0, None, False  # of what was read, but not returned yet
    line_length = 0
    for item in chain(items, (None,)):
        if isinstance(item, Note) or (miscut and isinstance(item, Damage)):
            continue
        assert not isinstance(item, CrawlNotes)  # they stand only for records of types that are not asked for
        end = archive.end() if item is None else item.offset
        if miscut:
            yield from _contents_of_miscut(archive, start, end, scratch)
        elif start >= 0:
            for content in archive.contents(start, end, last):
                yield content if content is last else content._replace(line_length=line_length)
        last, miscut = None, False
        if isinstance(item, Damage):
            miscut = item.is_miscut
            start = item.offset if miscut else -1
            if not miscut:
                yield item
        elif item is not None:
            start, last = item.offset, item if isinstance(item, Content) else None
            line_length = item.length


def _units_of(window: Window, max_window: int | None = None) -> Units | None:
    """The members or frames of an archive; None if it is not compressed."""
    container = container_of(window)
    if container is not Container.ZST:
        return Members(window) if container is Container.GZIP else None
    from cdxmill.formats.archives.zstd_dictionary import Inflater
    from cdxmill.stages.records.read_zst import Frames  # the library is slow to import

    frames = Frames(window, Inflater(max_window=max_window))
    with suppress(MemberError):  # reported by read_records
        frames.read_dictionary()
    return frames


def _held(pieces: Iterator[bytes]) -> tuple[bytearray | None, int]:
    """The bytes of a content if they are few (HELD), else None; and how many they are."""
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > HELD:
            return None, len(data) + sum(map(len, pieces))
    return data, len(data)


class _Bytes:
    """The bytes of an archive, decompressed. `units` are its members or frames; None if it is not compressed."""

    def __init__(self, window: Window, units: Units | None) -> None:
        self._window, self._units = window, units
        self.end = window.end

    def contents(self, start: int, end: int, known: Content | None) -> Iterator[Content]:
        """The content between two offsets; none if it is empty. `known` is what was read at `start` already."""
        if known is not None and start + known.length == end:
            yield known
            return
        data, size = _held(self._pieces(start, end))
        if data is None:
            yield Content(start, end - start, size, None, lambda: self._pieces(start, end))
        elif data:
            yield Content(start, end - start, size, data, records=1 if data.strip(_BLANK) else 0)

    def _pieces(self, pos: int, end: int) -> Iterator[bytes]:
        if self._units is None:
            return self._window.pieces(pos, end - pos)
        return self._units.contents(pos, end)

    def decompress(self, pos: int, end: int, file: IO[bytes]) -> tuple[int, Damage | None]:
        """Decompress to `file` up to `end` or to damage. Returns the offset where more follows, and the damage."""
        assert self._units is not None
        while pos < end:
            size, unit = file.tell(), self._units.content(pos)
            try:
                for piece in unit:
                    file.write(piece)
            except MemberError as error:
                if not error.truncated:  # then no byte of it is certain
                    file.seek(size)
                    file.truncate()
                following = min(self._units.next_whole(pos), end)
                return following, Damage(pos, f"{error}; {following - pos} bytes skipped", FETCH_AGAIN)
            pos = unit.end
        return end, None


def _contents_of_miscut(
    archive: _Bytes, start: int, end: int, scratch: ScratchFiles
) -> Iterator[Content | Damage]:
    """The contents of members or frames that do not have exactly one record each."""
    from cdxmill.stages.records.read_plain import read_plain

    while start < end:
        with scratch.create(_SCRATCH) as file:
            after, damage = archive.decompress(start, end, file)
        window = Window(scratch.reader(_SCRATCH), LOCAL_CHUNK)
        for item in _contents(read_plain(window), _Bytes(window, None), scratch):
            if isinstance(item, Damage):
                reason = f"{item.reason}, at byte {item.offset} of the decompressed content"
                yield Damage(start, reason, item.hint)
            else:
                yield item._replace(offset=start, line_length=0)
        if damage is not None:
            yield damage
        start = after
