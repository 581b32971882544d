"""Secondary indexes on a server: read in pages, and each page is fetched once as long as the file does not change.

    $CDXMILL_CACHE, $XDG_CACHE_HOME/cdxmill, ~/.cache/cdxmill
      <SHA-256 of the URL>/
        <SHA-256 of ETag, time and size>/     one version of the file; the directories of others are deleted
          17                                  the 64 KiB from byte 17 * 64 KiB on, and their CRC-32

Opening a file costs one request, which shows whether the file has changed. A page is renamed to its name when it
is complete, so processes can share the cache. If a page cannot be kept, or was damaged, it is fetched again. CDXMILL_CACHE=off
keeps no pages on disk. Pages may be of private indexes: only this user can read them, and a cache of another user, or one
to which others can write, is not used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from zlib import crc32

from cachetools import LRUCache

from cdxmill.errors import CdxmillError, InputError, absent
from cdxmill.messages import note
from cdxmill.storage.interface import Entry
from cdxmill.storage.local import write_atomic
from cdxmill.storage.location import Location, PathOrUrl, locate, pieces
from cdxmill.storage.web.connections import give_back
from cdxmill.storage.web.http import open_once, shared_path
from cdxmill.storage.web.http_file import HttpFile, NoRanges

PAGE = 1 << 16
"""Bytes. A request for 64 KiB takes no longer than one for less."""
_IN_MEMORY = 256
"""Pages in memory per file: 16 MiB."""
_SEAL = 4
"""Bytes of a CRC-32."""
ReadAt = Callable[[int, int], bytes]


class Ranges(NamedTuple):
    """`read_at(offset, size)` of a file, and its size in bytes. None if the size is unknown.

    `entry` is what `status` gives again, with one request, as long as the file is the same; None if its server tells no
    time and no ETag.
    """

    read_at: ReadAt
    size: int | None
    entry: Entry | None = None


@contextmanager
def open_cached(url: PathOrUrl) -> Iterator[Ranges]:
    """Open the file at a URL, read through the cache. Raises InputError, here or from `read_at`."""
    place = locate(url)
    with _open(place) as (ranges, version):
        if ranges.size is None:
            yield ranges
        else:
            pages = _Pages(ranges.read_at, ranges.size, _directory(place.text, version))
            yield ranges._replace(read_at=pages.read_at)


def read_with_entry(place: Location) -> tuple[bytes, Entry | None]:
    """The content of a small file, not kept, and its entry as in `Ranges`. Raises InputError."""
    with _open(place) as (ranges, _):
        return b"".join(pieces(ranges.read_at)), ranges.entry


@contextmanager
def cached_reads(url: PathOrUrl) -> Iterator[ReadAt]:
    """`read_at` of the file at a URL, through the cache: for a part that many runs read, such as a dictionary."""
    with open_cached(url) as ranges:
        yield ranges.read_at


def cached_part(url: PathOrUrl, version: str, read_at: ReadAt, part: range) -> ReadAt:
    """`read_at` for a part of an open file, through the cache: no request asks whether the file has changed.

    `version` is a text that differs for each content of the file.
    """
    directory = _directory(locate(url).text, version)
    pages = _Pages(
        lambda offset, size: read_at(part.start + offset, size),
        len(part),
        None if directory is None else directory / str(part.start),
    )
    return lambda offset, size: pages.read_at(offset - part.start, size)


def read_recent(url: str, seconds: float) -> bytes:
    """The content of a small file. It is read again if the copy in the cache is older than `seconds`.

    If it cannot be read, an older copy is used. Raises InputError if there is none.
    """
    place = _place_of(url)
    path = None if place is None else place / "whole"
    known: bytes | None = None
    with suppress(OSError):
        if path is not None:
            known = _unsealed(path.read_bytes())
            if known is not None and 0 <= time.time() - path.stat().st_mtime < seconds:
                return known
    try:
        data = locate(url).read_bytes()
    except InputError:
        if known is None:
            raise
        return known
    with suppress(CdxmillError, OSError):
        if path is not None:
            with write_atomic(path, sync_file=False, mode=0o600) as file:
                file.write(_sealed(data))
    return data


@contextmanager
def open_known(url: PathOrUrl, shared: Path | None = None) -> Iterator[ReadAt]:
    """Open a file as `Location.open_ranges` does, but without a first request that asks whether it exists.

    If its server does not support ranges, processes with the directory `shared` download it once.
    """
    place = locate(url)
    if not place.properties.opens_freely:
        with place.open_ranges() as read_at:
            yield read_at
        return
    with ExitStack() as files:
        file = HttpFile(place.text)
        path = None if shared is None else shared_path(place.text, shared)
        whole: list[ReadAt] = []
        opening = Lock()

        def read_known(offset: int, size: int) -> bytes:
            if not whole and (path is None or not path.exists()):
                try:
                    return file.read_at(offset, size)
                except NoRanges:
                    pass
            with opening:  # threads share the file: the first one downloads it for all
                if not whole:
                    opened = place.open_ranges() if shared is None else open_once(place.text, shared)
                    whole.append(files.enter_context(opened))
            return whole[0](offset, size)

        yield read_known


@contextmanager
def _open(place: Location) -> Iterator[tuple[Ranges, str]]:
    """Open a file; with it a text that differs for each version of the file, "" if the server gives none."""
    if not place.properties.opens_freely:
        entry = place.status()  # before it is opened: if it changes in between, the version is an old one
        if entry is None:
            raise absent(place.text)
        with place.open_ranges() as read_at:
            yield Ranges(read_at, entry.size, entry), f"{entry.modified} {entry.size} {entry.tag}"
        return
    file = HttpFile(place.text)
    answer = file.first_answer()
    if answer.status != 200:
        give_back(answer)
        version = answer.headers.get("etag") or answer.headers.get("last-modified") or ""
        entry = file.entry()
        yield (
            Ranges(file.read_at, file.size, entry if entry.tag else None),
            version and f"{version} {file.size}",
        )
        return
    answer.close()
    with place.open_ranges() as read_at:  # fetches the whole file, once
        yield Ranges(read_at, file.size), ""


def _directory(url: str, version: str) -> Path | None:
    """The directory for the pages of this version of a file. The directories of other versions are deleted."""
    place = _place_of(url) if version else None
    if place is None:
        return None
    directory = place / _name(version)
    with suppress(OSError):
        for other in directory.parent.iterdir():
            if other != directory:
                shutil.rmtree(other, ignore_errors=True)
    return directory


def _place_of(url: str) -> Path | None:
    """The directory of a file in the cache: it is created, and others lose their rights. None if there is no cache."""
    top = cache_directory()
    if top is None:
        return None
    place = top / _name(url)
    with suppress(OSError):
        place.mkdir(0o700, exist_ok=True)
        if place.stat().st_mode & 0o077:
            place.chmod(0o700)
        return place
    return None


def cache_directory() -> Path | None:
    """The directory for what can be made again. None if the user wants none, has no home, or if others can write to it."""
    top = _named_directory()
    return top if top is not None and _is_own(top, os.geteuid()) else None


@lru_cache
def _is_own(top: Path, user: int) -> bool:
    """Whether only this user can write to a directory, which is created if needed. If not, that is printed once."""
    try:
        with suppress(FileExistsError):
            top.mkdir(0o700, parents=True)
        found = top.stat()
        owners = {found.st_uid, top.lstat().st_uid}  # a link may lead there, if it is this user's, too
    except OSError:
        return False
    reason = "it belongs to another user" if owners != {user} else ""
    reason = reason or ("others can write to it" if found.st_mode & 0o022 else "")
    if reason:
        note(f"{top}: note: not used as the cache, because {reason}; delete it, or set CDXMILL_CACHE")
    return not reason


def _named_directory() -> Path | None:
    setting = os.environ.get("CDXMILL_CACHE")
    if setting is not None:
        return None if setting in ("", "off") else Path(setting)
    home = os.environ.get("XDG_CACHE_HOME")
    with suppress(RuntimeError):  # the user has no home directory
        return (Path(home) if home else Path.home() / ".cache") / "cdxmill"
    return None


def _name(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _sealed(data: bytes) -> bytes:
    """The data and their CRC-32."""
    return data + crc32(data).to_bytes(_SEAL, "little")


def _unsealed(sealed: bytes) -> bytes | None:
    """The data again. None if they are damaged: else the file on the server would be called corrupt."""
    data = sealed[:-_SEAL]
    return data if _sealed(data) == sealed else None


class _Pages:
    """The pages of a file of `size` bytes: from memory, from `directory`, or by `read_at`. Threads may share it."""

    def __init__(self, read_at: ReadAt, size: int, directory: Path | None) -> None:
        self._read_at, self._size, self._directory = read_at, size, directory
        self._recent: LRUCache[int, bytes] = LRUCache(_IN_MEMORY)
        self._lock = Lock()

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`. All pages that are missing are fetched in one request."""
        end = min(offset + size, self._size)
        if end <= offset:
            return b""
        first, last = offset // PAGE, (end - 1) // PAGE
        numbers = range(first, last + 1)
        pages = {number: page for number in numbers if (page := self._known(number)) is not None}
        missing = [number for number in numbers if number not in pages]
        if missing:
            pages |= self._fetch(missing[0], missing[-1])
        data = b"".join(map(pages.__getitem__, numbers))
        return data[offset - first * PAGE : end - first * PAGE]

    def _known(self, number: int) -> bytes | None:
        with self._lock:
            page = self._recent.get(number)
        if page is None and (page := self._stored(number)) is not None:
            with self._lock:
                self._recent[number] = page
        return page

    def _stored(self, number: int) -> bytes | None:
        """A page on disk. None if it is missing or damaged."""
        directory = self._directory  # another thread may give it up
        if directory is None:
            return None
        try:
            page = _unsealed((directory / str(number)).read_bytes())
        except OSError:
            return None
        return page if page is not None and len(page) == self._length(number) else None

    def _fetch(self, first: int, last: int) -> dict[int, bytes]:
        wanted = min((last + 1) * PAGE, self._size) - first * PAGE
        data = self._read_at(first * PAGE, wanted)
        pages = {}
        for number in range(first, last + 1):
            start = (number - first) * PAGE
            page = pages[number] = data[start : start + PAGE]
            with self._lock:
                self._recent[number] = page
            self._store(number, page)
        return pages

    def _store(self, number: int, page: bytes) -> None:
        directory = self._directory
        if directory is None or len(page) != self._length(number):
            return
        try:
            with write_atomic(directory / str(number), sync_file=False, mode=0o600) as file:
                file.write(_sealed(page))
        except (CdxmillError, OSError):  # full or read-only: read on without a cache on disk
            self._directory = None

    def _length(self, number: int) -> int:
        """Bytes of a page: less than PAGE for the last one."""
        return min(PAGE, self._size - number * PAGE)
