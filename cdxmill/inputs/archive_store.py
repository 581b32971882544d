"""The archives that index lines name: below a directory or a URL prefix, or listed in a path index like pywb's."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from copy import copy
from functools import partial
from typing import Generic, TypeVar
from urllib.parse import unquote

from cachetools import LRUCache

from cdxmill.errors import AbsentError, InputError, UsageError, of_named_file
from cdxmill.formats.clusters.zipnum import find_places
from cdxmill.formats.lines.capture_fields import RecordLocation
from cdxmill.inputs.named import without_host
from cdxmill.regex import regex
from cdxmill.stages.captures.match_record import capture_of_record, difference
from cdxmill.stages.records.fetch_record import Archive, FetchedRecord, NoRecord
from cdxmill.stages.window import ReadAt
from cdxmill.storage.location import Location, join, locate
from cdxmill.storage.wacz import ARCHIVE, inside, is_wacz, own_name

_LIST = regex(r"\.(?:txt|tsv|idx)\Z")
_OPEN = 32
"""Archives that stay open. Neighboring index lines are from many archives."""
_ELSEWHERE = "if the archives are elsewhere, use --archives LOCATION"
Allowed = Callable[[str], Location]
Opened = TypeVar("Opened")


class OpenArchives(LRUCache[Location, tuple[Opened, ExitStack]], Generic[Opened]):
    """Open archives by path or URL. If there are too many, the least recently used one is closed."""

    def __init__(self) -> None:
        super().__init__(_OPEN)

    def popitem(self) -> tuple[Location, tuple[Opened, ExitStack]]:
        """Close the least recently used archive."""
        place, found = super().popitem()
        found[1].close()
        return place, found

    def close(self) -> None:
        """Close all archives."""
        while self:
            self.popitem()


class ArchiveStore:
    """Finds archives by their file names, and reads records from them.

    `path` is a directory, a URL prefix, a WACZ or a path index. Without it, file names are paths below the current directory.
    Index lines are content: they lead only to archives below `path`, or listed in it (SECURITY.md). `allowed` takes
    a place in the path index and returns it, changed if need be; it raises InputError for a place that is refused.
    """

    def __init__(self, path: str | None, allowed: Allowed | None = None) -> None:
        """Raises UsageError if `path` is none of these."""
        self._path = path
        self._locate = _locator(path)
        self._allowed = allowed
        self._open = OpenArchives[Archive]()

    def locations(self, filename: str) -> list[Location]:
        """Where an archive is that a line names, best first. Raises InputError if they are not allowed."""
        locations = self._locate(filename)
        if not locations:
            raise InputError(filename, f"is not in the path index {self._path}", _ELSEWHERE)
        return locations if self._allowed is None else _all_allowed(locations, self._allowed)

    def fetch(self, filename: str, offset: int, length: int | None) -> FetchedRecord:
        """The record at `offset` of an archive that a line names. With a `length`, it must be exactly that long.

        Raises InputError.
        """
        locations = self.locations(filename)
        place = next(filter(_can_be_read, locations[:-1]), locations[-1])
        return self.read(place, offset, length)

    def fetch_line(self, line: RecordLocation) -> tuple[FetchedRecord, str | None]:
        """The record of an index line, and how it differs from the line. None if it does not.

        If several archives have the file name, it is the record of the first one that matches. Raises InputError.
        """
        different: tuple[FetchedRecord, str] | None = None
        errors: list[InputError] = []
        for place in self.locations(line.filename):
            try:
                found = self.read(place, line.offset, line.length)
            except InputError as error:
                errors.append(error)
                continue
            reason = difference(capture_of_record(found.record), line)
            if reason is None:
                return found, None
            different = different or (found, reason)
        if different is not None:
            return different
        other = (error for error in errors if not isinstance(error, AbsentError))
        raise self._with_hint(next(other, errors[0]))

    def _with_hint(self, error: InputError) -> InputError:
        is_unnamed = self._path is None or self._allowed is not None  # the user gave no place
        is_elsewhere = is_unnamed and isinstance(error, AbsentError)
        return AbsentError(error.path, error.reason, _ELSEWHERE) if is_elsewhere else error

    def fetch_named(self, name: str, offset: int, length: int | None) -> FetchedRecord:
        """As `fetch`, from an archive that the user named: a path or URL anywhere, or a name as in a line.

        Raises UsageError if it is a WACZ.
        """
        place = locate(name)
        check_one_archive(place)
        is_place = self._path is None or place.is_remote or name.startswith("/")
        return self.read(place, offset, length) if is_place else self.fetch(name, offset, length)

    def read(self, place: Location, offset: int, length: int | None) -> FetchedRecord:
        """The record at `offset` of the archive at a place. Raises InputError."""
        try:
            return self._archive(place).record(offset, length)
        except NoRecord as error:
            size = "" if length is None else f" of {length} bytes"
            raise InputError(f"{place}@{offset}", f"no record{size}: {error}") from None

    def _archive(self, place: Location) -> Archive:
        """The archive, opened if it is not open yet."""
        if place not in self._open:
            files = ExitStack()
            self._open[place] = Archive(files.enter_context(place.open_ranges()), open_start_of(place)), files
        return self._open[place][0]

    def fresh(self) -> ArchiveStore:
        """The same archives, none of them open yet."""
        other = copy(self)
        other._open = OpenArchives[Archive]()
        return other

    def close(self) -> None:
        """Close all archives."""
        self._open.close()


def check_one_archive(place: Location) -> None:
    """Raise UsageError if a place is a WACZ, which has archives. Raises InputError if it is no zip."""
    if is_wacz(place.text):
        files = place.wacz_files()
        names = [inside(place.text, name) for name in files if own_name(name) != name]
        example = f", such as {min(names)}" if names else ""
        raise UsageError(f"{place}: is a WACZ; name an archive in it{example}")


def open_start_of(archive: Location) -> Callable[[], AbstractContextManager[ReadAt]] | None:
    """Opens a remote archive to read its dictionary, through the cache. None for a local archive."""
    if not archive.is_remote:
        return None
    from cdxmill.storage.cache import cached_reads  # network code

    return partial(cached_reads, archive)


def _all_allowed(locations: list[Location], allowed: Allowed) -> list[Location]:
    """The allowed ones. Raises InputError if all are refused."""
    found, refused = [], []
    for location in locations:
        try:
            found.append(allowed(location.text))
        except InputError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return found


def _can_be_read(place: Location) -> bool:
    """Whether a file exists. False if its storage does not answer, as the archive may have another location."""
    try:
        return place.exists()
    except InputError:
        return False


def _locator(path: str | None) -> Callable[[str], list[Location]]:
    """A function from the file name of a line to the places where the archive may be."""
    if path is None:
        return lambda filename: [_below(None, filename)]
    place = locate(path)
    directory = place.directory
    if directory is None or not directory.is_dir():
        may_be_file = directory is None or directory.is_file()
        if may_be_file and is_wacz(path):
            return _locator_in_wacz(place)
        if may_be_file and (directory is not None or _LIST.search(path)):
            data = _path_index(place)
            return lambda filename: list(map(locate, find_places(data, filename)))
        if directory is not None and place.stored_in == place:
            reason = "neither a directory of archives, nor a WACZ, nor a path index"
            raise UsageError(f"{path}: {reason}; check the path")
    return lambda filename: [_below(place, filename)]


def _locator_in_wacz(wacz: Location) -> Callable[[str], list[Location]]:
    """A function from the file name of a line to the path of that archive in a WACZ. Raises InputError.

    The name in a line is that in the zip, also without `archive/`, or after the name of the WACZ.
    """
    names = {own_name(name): name for name in wacz.wacz_files()}
    prefix = posixpath.basename(without_host(wacz.text)) + "/"

    def find(filename: str) -> list[Location]:
        name = own_name(filename.removeprefix(prefix))
        return [Location(inside(wacz.text, names.get(name, ARCHIVE + name)))]

    return find


def _below(top: Location | None, filename: str) -> Location:
    """A file below a directory or URL prefix; None is the current directory.

    An absolute path or a URL must be below it already. Raises InputError if it is not, or if it has `..`.

    >>> str(_below(locate("/data"), "a/b.warc")), str(_below(locate("/"), "/data/b.warc"))
    ('/data/a/b.warc', '/data/b.warc')
    >>> str(_below(locate("s3://bucket/"), "s3://bucket/b.warc"))
    's3://bucket/b.warc'
    """
    found, is_below = locate(filename), True
    if found.scheme or filename.startswith("/"):
        found = found if found.is_remote else locate(found.local)
        start = "" if top is None else top.text if top.is_remote else top.absolute()
        is_below = bool(start) and found.text.startswith(join(start, ""))
    elif top is not None:
        found = top / filename
    if not is_below or ".." in unquote(filename).split("/"):
        there = f"--archives {top}" if top is not None else "the current directory"
        hint = "if you trust it, give a directory or URL above it with --archives"
        raise InputError(filename, f"an index line leads there, outside of {there}", hint)
    return found


def _path_index(place: Location) -> bytes:
    try:
        return place.read_bytes()
    except InputError as error:
        raise of_named_file(error) from None
