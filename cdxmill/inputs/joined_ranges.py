"""Archives that are read in ranges of neighboring records: one request per range."""

from __future__ import annotations

import tempfile
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

from cdxmill.inputs.archive_store import OpenArchives, open_start_of
from cdxmill.stages.records.fetch_record import Archive
from cdxmill.stages.window import ReadAt
from cdxmill.storage.cache import open_known
from cdxmill.storage.local import stopping
from cdxmill.storage.location import Location

JOINED = 8 << 20
"""Maximum bytes of neighboring records in one request, unless one record is larger."""
GAP = 16 << 10
"""Bytes between two records that are read along: a new request takes as long as reading them."""
_HELD = 16 << 20
"""Bytes of the largest range that is kept in memory. A larger one, which is a single record, goes to a file."""
_FETCH_PIECE = 4 << 20
_FAR = 0.005
"""Seconds. If a request took longer, the next one is sent in a thread before the records of the last one are checked."""


def is_one_request(start: int, last_end: int, following: tuple[int, int], gap: int = GAP) -> bool:
    """Whether one request fetches a record with offset and end `following`, too: the others are from `start` to `last_end`."""
    offset, end = following
    return offset <= last_end + gap and end - start <= JOINED


class JoinedRanges:
    """One archive. Reads inside the range that was fetched last are answered from memory, or from a file."""

    def __init__(self, read_at: ReadAt, before: Callable[[], None], archive: Location) -> None:
        self._read, self._before, self.place = read_at, before, archive
        self._start, self._size = 0, 0
        self._fetched: ReadAt = lambda offset, size: b""
        self._begun: tuple[int, int, Future[bytes]] | None = None
        self.archive = Archive(self.read_at, open_start_of(archive))
        self.requests = self.bytes = 0

    def begin(self, start: int, size: int) -> None:
        """Begin to fetch a range that `fetch` is going to want, unless it is too large for memory."""
        if size <= _HELD and self._begun is None:
            self._begun = start, size, Future()
            Thread(target=self._run, args=self._begun, daemon=True).start()  # it does not outlive the process

    def _run(self, start: int, size: int, begun: Future[bytes]) -> None:
        try:
            self._before()
            begun.set_result(self._read(start, size))
        except BaseException as error:  # `_taken` raises it
            begun.set_exception(error)

    def fetch(self, start: int, size: int, directory: Path) -> None:
        """Fetch a range; one that is too large for memory goes to a temporary file in `directory`. Raises InputError."""
        self._size = 0
        if size <= _HELD:
            data = self._taken(start, size)
            self._fetched = lambda offset, size: data[offset : offset + size]
            self._start, self._size = start, len(data)
            return
        with stopping(directory):
            directory.mkdir(parents=True, exist_ok=True)
            file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - closed with `read_file`
            done = 0
            while piece := self._ask(start + done, min(_FETCH_PIECE, size - done)):
                file.write(piece)
                done += len(piece)

        def read_file(offset: int, size: int) -> bytes:
            file.seek(offset)
            return file.read(size)

        weakref.finalize(read_file, file.close)
        self._fetched, self._start, self._size = read_file, start, done

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`; fewer only at the end of the archive."""
        index = offset - self._start
        if index >= 0 and index + size <= self._size:
            return self._fetched(index, size)
        return self._ask(offset, size)

    def held(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset` if they were fetched and are in memory; else b""."""
        index = offset - self._start
        is_held = size <= _HELD and index >= 0 and index + size <= self._size
        return self._fetched(index, size) if is_held else b""

    def inside(self) -> tuple[Archive, int, int]:
        """The fetched range as an archive that has nothing else, with the first offset and the one after the last."""

        def read_at(offset: int, size: int) -> bytes:
            index = offset - self._start
            return self._fetched(index, size) if 0 <= index < self._size else b""

        return self.archive.within(read_at), self._start, self._start + self._size

    def _taken(self, start: int, size: int) -> bytes:
        """The bytes of a range: of the read that was begun, if it is the same range."""
        begun, self._begun = self._begun, None
        if begun is None or begun[:2] != (start, size):
            return self._ask(start, size)
        return self._counted(begun[2].result())

    def _ask(self, offset: int, size: int) -> bytes:
        if size <= 0:
            return b""
        self._before()
        return self._counted(self._read(offset, size))

    def _counted(self, data: bytes) -> bytes:
        self.requests += 1
        self.bytes += len(data)
        return data


class OpenRanges(OpenArchives[JoinedRanges]):
    """Open archives, read in ranges. A web server is not asked first whether a file exists.

    `before` is called before each request. Processes with the same directory `shared` download an archive whose server
    does not support ranges once.
    """

    def __init__(self, before: Callable[[], None], shared: Path | None = None) -> None:
        super().__init__()
        self._before, self._shared = before, shared
        self._seconds = 0.0

    def opened(self, place: Location) -> JoinedRanges:
        """The archive at a place, opened if it is not open yet. Raises InputError."""
        if place not in self:
            files = ExitStack()
            opened = open_known(place, self._shared) if place.is_remote else place.open_ranges()
            read_at = self._timed(files.enter_context(opened))
            self[place] = JoinedRanges(read_at, self._before, place), files
        return self[place][0]

    def _timed(self, read_at: ReadAt) -> ReadAt:
        def read(offset: int, size: int) -> bytes:
            start = time.monotonic()
            data = read_at(offset, size)
            self._seconds = time.monotonic() - start
            return data

        return read

    def begin(self, place: Location, start: int, size: int) -> None:
        """Begin to fetch a range of the archive at a place, unless its storage is near, or to open it takes a request."""
        is_open = place.properties.opens_freely or (place in self and place.is_remote)
        if is_open and self._seconds > _FAR:
            self.opened(place).begin(start, size)
