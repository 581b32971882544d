"""Secondary indexes behind a network: read by pages, each fetched once, ever, as long as the file stays as it is.

    $CDXMILL_CACHE, $XDG_CACHE_HOME/cdxmill, ~/.cache/cdxmill
      <SHA-256 of the URL>/
        <SHA-256 of ETag, time and size>/     another state of the file: another folder, the old one is removed
          17                                  bytes 17 * 64 KiB and on

Opening a file costs one request, which tells whether it has changed. Pages are written as all files are,
whole or not at all, so processes share them. What cannot be kept is fetched again; CDXMILL_CACHE=off keeps nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from urllib3 import BaseHTTPResponse

from cdxmill.errors import CdxmillError
from cdxmill.storage import choose
from cdxmill.storage.connections import give_back
from cdxmill.storage.http import HttpRanges, first_answer
from cdxmill.storage.http_file import HttpFile
from cdxmill.storage.local import write_atomic

PAGE = 1 << 16
"""Bytes: a request takes as long for 64 KiB as for less."""
_HTTP = ("http://", "https://")
_IN_MEMORY = 256
"""Pages that a process holds: 16 MiB."""
ReadAt = Callable[[int, int], bytes]


class Ranges(NamedTuple):
    """`read_at(offset, size)` over a file, and its size in bytes, None where it cannot be told."""

    read_at: ReadAt
    size: int | None


@contextmanager
def open_cached(url: str) -> Iterator[Ranges]:
    """The file at a URL, read through the cache. Raises InputError, at once or from `read_at`."""
    with _open(url) as (ranges, version):
        if ranges.size is None:
            yield ranges
        else:
            yield Ranges(_Pages(ranges.read_at, ranges.size, _folder(url, version)).read_at, ranges.size)


@contextmanager
def open_known(url: str) -> Iterator[ReadAt]:
    """As `choose.open_ranges`, for a file that is taken to be there: a web server is not asked for it first."""
    if not url.lower().startswith(_HTTP):
        with choose.open_ranges(url) as read_at:
            yield read_at
        return
    with ExitStack() as files:
        ranges = _KnownRanges(HttpFile(url))
        whole: list[ReadAt] = []

        def read_known(offset: int, size: int) -> bytes:
            if not whole:
                try:
                    return ranges.read_at(offset, size)
                except _NoRanges:
                    whole.append(files.enter_context(choose.open_ranges(url)))
            return whole[0](offset, size)

        yield read_known


class _NoRanges(Exception):
    """The server answers with the whole file."""


class _KnownRanges(HttpRanges):
    """Ranges of a file that was not asked for before."""

    _has_come = False

    def _promised(self, answer: BaseHTTPResponse, first: int, last: int) -> int:
        if answer.status == 200 and not self._has_come:
            raise _NoRanges
        self._has_come = True
        return super()._promised(answer, first, last)


@contextmanager
def _open(url: str) -> Iterator[tuple[Ranges, str]]:
    """The file, and what tells this state of it from others, "" where nothing does."""
    if not url.lower().startswith(_HTTP):
        with choose.open_ranges(url) as read_at:
            entry = choose.status(url)
            version = f"{entry.modified} {entry.size}" if entry is not None else ""
            yield Ranges(read_at, entry.size if entry is not None else None), version
        return
    file = HttpFile(url)
    answer = first_answer(file)
    if answer.status != 200:
        give_back(answer)
        told = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        yield Ranges(HttpRanges(file).read_at, file.size), told and f"{told} {file.size}"
        return
    answer.close()
    with choose.open_ranges(url) as read_at:  # comes whole, once
        yield Ranges(read_at, file.size), ""


def _folder(url: str, version: str) -> Path | None:
    """Where the pages of this state of a file are kept; those of other states are removed."""
    top = _top()
    if top is None or not version:
        return None
    folder = top / _name(url) / _name(version)
    with suppress(OSError):
        for other in folder.parent.iterdir():
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
    return folder


def _top() -> Path | None:
    named = os.environ.get("CDXMILL_CACHE")
    if named is not None:
        return None if named in ("", "off") else Path(named)
    home = os.environ.get("XDG_CACHE_HOME")
    with suppress(RuntimeError):  # no home at all
        return (Path(home) if home else Path.home() / ".cache") / "cdxmill"
    return None


def _name(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


class _Pages:
    """A file of `size` bytes by pages: from memory, from `folder`, else by `read_at`."""

    def __init__(self, read_at: ReadAt, size: int, folder: Path | None) -> None:
        self._read_at, self._size, self._folder = read_at, size, folder
        self._held: dict[int, bytes] = {}

    def read_at(self, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset`; pages that are not there yet and lie side by side are one request."""
        end = min(offset + size, self._size)
        if end <= offset:
            return b""
        first, last = offset // PAGE, (end - 1) // PAGE
        pages = {number: self._known(number) for number in range(first, last + 1)}
        missing = [number for number, page in pages.items() if page is None]
        if missing:
            self._fetch(missing[0], missing[-1], pages)
        data = b"".join(page for page in pages.values() if page is not None)
        return data[offset - first * PAGE : end - first * PAGE]

    def _known(self, number: int) -> bytes | None:
        page = self._held.get(number)
        if page is None and self._folder is not None:
            with suppress(OSError):
                page = (self._folder / str(number)).read_bytes()
            if page is not None and len(page) != min(PAGE, self._size - number * PAGE):
                page = None
            if page is not None:
                self._hold(number, page)
        return page

    def _fetch(self, first: int, last: int, pages: dict[int, bytes | None]) -> None:
        wanted = min((last + 1) * PAGE, self._size) - first * PAGE
        data = self._read_at(first * PAGE, wanted)
        for number in range(first, last + 1):
            start = (number - first) * PAGE
            pages[number] = page = data[start : start + PAGE]
            self._hold(number, page)
            self._keep(number, page)

    def _hold(self, number: int, page: bytes) -> None:
        if len(self._held) >= _IN_MEMORY:
            self._held.pop(next(iter(self._held)))
        self._held[number] = page

    def _keep(self, number: int, page: bytes) -> None:
        if self._folder is None or len(page) != min(PAGE, self._size - number * PAGE):
            return
        try:
            with write_atomic(self._folder / str(number)) as file:
                file.write(page)
        except (CdxmillError, OSError):  # a cache that is full or read-only is none
            self._folder = None
