"""The CDX files that `sample` and `zipnum` read: checked, and dealt out to tasks."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.gzip_member import MAGIC
from cdxmill.inputs.named import find_named
from cdxmill.running.counted_reads import counted
from cdxmill.running.failures import Failures
from cdxmill.stages.inflate import MemberError
from cdxmill.stages.lines.line_lists import LineCutter, is_capture_line
from cdxmill.stages.lines.read_content import read_content
from cdxmill.stages.lines.sorted_file import SeekPoints, note_seek_points
from cdxmill.stages.window import CHUNK, Window
from cdxmill.storage.choose import (
    ask_all,
    file_size,
    is_remote,
    open_ranges,
    status,
)

AGAIN = "make this index again"


LEAST_SORTED = 8 << 20
"""A smaller file is spilled with others, sorted or not."""


_LOCAL_CHUNK = 1 << 18
"""A read of this machine's files: larger ones cost more, for the memory is new each time."""


_FIRST = 4 << 20
"""In so many bytes of text a file's first capture line is looked for."""


_TASKS, _MOST_TASKS = 64, 400


_LEAST, _LARGE = 8 << 20, 256 << 20


class Flavour(NamedTuple):
    """CDXJ, or CDX with a number of fields; `path` is a file of that kind."""

    name: str
    fields: int
    path: str


def read_pieces(path: str, chunk: int = 0) -> Iterator[bytes]:
    """The text of the CDX file at a path or URL, in pieces; `chunk` bytes are read at a time.

    Raises InputError where it cannot be read or is damaged.
    """
    with open_ranges(path) as read_at:
        try:
            yield from read_content(Window(counted(read_at), chunk or _chunk(path)))
        except MemberError as error:
            raise InputError(path, str(error), AGAIN) from None


def read_sorted(path: str, shards: int) -> Generator[bytes, None, SeekPoints | None]:
    """The text of a CDX file, in pieces, and at last places in it, so that it can serve as a sorted run.

    None, whatever came before, where it cannot: it is not sorted, or is damaged; it lies behind a
    network; it is small, so that many would be many runs; or its gzip members are so large that
    `shards` that each start inside one would read much of it twice.
    """
    size = 0 if is_remote(path) else file_size(path)
    if size < LEAST_SORTED:
        return None
    with open_ranges(path) as read_at:
        window = Window(counted(read_at), _chunk(path))
        try:
            is_gzip = window.get(0, len(MAGIC)) == MAGIC
            return (yield from note_seek_points(window, size // shards)) if is_gzip else None
        except MemberError:
            return None


def _chunk(path: str) -> int:
    return CHUNK if is_remote(path) else _LOCAL_CHUNK


def note_empty(paths: Sequence[str], failures: Failures) -> None:
    """A note for each file of no bytes: it may have been cut."""
    for path, empty in zip(paths, ask_all(_is_empty, paths), strict=True):
        if empty:
            failures.note(f"{path}: note: the file is empty")


def _is_empty(path: str) -> bool:
    try:
        found = status(path)
    except InputError:  # the reader tells
        return False
    return found is not None and not found.size and not found.is_folder


def check_flavours(paths: Sequence[str]) -> Flavour | None:
    """The one flavour of all files, by their first capture lines; None where there is no line.

    Raises UsageError where two differ. Unreadable files are left to the reader to tell.
    """
    known: Flavour | None = None
    for path, line in zip(paths, ask_all(_first_line, paths), strict=True):
        if line is None:
            continue
        flavour = Flavour(*_flavour(line), path)
        if known is not None and known.name != flavour.name:
            raise UsageError(
                f"{known.path} is {known.name}, but {path} is {flavour.name}: one cluster holds one kind of lines"
            )
        known = known or flavour
    return known


def _first_line(path: str) -> bytes | None:
    """The first capture line, if it is not far behind the file's start."""
    cutter, looked_at = LineCutter(), 0
    try:
        for piece in read_pieces(path, _LOCAL_CHUNK):
            for line in cutter.cut(piece):
                if is_capture_line(line):
                    return line
            looked_at += len(piece)
            if looked_at > _FIRST:
                return None
    except InputError:
        return None
    return next(filter(is_capture_line, cutter.end()), None)


def _flavour(line: bytes) -> tuple[str, int]:
    fields = line.split(b" ")
    if len(fields) > 2 and fields[2].startswith(b"{"):
        return "CDXJ", 3
    return f"CDX with {len(fields)} fields", len(fields)


def deal(paths: Sequence[str]) -> list[list[str]]:
    """Consecutive files in groups of like size; the same paths give the same groups on any machine.

    There are about _TASKS, or as many more as have _LARGE bytes, but never more than _MOST_TASKS.
    """
    sizes = ask_all(file_size, paths)
    total = sum(sizes)
    # two groups in a row are larger than one may be
    wanted = max(min(total // _TASKS, _LARGE), 2 * total // (_MOST_TASKS - 1), _LEAST)
    groups: list[list[str]] = []
    room = 0
    for path, size in zip(paths, sizes, strict=True):
        if not groups or room < size:
            groups.append([])
            room = wanted
        groups[-1].append(path)
        room -= size
    return groups


_CDX = re.compile(r"\.cdxj?(\.gz)?$", re.I)


def find_cdx_files(named: list[str]) -> list[str]:
    """The CDX files that are named: files, globs, and folders with `*.cdx`, `*.cdxj`, also `.gz`.

    Also as s3 and hdfs URLs; an http URL is a file. Raises InputError where a folder of these cannot be listed.
    """
    return [entry.path for entry in find_named(named, _CDX)]
