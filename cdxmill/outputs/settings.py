"""What decides how an output looks, as a hash and as it shows at the start of an output: index lines, or an archive."""

from __future__ import annotations

import hashlib
import os
import posixpath
import zlib
from dataclasses import asdict
from typing import NamedTuple, Protocol

from cdxmill.capture import Record
from cdxmill.errors import InputError
from cdxmill.formats.archives.gzip_member import MAGIC
from cdxmill.formats.archives.zstd_frame import DICTIONARY_MAGIC
from cdxmill.formats.lines.capture_fields import parse_fields
from cdxmill.inputs.named import Input
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.lines.line_lists import is_capture_line
from cdxmill.stages.lines.move_lines import TableNames
from cdxmill.stages.records.read_records import read_records
from cdxmill.storage.choose import open_ranges
from cdxmill.version import __version__

_HEAD = 1 << 16
"""Bytes of an output that are read for its first line or record."""


class Seen(NamedTuple):
    """What the start of an output shows: whether it is of this archive, and as the settings ask for."""

    is_of_archive: bool
    has_settings: bool


class OutputSettings(Protocol):
    """The settings of a command that writes one output per archive."""

    def digest(self, filename: str) -> str:
        """A hash of all that decides how the output looks. `filename` is the name of the archive in lines."""

    def look(self, output: str, archive: Input) -> Seen:
        """Look at the start of an output. Raises InputError if its storage does not answer."""


class LineSettings(NamedTuple):
    """What decides how the lines of an archive look: the captures, and the name of the format of lines."""

    captures: CaptureOptions
    line_format: str

    def digest(self, filename: str) -> str:
        """A hash of the settings, the version of cdxmill, and the name of the archive in lines."""
        captures = asdict(self.captures)
        captures["records"] = captures["records"] and sorted(captures["records"])  # a set has no order
        return _hash((__version__, captures, self.line_format, filename))

    def look(self, output: str, archive: Input) -> Seen:
        """Look at the first line: at the name of the archive in it, and at its format."""
        line = _first_line(output)
        filename = _filename(line)
        is_other = filename is not None and posixpath.basename(filename) != posixpath.basename(
            archive.filename
        )
        has_settings = not line or (filename, _line_format(line)) == (archive.filename, self.line_format)
        return Seen(not is_other, has_settings)


class TableSettings(NamedTuple):
    """The tables of offsets that index lines are moved by: the names of the archives, and a fingerprint of each."""

    names: TableNames
    tables: tuple[tuple[str, object], ...]

    def digest(self, filename: str) -> str:
        """A hash of the tables and the version of cdxmill. `filename` plays no part."""
        return _hash((__version__, self.tables))

    def look(self, output: str, archive: Input) -> Seen:
        """Look at the first line: its key and time are those of the index, its archive is not one that has a table."""
        ours, theirs = _first_line(output), _first_line(archive.path)
        is_of_index = not ours or not theirs or ours.split(b" ")[:2] == theirs.split(b" ")[:2]
        moved = self.names.find(os.fsencode(_filename(ours) or ""))
        return Seen(is_of_index, moved is None or moved.new == os.fsencode(_filename(ours) or ""))


class ArchiveSettings(NamedTuple):
    """What decides how an archive looks that is written again. `dictionary` is the start of a file with its dictionary.

    `others` are settings that the start of a file does not show.
    """

    dictionary: bytes
    others: tuple[object, ...]

    def digest(self, filename: str) -> str:
        """A hash of the settings and the version of cdxmill."""
        return _hash((__version__, hashlib.sha256(self.dictionary).hexdigest(), self.others, filename))

    def look(self, output: str, archive: Input) -> Seen:
        """Look at the dictionary and at the first record, which must be that of the archive."""
        with open_ranges(output) as read_at:
            start = read_at(0, max(len(self.dictionary), len(DICTIONARY_MAGIC)))
        is_same = start == self.dictionary if self.dictionary else start != DICTIONARY_MAGIC
        ours, theirs = _first_record(output), _first_record(archive.path)
        is_other = ours is not None and theirs is not None and ours != theirs
        return Seen(not is_other, is_same)


def _hash(values: object) -> str:
    return hashlib.sha256(repr(values).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _first_record(path: str) -> object:
    """The header and the size of the first record; None if it cannot be read."""
    try:
        with open_ranges(path) as read_at:
            found = next(read_records(read_at, chunk=_HEAD), None)
    except InputError:
        return None
    return (found.headers, found.size) if isinstance(found, Record) else None


def _first_line(output: str) -> bytes:
    """The first line that is no header; b"" if there is none. Raises InputError if the output cannot be read."""
    with open_ranges(output) as read_at:
        head = read_at(0, _HEAD)
    try:
        text = zlib.decompressobj(31).decompress(head, _HEAD) if head.startswith(MAGIC) else head
    except zlib.error:
        return b""
    return next(filter(is_capture_line, text.split(b"\n")), b"")


def _filename(line: bytes) -> str | None:
    try:
        return str(parse_fields(line)["filename"])
    except (ValueError, KeyError):
        return None


def _line_format(line: bytes) -> str:
    fields = line.split(b" ")
    return "cdxj" if fields[2:] and fields[2].startswith(b"{") else f"cdx{len(fields)}"
