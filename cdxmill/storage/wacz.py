"""Files in a WACZ, which is a zip. They are read where they are in the zip; nothing is unpacked.

The path of such a file is the path of the WACZ and the file's name in the zip: `x.wacz/archive/data.warc.gz`. So it is
the same as if the WACZ were unpacked to a directory of its name. In an http URL the query stays at the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from cdxmill.errors import AbsentError, InputError
from cdxmill.regex import regex
from cdxmill.storage.interface import Entry, Reads
from cdxmill.storage.reach import led_as

if TYPE_CHECKING:
    from cdxmill.formats.archives.zip_directory import Member

ARCHIVE = "archive/"
"""The directory in a WACZ that has its archives. File names in its own index are relative to it."""
_HOST = regex(r"[a-z][a-z0-9+.-]*://[^/]*", re.I)
_HTTP = regex(r"https?://", re.I)
_ENCODED = regex(r"(?:https?|file)://", re.I)
_QUERY = regex(r"[?#].*\Z", re.S)
STEP = ".wacz/"
"""What every path or URL has that leads into a WACZ, in lower case."""
_STEPS = regex(r"\.wacz(?=/)", re.I)
_USUAL = regex(
    r"\.(w?arc|wat|wet)(\.gz|\.zst)?$|^(data/)?(indexes|pages|raw|logs)/|^datapackage[^/]*\.json$|^webarchive\.yaml$",
    re.I,
)
"""Names that files in a WACZ have. Any other name may be that of an archive, with a wrong character."""
_KEPT = 8
"""Directories of WACZ files that stay in memory."""


class FileInWacz(NamedTuple):
    """A file in a WACZ: the path or URL of the WACZ, and the file's name in the zip."""

    wacz: str
    name: str


def is_wacz(path: str) -> bool:
    """Whether a path or URL is named like a WACZ.

    >>> is_wacz("a/x.WACZ"), is_wacz("https://example.com/x.wacz?token=y"), is_wacz("x.wacz/archive/a.warc.gz")
    (True, True, False)
    """
    return _split_query(path)[0].lower().endswith(".wacz")


def own_name(name: str) -> str:
    """The name of an archive in the index that its WACZ has: the path below `archive/`. Old WACZ files have `data/archive/`.

    >>> own_name("archive/data.warc.gz"), own_name("data/archive/a/b.warc.gz"), own_name("data.warc.gz")
    ('data.warc.gz', 'a/b.warc.gz', 'data.warc.gz')
    """
    return name.removeprefix("data/" + ARCHIVE).removeprefix(ARCHIVE)


def inside(path: str, name: str) -> str:
    """The path or URL of the file `name` in the WACZ at `path`.

    >>> inside("https://example.com/x.wacz?token=y", "archive/a b.warc.gz")
    'https://example.com/x.wacz/archive/a%20b.warc.gz?token=y'
    """
    path, query = _split_query(path)
    return f"{path}/{quote(name) if _ENCODED.match(path) else name}{query}"


def place_of(path: str) -> FileInWacz | None:
    """The WACZ that a path or URL leads into, and the name there. None if it is an ordinary file.

    A local path leads into a WACZ only if that exists and is a file: a directory may have such a name, too.

    >>> place_of("https://example.com/x.wacz/archive/a%20b.warc.gz?token=y")
    FileInWacz(wacz='https://example.com/x.wacz?token=y', name='archive/a b.warc.gz')
    """
    named, (path, query) = path, _split_query(path)
    host = _HOST.match(path)
    for step in _STEPS.finditer(path, host.end() if host else 0):
        wacz, name = path[: step.end()], path[step.end() + 1 :]
        if name and (host or os.path.isfile(wacz)):  # noqa: PTH113 - reports no error
            return FileInWacz(led_as(named, wacz + query), unquote(name) if _HTTP.match(path) else name)
    return None


def _split_query(path: str) -> tuple[str, str]:
    """A path or URL without its query, and the query. Only http URLs have one."""
    match = _QUERY.search(path) if _HTTP.match(path) else None
    return (path[: match.start()], match[0]) if match else (path, "")


def files_in(storage: Reads, path: str) -> dict[str, Member]:
    """The files of a WACZ by name. Raises InputError."""
    entry = storage.status(path)
    if entry is None:
        with storage.open_ranges(path):  # raises the error that says why
            raise AbsentError(path, "does not exist", "check the path")
    return _files_in(storage, path, entry)


@lru_cache(_KEPT)
def _files_in(storage: Reads, path: str, entry: Entry) -> dict[str, Member]:
    """As `files_in`. A file that changes has another entry."""
    from cdxmill.formats.archives.zip_directory import (  # slow to import
        ZipError,
        local_header,
        read_directory,
    )

    with storage.open_ranges(path) as read_at:
        try:
            files = read_directory(read_at, entry.size or _size_of(read_at))
            for member in files.values():
                if not _USUAL.search(member.name):
                    local_header(read_at, member)
        except ZipError as error:
            raise InputError(path, str(error), error.hint) from None
    return files


def _size_of(read_at: Callable[[int, int], bytes]) -> int:
    """The size of a file whose storage does not know it."""
    size, step = 0, 4 << 20
    while data := read_at(size, step):
        size += len(data)
    return size


class WaczFiles:
    """The files in WACZ files of a storage. Each function takes the path of the WACZ with the name in it (`inside`)."""

    def __init__(self, storage: Reads, place: FileInWacz) -> None:
        self._storage, self._place = storage, place

    @contextmanager
    def open_ranges(self, path: str, /) -> Iterator[Callable[[int, int], bytes]]:
        """Open a file: `read_at(offset, size)` returns fewer bytes only at its end. Raises InputError."""
        from cdxmill.formats.archives.zip_directory import ZipError, data_offset

        if self._is_directory():
            with self._storage.open_ranges(path) as read_at:
                yield read_at
            return
        member = self._member(path)
        with self._storage.open_ranges(self._place.wacz) as read_at:
            try:
                start = data_offset(read_at, member)
            except ZipError as error:
                raise InputError(path, str(error), error.hint) from None

            def read_member(offset: int, size: int) -> bytes:
                size = min(size, member.size - offset)
                data = read_at(start + offset, size) if size > 0 else b""
                if len(data) < size:
                    raise InputError(path, "the WACZ was truncated while it was read", "run it again")
                return data

            yield read_member

    def status(self, path: str, /) -> Entry | None:
        """The size of a file, its CRC-32 as its tag, and the time of the WACZ. None if it does not exist. Raises InputError."""
        entry = self._storage.status(self._place.wacz)
        if entry is None or entry.is_directory:
            return self._storage.status(path)
        member = _files_in(self._storage, self._place.wacz, entry).get(self._place.name)
        return None if member is None else Entry(member.size, entry.modified, tag=f"{member.crc:08x}")

    def _is_directory(self) -> bool:
        """Whether the name is that of a directory, such as that of the indexes of a WACZ. S3 does not know directories."""
        entry = self._storage.status(self._place.wacz)
        return entry is None or entry.is_directory

    def _member(self, path: str) -> Member:
        try:
            return files_in(self._storage, self._place.wacz)[self._place.name]
        except KeyError:
            raise AbsentError(path, "is not in the WACZ", "check the name") from None
