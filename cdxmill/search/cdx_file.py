"""A CDX file, opened for lookups as a cluster is.

    plain, sorted          searched in place, by byte ranges
    gzip, or not sorted    its lines are sorted to a temporary file, which is searched

A local file of up to 64 MiB is checked to be sorted when it is opened. Of a larger or a remote one, the order of a few
lines is checked then, so that files written one after the other are noticed. The order of what is read later is checked,
too, and lines out of order are an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

from cdxmill.errors import AbsentError, InputError
from cdxmill.formats.archives.framing import GZIP_MAGIC
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.inputs.cdx_files import read_pieces
from cdxmill.inputs.pipes import is_pipe, unpiped
from cdxmill.search.many import READS
from cdxmill.stages.lines.cdx_text import REBUILD, fields_of
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines, text_of
from cdxmill.stages.lines.merge_lines import sort_lists
from cdxmill.stages.lines.sorted_input import Order
from cdxmill.stages.window import ReadAt
from cdxmill.stages.zipnum.block_pieces import ReadShard
from cdxmill.stages.zipnum.find_lines import BlockReader
from cdxmill.stages.zipnum.secondary_index import DamagedCluster
from cdxmill.stages.zipnum.sorted_text import PAGE, SortedPieces, TextIndex, spread_pages
from cdxmill.storage.location import Location, locate, pieces
from cdxmill.storage.scratch import Scratch, temporary_directory

_CHECKED = 64 << 20
"""Bytes of a file that is checked whole: 0.02 seconds."""
_HEAD = PAGE
_SPREAD, _REMOTE_SPREAD = 64, 16
"""The parts of a file at whose borders a line is compared: 2 ms, and a request for each."""
_SAMPLE = 100
"""Lines at the start of a file that are kept whatever is searched: they show which fields the lines have."""
_RARELY = 20
"""A file that has changed is opened again after this many times the time that it took to open it."""
_ORDERS = {b"N b a m s k r M S V g", b"N b a m s k r V g", b"N b a S V g"}
"""The fields of CDX files, in the order in which cdxmill reads them."""


class Origin:
    """A local file as it was before it was opened."""

    def __init__(self, place: Location) -> None:
        self._place, self._state = place, place.status()
        self._begun = time.monotonic()
        self._until = 0.0

    def is_open(self) -> None:
        """The file is open now: a file that changes all the time must not be opened all the time."""
        now = time.monotonic()
        self._until = now + _RARELY * (now - self._begun)

    def has_changed(self) -> bool:
        """Whether it is another file now."""
        return time.monotonic() >= self._until and self._place.status() != self._state


class CdxFile:
    """A sorted text with the name `cluster` in messages, searched as a `ClusterReader` is."""

    is_remote = False
    overlays = ()

    def __init__(self, cluster: str, read_at: ReadAt, size: int, origin: Origin | None = None) -> None:
        self.cluster, self.index = cluster, TextIndex(read_at, size)
        self._read_at, self._origin = read_at, origin

    def read(self, shard: bytes, offset: int, size: int) -> bytes:
        """Bytes of the file."""
        return self._read_at(offset, size)

    def blocks(self, read: ReadShard | None = None) -> BlockReader:
        """A reader of blocks, by `read` or else by its own function."""
        return BlockReader(read or self.read, SortedPieces)

    def block_lines(self) -> int:
        """0: blocks have no fixed number of lines."""
        return 0

    def has_full_blocks(self) -> bool:
        """False: blocks have no fixed number of lines."""
        return False

    def has_changed(self) -> bool:
        """Whether a local file has changed. It is not asked again at once if it took long to open."""
        return self._origin is not None and self._origin.has_changed()


@contextmanager
def open_cdx_file(place: Location, keys: KeyRange | None = None) -> Iterator[CdxFile]:
    """Open a CDX file, or a pipe with CDX lines. If it has to be copied, only the lines of `keys` are copied.

    Raises InputError if it cannot be read, is corrupt or is not a CDX file, also inside the `with`. A pipe may be empty.
    """
    name = place.text
    origin = None if place.is_remote or is_pipe(name) else Origin(place)
    with ExitStack() as files:
        try:
            if is_pipe(name):
                place = files.enter_context(unpiped(name))
            read_at, size = _open(place, files)
            if not _is_searchable(place, read_at, size) and (size or place.text == name):
                directory = files.enter_context(temporary_directory())
                copy = _sorted_copy(place, Scratch(Path(directory)), keys)
                read_at, size = files.enter_context(locate(copy).open_ranges()), copy.stat().st_size
            if origin is not None:
                origin.is_open()
            yield CdxFile(name, read_at, size, origin)
        except DamagedCluster as error:
            raise InputError(name, str(error), error.hint) from None
        except InputError as error:
            if error.path != place.text:
                raise
            raise type(error)(name, error.reason, error.hint) from None


def _open(place: Location, files: ExitStack) -> tuple[ReadAt, int]:
    """`read_at` of a file and its size; a size of 0 if it is unknown."""
    if not place.is_remote:
        found = place.status()
        if found is None:
            raise AbsentError(str(place), "cannot be read (No such file or directory)", "check the path")
        return files.enter_context(place.open_ranges()), found.size
    from cdxmill.storage.cache import open_cached  # slow to import, and only remote files need it

    ranges = files.enter_context(open_cached(place))
    return ranges.read_at, ranges.size or 0


def _is_searchable(place: Location, read_at: ReadAt, size: int) -> bool:
    """Whether the file can be searched in place. Raises InputError if it is not a CDX file."""
    head = read_at(0, _HEAD)
    if not size or head.startswith(GZIP_MAGIC):
        return False
    lines = head.split(b"\n")
    for line in lines if len(head) == size else lines[:-1]:
        _check_header(place, line)
    first = next(filter(is_capture_line, lines), None)
    if first is None or (b"\n" in head and fields_of(first) is None):
        return False  # read_pieces reports what is wrong
    start = max(size - 1 - PAGE, 0) // PAGE * PAGE
    end = read_at(start, size - start)
    if not end.endswith(b"\n"):
        return False
    if not place.is_remote and size <= _CHECKED:
        return _is_sorted(pieces(read_at))
    begun = b"\n".join(lines[:-1]) + b"\n"
    return (
        _is_sorted([begun]) and _is_sorted([end[end.find(b"\n") + 1 :]]) and _is_spread(place, read_at, size)
    )


def _check_header(place: Location, line: bytes) -> None:
    """Raise InputError if a header gives the fields another order than the one in which they are read."""
    if line.startswith(b" CDX ") and line[5:].strip() not in _ORDERS:
        raise InputError(
            str(place), f"its header {line[:80].strip()!r} has fields in an unknown order", REBUILD
        )


def _is_sorted(text: Iterable[bytes]) -> bool:
    """Whether the lines of a text, which comes in pieces, are sorted. There may be a header at its start."""
    order, rest = Order(), iter(text)
    first = next(rest, b"")
    if first.startswith(b" CDX"):
        first = first[first.find(b"\n") + 1 :]
    return all(map(order.take, chain((first,), rest)))


def _is_spread(place: Location, read_at: ReadAt, size: int) -> bool:
    """Whether the first lines of some pages are sorted. Pages of a remote file are read at the same time."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    pages = spread_pages(-(-size // PAGE), _REMOTE_SPREAD if place.is_remote else _SPREAD)
    if place.is_remote:
        with ThreadPoolExecutor(READS) as pool:
            list(pool.map(lambda page: read_at(page * PAGE, PAGE), pages))  # the cache keeps them
    return TextIndex(read_at, size).are_sorted(pages)


def _sorted_copy(place: Location, scratch: Scratch, keys: KeyRange | None) -> Path:
    """A sorted file in `scratch` with the lines of a file: all of them, or those in the range of `keys`."""
    name = "sorted.cdx"
    lists = sort_lists(_wanted(place, keys), "lines", scratch.create, scratch.reader)
    with scratch.create(name) as file:
        _write(lists, file)
    return scratch.directory / name


def _write(lists: Iterator[list[bytes]], file: IO[bytes]) -> None:
    for lines in lists:
        file.write(text_of(lines))


def _wanted(place: Location, keys: KeyRange | None) -> Iterator[list[bytes]]:
    seen = 0
    for lines in split_lines(read_pieces(place)):
        for line in lines:
            if line.startswith(b" CDX "):  # a file that follows another has its own header
                _check_header(place, line)
        is_wanted = _any if keys is None else _between(keys.low, keys.high)
        few = lines[: max(_SAMPLE - seen, 0)]
        yield [*few, *filter(is_wanted, lines[len(few) :])]
        seen += len(lines)


def _any(line: bytes) -> bool:
    return True


def _between(low: bytes, high: bytes) -> Callable[[bytes], bool]:
    return lambda line: low <= line < high
