"""The settings of index, reindex and recompress: what decides how their outputs look, and what the start of one shows of it."""

from __future__ import annotations

import hashlib
import posixpath
import zlib
from dataclasses import asdict
from typing import NamedTuple

from cdxmill.capture import Record
from cdxmill.errors import InputError, OutageError
from cdxmill.formats.archives.framing import GZIP_MAGIC
from cdxmill.formats.lines.capture_fields import parse_fields
from cdxmill.inputs.named import Input
from cdxmill.outputs.proofs import proof_beside, read_proof
from cdxmill.running.resume import fingerprint
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.lines.line_lists import is_capture_line
from cdxmill.stages.lines.move_lines import TableNames
from cdxmill.stages.records.read_records import read_records
from cdxmill.storage.location import Location
from cdxmill.storage.reading import sha256_of
from cdxmill.version import __version__

_HEAD = 1 << 16
"""Bytes of an output that are read for its first line or record."""


class LineSettings(NamedTuple):
    """What decides how the lines of an archive look: the captures, and the name of the format of lines."""

    captures: CaptureOptions
    line_format: str

    def digest(self, filename: str) -> str:
        """A hash of the settings, the version of cdxmill, and the name of the archive in lines."""
        captures = asdict(self.captures)
        captures["records"] = captures["records"] and sorted(captures["records"])  # a set has no order
        return fingerprint(__version__, captures, self.line_format, filename)[:16]

    def is_proven(self, output: Location, archive: Input) -> bool:
        """Nothing proves it."""
        return False

    def fits(self, output: Location, archive: Input) -> bool:
        """Whether the first line has the archive's base name, or there is none."""
        line = _first_line(output)
        return not line or posixpath.basename(_filename(line) or "") == posixpath.basename(archive.filename)

    def is_own(self, output: Location, archive: Input) -> bool:
        """Whether the first line has the archive's whole name and is in this format, or there is none. Raises InputError."""
        line = _first_line(output)
        return not line or (_filename(line), _line_format(line)) == (archive.filename, self.line_format)


class TableSettings(NamedTuple):
    """The tables of offsets that index lines are moved by: the names of the archives, and a fingerprint of each."""

    names: TableNames
    tables: tuple[tuple[str, object], ...]

    def digest(self, filename: str) -> str:
        """A hash of the tables and the version of cdxmill. `filename` plays no part."""
        return fingerprint(__version__, self.tables)[:16]

    def is_proven(self, output: Location, archive: Input) -> bool:
        """Nothing proves it."""
        return False

    def fits(self, output: Location, archive: Input) -> bool:
        """Whether the first line has the key and the time of the index's first line."""
        ours, theirs = _first_line(output), _first_line(archive.location)
        return not ours or not theirs or ours.split(b" ")[:2] == theirs.split(b" ")[:2]


class ArchiveSettings(NamedTuple):
    """What decides how an archive looks that is written again. `dictionary` is the start of a file with its dictionary.

    `others` are settings that the start of a file does not show.
    """

    dictionary: bytes
    others: tuple[object, ...]

    def digest(self, filename: str) -> str:
        """A hash of the settings and the version of cdxmill."""
        return fingerprint(__version__, hashlib.sha256(self.dictionary).hexdigest(), self.others, filename)[
            :16
        ]

    def is_proven(self, output: Location, archive: Input) -> bool:
        """Whether the archive has the size and the SHA-256 of the proof beside the output. Raises OutageError."""
        try:
            proof = read_proof(proof_beside(output))
            if proof is None or archive.location.size() != proof.old_file.size:
                return False
            return sha256_of(archive.location) == proof.old_file.sha256
        except OutageError:
            raise
        except InputError:
            return False

    def fits(self, output: Location, archive: Input) -> bool:
        """Whether the first record is that of the archive, if that can be read."""
        ours, theirs = _first_record(output), _first_record(archive.location)
        return ours is not None and (theirs is None or ours == theirs)


def _first_record(archive: Location) -> object:
    """The header and the size of the first record. None if the file has none that can be read. Raises OutageError."""
    try:
        with archive.open_ranges() as read_at:
            found = next(read_records(read_at, chunk=_HEAD), None)
    except OutageError:
        raise
    except InputError:
        return None
    return (found.headers, found.size) if isinstance(found, Record) else None


def _first_line(output: Location) -> bytes:
    """The first line that is no header; b"" if there is none. What is not gzip is text. Raises InputError if it cannot be read."""
    with output.open_ranges() as read_at:
        head = read_at(0, _HEAD)
    try:
        text = zlib.decompressobj(31).decompress(head, _HEAD) if head.startswith(GZIP_MAGIC) else head
    except zlib.error:
        return head
    return next(filter(is_capture_line, text.split(b"\n")), b"")


def _filename(line: bytes) -> str | None:
    try:
        return str(parse_fields(line)["filename"])
    except (ValueError, KeyError):
        return None


def _line_format(line: bytes) -> str:
    fields = line.split(b" ")
    return "cdxj" if fields[2:] and fields[2].startswith(b"{") else f"cdx{len(fields)}"
