"""One archive -> its CDX lines, by way of records and captures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cdxmill.capture import Capture, Damage, Note
from cdxmill.formats.lines.cdx import CDX9_HEADER, CDX11_HEADER, format_cdx9, format_cdx11
from cdxmill.formats.lines.cdxj import format_cdxj
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.common_line import common_reader
from cdxmill.stages.captures.findings import Findings
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.window import CHUNK, ReadAt

_BATCH = 1000

LINE_FORMATS: dict[str, tuple[Callable[[Capture], bytes], bytes]] = {
    "cdxj": (format_cdxj, b""),
    "cdx11": (format_cdx11, CDX11_HEADER),
    "cdx9": (format_cdx9, CDX9_HEADER),
}
"""Name of a format -> the function that writes a line, and the header line (b"" if there is none)."""


class CaptureLines:
    """The CDX lines of captures: iterate to get lists of lines in the order of records.

    `findings` has the findings of what was read so far; after the iteration they are complete.
    """

    def __init__(self, items: Iterator[Capture | bytes | Damage | Note], line_format: str) -> None:
        self.findings = Findings()
        self._format_line, _ = LINE_FORMATS[line_format]
        self._items = items

    def __iter__(self) -> Iterator[list[bytes]]:
        format_line = self._format_line
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


class ArchiveIndexer(CaptureLines):
    """The CDX lines of one archive.

    `filename` is a field of each line. The archive is read in chunks of `chunk` bytes.
    """

    def __init__(
        self,
        read_at: ReadAt,
        filename: bytes,
        options: CaptureOptions,
        line_format: str = "cdxj",
        chunk: int = CHUNK,
    ) -> None:
        read_common = common_reader(filename, options) if line_format == "cdxj" else None
        records = read_records(read_at, options.lineless, chunk, read_common)
        super().__init__(make_captures(records, filename, options), line_format)
