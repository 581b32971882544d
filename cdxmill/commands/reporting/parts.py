"""The parts of a report: each shard of a cluster, or each CDX file, is read and added up in a process."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from cdxmill.checks.shards import ShardFiles, block_ranges
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.public_suffixes import PublicSuffixes
from cdxmill.running.failures import Failure
from cdxmill.running.processes import counted
from cdxmill.stages.report.capture_sums import CaptureSums, Large, PackedSamples, Totals, new_sums, take_text
from cdxmill.stages.report.tables import PackedTable, ReportTables
from cdxmill.stages.window import chunk_of
from cdxmill.stages.zipnum.check_shard import Fault, ShardBlock, read_texts
from cdxmill.version import install_extra

LARGEST = 20
"""The largest records that are listed."""
_DRAIN = 100_000
"""Groups that compiled code holds: 10 MB."""
_SHOWN = 10
"""Faults of a part that are reported one by one."""
_TEXT = 1 << 20
"""Bytes of the text of a CDX file that are added at once."""


class ReportPart(NamedTuple):
    """A shard, or a CDX file. Only `with_urls` is there a sample of its URLs."""

    path: str
    shard: ShardFiles | None
    with_urls: bool


class PartSums(NamedTuple):
    """What a part adds up to. `invalid` lines could not be read; `largest` has (length, line). `samples` are packed if another process read it.

    `block_bytes` and `block_lines` have the compressed size and the lines of each block, `size` is the sum of the former.
    """

    path: str
    totals: Totals
    first_key: bytes
    tables: dict[str, PackedTable]
    samples: CaptureSums | PackedSamples
    largest: list[Large]
    invalid: int
    block_bytes: array[int]
    block_lines: array[int]
    findings: list[Failure]


@cache
def public_suffixes() -> PublicSuffixes:
    """The list that the library publicsuffixlist brings. Raises UsageError if a library of the report is missing."""
    try:
        from publicsuffixlist import PSLFILE

        if find_spec("datasketches") is None:  # needed only for many names, and slow to import
            raise ImportError
    except ImportError:
        raise UsageError(f"report needs more libraries; run {install_extra('report')}") from None
    with Path(PSLFILE).open(encoding="utf-8") as file:
        return PublicSuffixes(file)


def read_part(part: ReportPart) -> PartSums:
    """Read a part to its end. What is corrupt is in the findings, and the rest is added up."""
    reader = _Reader(part)
    try:
        if part.shard is not None:
            reader.read_shard(part.shard)
        else:
            reader.read_file()
    except InputError as error:
        reader.findings.append(Failure.from_error(error))
    return reader.report()


class _Reader:
    def __init__(self, part: ReportPart) -> None:
        self._part = part
        self._sums = new_sums(part.with_urls)
        self._tables = ReportTables(public_suffixes())
        self._first_key = b""
        self._largest: list[Large] = []
        self._invalid = 0
        self._block_bytes, self._block_lines = array("Q"), array("Q")
        self.findings: list[Failure] = []

    def read_shard(self, shard: ShardFiles) -> None:
        lengths = dict(block_ranges(shard))
        with shard.place.open_ranges() as read_at:
            chunk = chunk_of(shard.place.is_remote)
            texts = read_texts(counted(read_at), lengths, chunk, check_sections=False)
            faults = [fault for found in texts if (fault := self._take_block(found))]
        for fault in faults[:_SHOWN]:
            self.findings.append(Failure(str(shard.place), fault.offset, fault.reason))
        if len(faults) > _SHOWN:
            reason = f"{len(faults) - _SHOWN} more corrupt blocks"
            self.findings.append(Failure(str(shard.place), faults[_SHOWN].offset, reason))

    def _take_block(self, found: ShardBlock | Fault) -> Fault | None:
        if isinstance(found, Fault):
            return found
        self._block_bytes.append(found.length)
        self._block_lines.append(self._take(found.text, found.offset))
        return None

    def read_file(self) -> None:
        from cdxmill.inputs.cdx_files import read_pieces  # most reports are about clusters

        for text in _whole_lines(read_pieces(self._part.path)):
            self._take(text, None)

    def _take(self, text: bytes | bytearray, offset: int | None) -> int:
        """Add a text, and return the number of its lines."""
        before = self._captures
        floor = self._largest[-1][0] if len(self._largest) == LARGEST else 0
        large: list[Large] = []
        invalid = take_text(self._sums, text, floor, large)
        if not self._first_key:
            self._first_key = bytes(text.partition(b" ")[0])
        if large:
            self._largest = heapq.nlargest(LARGEST, self._largest + large)
        if invalid:
            self._report(invalid, offset)
        if len(self._sums) > _DRAIN:
            self._tables.take(self._sums.groups())
        return self._captures - before + len(invalid)

    @property
    def _captures(self) -> int:
        return self._sums.totals()[0]

    def _report(self, invalid: Sequence[bytes], offset: int | None) -> None:
        for line in invalid[: max(0, _SHOWN - self._invalid)]:
            reason = f"neither a CDX nor a CDXJ line: {line[:80]!r}"
            self.findings.append(Failure(self._path, offset, reason))
        self._invalid += len(invalid)

    @property
    def _path(self) -> str:
        return self._part.path if self._part.shard is None else str(self._part.shard.place)

    def report(self) -> PartSums:
        if self._invalid > _SHOWN:
            self.findings.append(
                Failure(self._path, None, f"{self._invalid - _SHOWN} more lines of this kind")
            )
        self._tables.take(self._sums.groups())
        return PartSums(
            self._path,
            Totals(*self._sums.totals()),
            self._first_key,
            self._tables.pack(),
            self._sums,
            self._largest,
            self._invalid,
            self._block_bytes,
            self._block_lines,
            self.findings,
        )


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The text of a file in pieces that end with a line. The last line may have no line end.

    Whole lines before a corrupt place are passed on before its error is raised.
    """
    parts: list[bytes] = []
    size = 0
    failed: InputError | None = None
    try:
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size < _TEXT or (cut := piece.rfind(b"\n") + 1) == 0:
                continue
            parts[-1] = piece[:cut]
            yield b"".join(parts)
            parts, size = [piece[cut:]], len(piece) - cut
    except InputError as error:
        failed = error
    rest = b"".join(parts)
    if failed is not None:
        rest = rest[: rest.rfind(b"\n") + 1]
    if rest:
        yield rest
    if failed is not None:
        raise failed
