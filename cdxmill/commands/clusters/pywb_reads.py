"""What pywb reads for `serve`: archives and shards, through the storage of cdxmill and by the rules of SECURITY.md.

pywb itself opens every path and URL that an index line or cluster.loc names. The configuration that `serve` writes
names `resolver` as pywb's only resolver of archives. pywb then asks it where an archive is, and reads all but local
files and its own package through the classes below. So pywb reads what `get` reads: also a WACZ, Zstandard and HDFS.

pywb is never imported here: its configuration hands over what is needed of it.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.cluster.reader import open_known
from cdxmill.errors import InputError
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.stages.records.fetch_record import FetchedRecord
from cdxmill.storage.location import Location, locate, pieces
from cdxmill.storage.reach import LedUrl, Reach

_REMOTE = ("http", "https", "s3", "s3a", "hdfs", "webhdfs")
_OWN = "pkg://pywb/"
_KEPT = 10.0
"""Seconds after which a path index is read again. archives.tsv is read when it changes: `add` gives it new archives."""


def resolver(loaders: type[Any], directory: str, named: str | None) -> Resolver:
    """The resolver of archives for the cluster in `directory`; `named` as in ArchivePlaces. config.yaml calls this.

    `loaders` is pywb's BlockLoader. All its loaders but that of local files are replaced.
    """
    known = loaders.loaders
    found = Resolver(ArchivePlaces(named, locate(directory)), f"cdxmill{len(known)}")
    if ShardLoader not in known.values():  # the first collection
        known.update(dict.fromkeys(_REMOTE, ShardLoader), pkg=partial(OwnPackage, known["pkg"]))
    known[found.scheme] = partial(RecordLoader, found)
    return found


class Resolver:
    """Where the archives of index lines are. pywb calls it with the file name of a line.

    The answer begins with its `scheme`, which each collection of pywb has for itself.
    """

    def __init__(self, places: ArchivePlaces, scheme: str) -> None:
        self._places, self.scheme = places, scheme
        self._known: ArchiveStore | None = None
        self._read = 0.0
        self._state: object = None

    def __call__(self, filename: str, cdx: object) -> list[str]:
        """One URL for each place of an archive: scheme://N/NAME. Reading it reports an error."""
        with closing(self.open()) as store:
            try:
                count = len(store.locations(filename))
            except InputError:
                count = 1
        return [f"{self.scheme}://{number}/{filename}" for number in range(count)]

    def open(self) -> ArchiveStore:
        """The archives, for one request: requests share no open file. A path index that changes is read again."""
        state = self._places.state()
        if self._known is None or state != self._state or time.monotonic() - self._read > _KEPT:
            self._known, self._read, self._state = self._places.open(), time.monotonic(), state
        return self._known.fresh()


class RecordLoader:
    """Reads the records of archives for pywb. `profile` is what pywb gives to each loader."""

    def __init__(self, places: Resolver, **profile: object) -> None:
        self._places = places

    def load(self, url: str, offset: int, length: int) -> io.BufferedReader:
        """A record, decompressed. Raises InputError."""
        number, _, filename = url.partition("://")[2].partition("/")
        with ExitStack() as files:
            store = files.enter_context(closing(self._places.open()))
            place = store.locations(filename)[int(number)]
            found = _record(store, place, offset, length if length > 0 else None)
            return _stream(found.content(), files.pop_all())


class ShardLoader:
    """Reads a range of a file that the cluster.loc of a local cluster names."""

    def __init__(self, **profile: object) -> None:
        pass

    def load(self, url: str, offset: int, length: int) -> io.BufferedReader:
        """The `length` bytes at `offset` as they are stored; -1 is the rest of the file. Raises InputError."""
        with ExitStack() as files:
            read_at = files.enter_context(open_known(locate(LedUrl(url, Reach.NETWORK))))
            if length >= 0:
                return io.BufferedReader(io.BytesIO(read_at(offset, length)))
            return _stream(pieces(lambda start, size: read_at(offset + start, size)), files.pop_all())


class OwnPackage:
    """Reads files of pywb's own package. Another package would be imported."""

    def __init__(self, loader: type[Any], **profile: object) -> None:
        self._loader = loader(**profile)

    def load(self, url: str, offset: int = 0, length: int = -1) -> Any:
        """What pywb's loader gives. Raises InputError for another package."""
        if not url.startswith(_OWN):
            raise InputError(url, "is no file of pywb")
        return self._loader.load(url, offset, length)


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file, which closes `files` with itself."""

    def __init__(self, found: Iterator[bytes], files: ExitStack) -> None:
        self._found, self._files, self._left = found, files, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._left = self._left or next(filter(None, self._found), b"")
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size

    def close(self) -> None:
        self._files.close()
        super().close()


def _record(store: ArchiveStore, place: Location, offset: int, length: int | None) -> FetchedRecord:
    """The record at an offset. If a line has not its length, as those of other indexers may, that is found out."""
    try:
        return store.read(place, offset, length)
    except InputError:
        if length is None:
            raise
        return store.read(place, offset, None)


def _stream(found: Iterator[bytes], files: ExitStack) -> io.BufferedReader:
    return io.BufferedReader(_Pieces(found, files))
