"""One archive, read or being written -> its CDX lines.

`native/common_line.c` makes the line of a common record. Whatever is unusual is left to Python (take_record,
make_captures, surt, cdx_lines), which is the reference. Without the compiled part, an index takes a third longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from cdxmill.capture import Capture, CommonLine, CrawlNotes, Damage, Note, Outcome, Record
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.formats.lines.cdx_lines import (
    CDX9_HEADER,
    CDX11_HEADER,
    format_cdx9,
    format_cdx11,
    format_cdxj,
    quote,
)
from cdxmill.formats.lines.surt import origin_keys
from cdxmill.stages import native
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.records.parse_header import BlankContent, RecordError
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.record_parts import digest_of
from cdxmill.stages.records.take_record import ReadCommon, check_rest, take_block, take_whole
from cdxmill.stages.window import CHUNK, ReadAt

if TYPE_CHECKING:
    from cdxmill.stages.records.pack_contents import Packed

MAX_DAMAGE = 10_000
"""Damage that is reported separately, per file. More would take memory and nobody would read it."""
_BATCH = 1000
LINE_FORMATS: dict[str, tuple[Callable[[Capture], bytes], bytes]] = {
    "cdxj": (format_cdxj, b""),
    "cdx11": (format_cdx11, CDX11_HEADER),
    "cdx9": (format_cdx9, CDX9_HEADER),
}
"""Name of a format -> the function that writes a line, and the header line (b"" if there is none)."""
Item = Record | CommonLine | CrawlNotes | Damage | Note


@dataclass
class Findings:
    """The number of captures in an archive, and the damage and the notes about it."""

    damage: list[Damage] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    captures: int = 0
    _more: int = 0

    def add(self, found: Damage | Note) -> None:
        """Add damage or a note. All damage after the first MAX_DAMAGE becomes one item, the last of the list."""
        if isinstance(found, Note):
            self.notes.append(found)
            return
        if len(self.damage) >= MAX_DAMAGE:
            self._more += 1
            first = found.offset if self._more == 1 else self.damage.pop().offset
            more = f"{self._more} more errors up to offset {found.offset}"
            found = Damage(first, f"{more}, the last one: {found.reason}", found.hint)
        self.damage.append(found)


def common_reader(filename: bytes, options: CaptureOptions) -> ReadCommon[CommonLine] | None:
    """A reader for the archive whose lines have the field `filename`.

    None if nothing was compiled, or if `options` ask for lines that it does not make.
    """
    usual = options.lineless and {b"response", b"revisit"} <= (options.records or set())
    if native.read is None or not usual or options.minimal or options.unsurt:
        return None
    return partial(native.read, (origin_keys(options.keep_www), quote(filename)[1:-1], _digest))


def _digest(content: bytearray | bytes, start: int, end: int) -> bytes:
    return digest_of(memoryview(content)[start:end])


class CaptureLines:
    """The CDX lines of captures: iterate to get lists of lines. After that, `findings` is complete."""

    def __init__(self, items: Iterator[Capture | bytes | Damage | Note], line_format: str) -> None:
        self.findings = Findings()
        self._items, self._line_format = items, line_format

    def __iter__(self) -> Iterator[list[bytes]]:
        format_line, _ = LINE_FORMATS[self._line_format]
        lines: list[bytes] = []
        for item in self._items:
            if isinstance(item, bytes):
                lines.append(item)
            elif isinstance(item, Capture):
                lines.append(format_line(item))
            else:
                self.findings.add(item)
                continue
            if len(lines) >= _BATCH:
                self.findings.captures += len(lines)
                yield lines
                lines = []
        if lines:
            self.findings.captures += len(lines)
            yield lines


def index_archive(
    read_at: ReadAt, filename: bytes, options: CaptureOptions, line_format: str = "cdxj", chunk: int = CHUNK
) -> CaptureLines:
    """The CDX lines of one archive, with the field `filename`. The archive is read in chunks of `chunk` bytes."""
    read_common = common_reader(filename, options) if line_format == "cdxj" else None
    records: Iterator[Item]
    if options.check_digests:
        from cdxmill.stages.records.check_digests import DigestChecks  # imports slow libraries

        checks = DigestChecks(read_at, chunk, read_common)
        records = checks.checked(read_records(read_at, options.lineless, chunk, checks.read_common))
    else:
        records = read_records(read_at, options.lineless, chunk, read_common)
    return CaptureLines(make_captures(records, filename, options), line_format)


def read_packed(
    packed: Iterable[Packed | Damage], filename: bytes, options: CaptureOptions
) -> Iterator[Item]:
    """The record of each content, as `read_records` would find it in the new archive. Damage passes through.

    Requires: each content is one record, or blank.
    """
    read_common, shapes = common_reader(filename, options), HeaderShapes()
    for item in packed:
        if isinstance(item, Damage):
            yield item
            continue
        content, offset, length = item
        found: Item | Outcome
        try:
            if content.data is None:
                pieces = content.pieces()
                record, tail = take_block(offset, pieces)
                check_rest(tail, pieces, record.is_arc)
                found = record._replace(length=length)
            else:
                data = content.data
                found = Outcome.NOT_COMMON if read_common is None else read_common(data, offset, length)
                if found is Outcome.NOT_COMMON:
                    found = take_whole(offset, length, data, shapes, options.lineless)
        except BlankContent:
            continue
        except RecordError as error:
            found = Damage(content.offset, error.reason, error.hint)
        if not isinstance(found, Outcome):
            yield found
