"""The tasks of the ZipNum job: mappers send the lines of CDX files in sorted chunks, each reducer writes a shard.

They run with Python 3.9 or later and the archive of jobs/launcher/node_archive.py. This module must not
import anything that has to be installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from cdxmill.errors import StoppedError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import part_name, shard_name
from cdxmill.jobs.nodes.files import Destination
from cdxmill.jobs.nodes.task_context import Read, TaskRun, format_failure, parse_failure
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.line_chunks import (
    ChunkSender,
    ChunkSizes,
    FormatRecord,
    Pack,
    Record,
    merge_texts,
)
from cdxmill.stages.lines.line_lists import convert_captures, split_lines
from cdxmill.stages.zipnum.write_shard import write_shard
from cdxmill.tasks.whole_files import NONE_IN_CLUSTER, whole_or_nothing

_CHUNK_LEVEL = 1
"""Compression level of chunks."""
_SMALLEST, _LARGEST = 4 << 10, 64 << 10
"""Bytes of lines in a chunk."""
_SORTED = 96 << 20
"""Bytes of lines that a mapper sorts at a time."""
_MERGED = 128 << 20
"""Bytes of overlapping chunks that a reducer may hold."""
_CHUNKS_AT_ONCE = 8
"""Number of chunks of one mapper that may overlap: so often it sorts, at most."""


@dataclass(frozen=True)
class ShardTaskOptions:
    """Options of the task that writes a shard. `cluster` is the URL of the cluster's directory."""

    cluster: str
    block_lines: int
    compressor: Compressor


class ReducerReport(NamedTuple):
    """What a reducer has written: a file of JSON beside the shard, for the launcher.

    `failures` are the CDX files that could not be read, in the report of the first shard.
    """

    shard: ShardEntry
    compressor_version: str
    duplicate_lines: int
    failures: list[Failure]

    def to_json(self) -> str:
        """The content of the file."""
        return json.dumps(self)

    @classmethod
    def from_json(cls, text: bytes) -> ReducerReport:
        """Parse what `to_json` has written."""
        shard, version, duplicates, failures = json.loads(text)
        return cls(ShardEntry(*shard), version, duplicates, [Failure(*failure) for failure in failures])


REPORT = "_report-"
"""Start of the name of a report; Hadoop ignores names that begin with an underscore."""


def report_name(number: int) -> str:
    """The name of the report of a shard.

    >>> report_name(7)
    '_report-00007'
    """
    return f"{REPORT}{number:05d}"


def read_reports(directory: Path, shards: int, compressor: Compressor, cluster: str) -> list[ReducerReport]:
    """The reports in a directory, one for each shard. Raises StoppedError if one is missing, or has another compressor."""
    reports = sorted(ReducerReport.from_json(path.read_bytes()) for path in directory.glob(f"{REPORT}*"))
    names = [report.shard.name for report in reports]
    if names != [shard_name(number) for number in range(shards)]:
        raise StoppedError(
            f"{cluster}: only {len(reports)} of {shards} shards were written; run the job again"
        )
    versions = {report.compressor_version for report in reports}
    wanted = compressor.version()
    if versions != {wanted}:
        raise StoppedError(
            f"{cluster}: shards were compressed by {', '.join(sorted(versions))}, not by {wanted} as on this machine; "
            f"use --compressor zlib-ng, or install the same library on all machines"
        )
    return reports


def chunk_packer(library: str) -> Pack:
    """What compresses chunks. They are gzip data, whichever library makes them: isal takes half the time, where it exists.

    Raises ValueError if `library` is missing.
    """
    packer = Compressor(library, _CHUNK_LEVEL)
    packer.version()
    try:
        from isal import igzip_lib
    except ImportError:
        return packer.compress
    return partial(igzip_lib.compress, level=_CHUNK_LEVEL, flag=igzip_lib.COMP_GZIP)


def send_chunks(
    read: Read, points: Sequence[bytes], form: FormatRecord, run: TaskRun, convert: bool = False
) -> None:
    """Map: write the lines of the CDX files on the work list in sorted chunks. More mappers make smaller chunks.

    With `convert`, CDX lines with 6 fields become CDXJ lines.
    """
    size = min(_LARGEST, max(_SMALLEST, _MERGED // (run.mappers * _CHUNKS_AT_ONCE)))
    failures: list[Failure] = []
    with TemporaryFile(dir=run.directory) as spool:
        sender = ChunkSender(run.output, spool, form, points, ChunkSizes(size, _SORTED))
        for item in run.work():
            with closing(read(item["paths"])) as texts:
                for path, pieces in texts:
                    with whole_or_nothing(path, failures, sender, consequence=NONE_IN_CLUSTER):
                        _send_text(pieces, sender, convert)
        for failure in failures:
            run.output.write(form(b"", format_failure(failure)))
        sender.end()


def _send_text(pieces: Iterator[bytes], sender: ChunkSender, convert: bool) -> None:
    if convert:
        for lines in split_lines(pieces):
            sender.add(convert_captures(lines))
    else:
        sender.add_text(pieces)
    sender.keep()


def write_one_shard(options: ShardTaskOptions, number: int, records: Iterator[Record], run: TaskRun) -> None:
    """Reduce: write shard, part and report from the sorted chunks of a shard."""
    version = options.compressor.version()
    destination = Destination(options.cluster)
    names = shard_name(number), part_name(number), report_name(number)
    received = _Received(records, Compressor(options.compressor.library, _CHUNK_LEVEL), run)
    blocks = merge_texts(received, _SORTED >> 1, options.block_lines)
    with Path(names[0]).open("wb") as shard, Path(names[1]).open("wb") as part:
        entry = write_shard(blocks, names[0], shard, part, options.compressor)
    report = ReducerReport(entry, version, received.lines - entry.lines, sorted(received.failures))
    Path(names[2]).write_text(report.to_json())
    destination.put((names[2], *names[:2]))  # the report first: it says that the shard is of a job of cdxmill
    run.add(lines=entry.lines, duplicates=report.duplicate_lines, blocks=entry.blocks, bytes=entry.bytes)


class _Received:
    """The texts of chunks, from their records. Counts their lines, keeps the failures between them, and shows progress."""

    def __init__(self, records: Iterator[Record], packer: Compressor, run: TaskRun) -> None:
        self._records, self._packer, self._run = records, packer, run
        self.lines = 0
        self.failures: list[Failure] = []

    def __iter__(self) -> Iterator[bytes]:
        shown = 0
        for key, data in self._records:
            text = self._packer.decompress(data)
            if not key:
                self.failures.append(parse_failure(text))
                continue
            self.lines += text.count(b"\n") + 1
            if self.lines > shown + 1_000_000:
                shown = self.lines
                self._run.show(f"{shown} lines")
            yield text
