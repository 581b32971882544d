"""The CDX files that the user named: found, looked at once before a run, and read.

For a remote file each question is a request. So size, time and first bytes are asked for together, and all that is
decided before the files are read is computed from them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.archives.framing import GZIP_MAGIC
from cdxmill.formats.lines.capture_fields import place_in
from cdxmill.formats.lines.cdx_lines import CDX_NAME
from cdxmill.inputs.named import Input, Search, Wanted, all_listed
from cdxmill.inputs.pipes import Pipes
from cdxmill.running.failures import Failures
from cdxmill.running.processes import counted
from cdxmill.stages.lines.cdx_text import (
    LineCheck,
    LineError,
    fields_of,
    name_of,
    read_cdx,
    read_content,
    read_large_pieces,
)
from cdxmill.stages.lines.line_lists import Piece, is_capture_line
from cdxmill.stages.lines.sorted_input import SeekPoints, note_seek_points
from cdxmill.stages.window import MemberError, Window, chunk_of
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location, PathOrUrl, ask_all, locate
from cdxmill.storage.reading import first_bytes, look, open_unchanged

_LARGE_CHUNK = 1 << 20
_CDX = Wanted(
    "CDX files",
    CDX_NAME,
    "in directories, cdxmill searches for .cdx, .cdxj, .cdx.gz and .cdxj.gz files; for the shards of a cluster write"
    " DIR/cdx-*.gz",
)
HEAD = 1 << 16
"""Bytes at the start of a file that are read to see its lines."""
_HEADS = 8
"""Heads of the largest files. The number of lines is guessed from them."""
_BATCH = 256
"""Files whose heads are in memory at a time."""
_FAR, _FAR_READ = 4 << 20, 1 << 18
"""If the head has no capture line: bytes of text in which one is searched, and bytes per read."""


def find_cdx_files(named: list[str], failures: Failures, pipes: Pipes | None = None) -> list[str]:
    """The CDX files that the user named: files, globs, and directories, also as s3 and hdfs URLs; an http URL is one file.

    With `pipes`, also pipes and - for standard input. Inputs that cannot be listed are reported to `failures`, and what
    was skipped in directories. Raises UsageError if there is no file, InputError if nothing could be listed.
    """
    return [entry.path for entry in find_cdx_inputs(named, failures, pipes)]


def cdx_files_of(named: Iterable[str]) -> list[str]:
    """The CDX files that were named for a job. Raises UsageError, InputError, also if only one of them cannot be listed."""
    with all_listed() as failures:
        return find_cdx_files(list(named), failures)


def find_cdx_inputs(named: list[str], failures: Failures, pipes: Pipes | None = None) -> list[Input]:
    """The same files, with the names that their outputs can have."""
    search = Search(_CDX, failures, pipes)
    for name in named:
        search.add(name)
    return search.finish(named)


def read_pieces(path: PathOrUrl, chunk: int = 0) -> Iterator[bytes]:
    """The text of the CDX file at a path or URL, in pieces; `chunk` bytes are read at a time.

    Each piece is checked before it is passed on. Raises InputError if the file cannot be read, is empty or
    corrupt, or has a line that is no CDX line.
    """
    return _read(path, chunk or chunk_of(locate(path).is_remote), read_content)


def read_text(path: PathOrUrl) -> Iterator[bytes | bytearray]:
    """As `read_pieces`, but pieces can have 4 MiB and be bytearrays: for readers that copy only some of the lines."""
    return _read(path, max(_LARGE_CHUNK, chunk_of(locate(path).is_remote)), read_large_pieces)


def _read(path: PathOrUrl, chunk: int, content: Callable[[Window], Iterator[Piece]]) -> Iterator[Piece]:
    with open_unchanged(path) as read_at:
        yield from read_cdx(str(path), Window(counted(read_at), chunk), content)


def read_sorted(path: PathOrUrl, most: int, take: Callable[[bytes], object]) -> SeekPoints | None:
    """Pass the text of a gzip CDX file to `take`, in pieces. The result makes the file a sorted run.

    None if it cannot be one: it is not gzip, not sorted or corrupt, has a line that is no CDX line, or a gzip member has
    more than `most` plain bytes. Some of the text may have been passed then. Raises InputError if it cannot be read.
    """
    check = LineCheck()

    def take_checked(piece: bytes) -> None:
        check.take(piece)
        take(piece)

    with open_unchanged(path) as read_at:
        window = Window(counted(read_at), chunk_of(locate(path).is_remote))
        if window.get(0, len(GZIP_MAGIC)) != GZIP_MAGIC or GZIP_MAGIC not in read_at(1, most):
            return None  # without another member in `most` compressed bytes, there are more plain ones in the first
        try:
            seek_points = note_seek_points(window, most, take_checked)
            check.end()
        except (MemberError, LineError):
            return None
    return seek_points


class CdxSource(NamedTuple):
    """A CDX file as it was when the run started. Size and time are 0 if unknown.

    `fields` is the number of fields of its lines (see `fields_of`), None if it has no line. `archive` is the name of an
    archive in the first line.
    """

    location: Location
    size: int
    modified: float
    fields: int | None = None
    is_empty: bool = False
    archive: bytes = b""

    @property
    def path(self) -> str:
        """Its path or URL."""
        return self.location.text

    def state(self) -> tuple[str, int, float]:
        """Changes when the file does."""
        path = self.path if self.location.is_remote else str(Path(self.path).absolute())
        return path, self.size, self.modified


@dataclass(frozen=True)
class Inventory:
    """The sources of a run, in their order, and the heads of the largest of them if they were read."""

    sources: Sequence[CdxSource]
    known_heads: Sequence[bytes] = ()

    @property
    def size(self) -> int:
        """Bytes of all files whose size is known."""
        return sum(source.size for source in self.sources)

    @cached_property
    def states(self) -> list[tuple[str, int, float]]:
        """Those of all files, in their order."""
        return [source.state() for source in self.sources]

    @property
    def total(self) -> int:
        """Bytes of all files, for a progress bar; 0 if a file has an unknown size."""
        return self.size if all(source.size or source.is_empty for source in self.sources) else 0

    def heads(self) -> Sequence[bytes]:
        """The heads of the largest files. They are read now if `take_inventory` has not read them."""
        if self.known_heads:
            return self.known_heads
        largest = heapq.nlargest(_HEADS, self.sources, key=lambda source: (source.size, source.path))
        return ask_all(partial(first_bytes, size=HEAD), [source.location for source in largest])


def take_inventory(paths: Sequence[PathOrUrl], formats: bool = False) -> Inventory:
    """Look at each file once. Without `formats` only size and time are asked for, and no lines are read.

    Files that cannot be read are left for the reader to report.
    """
    places = list(map(locate, paths))
    if not formats:
        return Inventory(ask_all(_size_of, places))
    sources: list[CdxSource] = []
    heads: list[tuple[int, str, bytes]] = []
    for start in range(0, len(places), _BATCH):
        looks = ask_all(_look, places[start : start + _BATCH])
        sources += [source for source, _ in looks]
        heads += [(source.size, source.path, head) for source, head in looks]
        heads = heapq.nlargest(_HEADS, heads)
    return Inventory(sources, [head for _, _, head in heads])


def _size_of(place: Location) -> CdxSource:
    return _source(place, *look(place, 0))


def _look(place: Location) -> tuple[CdxSource, bytes]:
    """The source with its fields, and its head."""
    entry, head = look(place, HEAD)
    source = _source(place, entry, head)
    line = _line_of(source, head) if head else None
    if line is not None:
        source = source._replace(fields=fields_of(line))
        with suppress(ValueError):
            source = source._replace(archive=place_in(line)[0].filename)
    return source, head


def _source(place: Location, entry: Entry | None, head: bytes) -> CdxSource:
    if entry is None:
        return CdxSource(place, 0, 0)
    is_empty = not entry.size and not entry.is_directory and not head
    return CdxSource(place, entry.size, entry.modified, None, is_empty)


def have_changed(sources: Sequence[CdxSource]) -> bool:
    """Whether the size or time of a file has changed: the storage is asked again for each."""
    found = ask_all(_size_of, [source.location for source in sources])
    return [one[1:3] for one in found] != [one[1:3] for one in sources]


def check_formats(sources: Iterable[CdxSource]) -> CdxSource | None:
    """The first source that has lines. Raises UsageError if another one has lines of another format."""
    first, name = None, ""
    for source in sources:
        if source.fields is None:
            continue
        own = name_of(source.fields)
        if first is None:
            first, name = source, own
        if own != name:
            raise UsageError(
                f"{first.path} is {name}, but {source.path} is {own}:"
                " all CDX files of a cluster must have the same format"
            )
    return first


def _line_of(source: CdxSource, head: bytes) -> bytes | None:
    """The first capture line. If the head has none, the file is read further.

    A head can be short because the server limits its answers, so only the size shows that it is the whole file.
    """
    is_whole = len(head) == source.size
    window = Window(lambda offset, size: head[offset : offset + size], HEAD)
    line = _first_line(chain(read_content(window), (b"\n",) if is_whole else ()))
    if line is None and not is_whole:
        line = _first_line(chain(read_pieces(source.location, _FAR_READ), (b"\n",)))
    return line


def _first_line(pieces: Iterable[bytes]) -> bytes | None:
    """The first capture line that ends in a text. None if there is none near the start, or corrupt data come first."""
    begun, seen = b"", 0
    with suppress(InputError, MemberError):
        for piece in pieces:
            *lines, begun = (begun + piece).split(b"\n")
            seen += len(piece)
            first = next(filter(is_capture_line, lines), None)
            if first is not None or seen > _FAR:
                return first
    return None
