"""One archive -> its sorted CDX lines, by way of records and captures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cdxmill.capture import Capture, Damage, Note
from cdxmill.formats.cdx import CDX9_HEADER, CDX11_HEADER, format_cdx9, format_cdx11
from cdxmill.formats.cdxj import format_cdxj
from cdxmill.stages.captures.common_line import common_reader
from cdxmill.stages.captures.make_captures import CaptureOptions, make_captures
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.window import CHUNK, ReadAt

_BATCH = 1000
MAX_DAMAGE = 10_000
"""So much damage in one file is told place by place; nobody reads more, and it takes memory."""

LINE_FORMATS: dict[str, tuple[Callable[[Capture], bytes], bytes]] = {
    "cdxj": (format_cdxj, b""),
    "cdx11": (format_cdx11, CDX11_HEADER),
    "cdx9": (format_cdx9, CDX9_HEADER),
}
"""Name of a format: how a line is written, and the header line, if it has one."""


@dataclass
class Findings:
    """What else was found in an archive than captures."""

    damage: list[Damage] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    captures: int = 0
    _more: int = 0

    def add_damage(self, found: Damage) -> None:
        """Take it in; beyond MAX_DAMAGE all become one, the last of the list."""
        if len(self.damage) < MAX_DAMAGE:
            self.damage.append(found)
            return
        self._more += 1
        first = found.offset if self._more == 1 else self.damage.pop().offset
        places = f"{self._more} more places are damaged up to {found.offset}"
        self.damage.append(Damage(first, f"{places}, the last: {found.reason}", found.hint))


def index_archive(
    read_at: ReadAt,
    filename: bytes,
    options: CaptureOptions,
    line_format: str,
    findings: Findings,
    chunk: int = CHUNK,
) -> Iterator[list[bytes]]:
    """Lists of CDX lines, in the order of records; `findings` is filled meanwhile.

    `read_at` is asked for `chunk` bytes at a time.
    """
    format_line, _ = LINE_FORMATS[line_format]
    read_common = common_reader(filename, options) if line_format == "cdxj" else None
    records = read_records(read_at, options.lineless, chunk, read_common)
    lines: list[bytes] = []
    for item in make_captures(records, filename, options):
        if isinstance(item, (Capture, bytes)):
            lines.append(item if isinstance(item, bytes) else format_line(item))
            if len(lines) >= _BATCH:
                findings.captures += len(lines)
                yield lines
                lines = []
        elif isinstance(item, Damage):
            findings.add_damage(item)
        else:
            findings.notes.append(item)
    findings.captures += len(lines)
    if lines:
        yield lines
