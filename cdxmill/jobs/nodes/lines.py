"""The tasks of the sample job and the ZipNum job on a Hadoop node. A mapper gets the names of CDX files.

They run with Python 3.9 or later and the archive of jobs/launcher/node_archive.py. This module must not
import anything that has to be installed.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple, Protocol

from cdxmill.errors import InputError
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.split_points import parse_text
from cdxmill.formats.clusters.zipnum_block import BLOCK_LINES, Compressor
from cdxmill.formats.clusters.zipnum_index import part_name, shard_name
from cdxmill.jobs.nodes.inputs import read_inputs, urls_of
from cdxmill.jobs.nodes.output import Destination
from cdxmill.stages import native
from cdxmill.stages.lines.convert_sorted import convert_sorted
from cdxmill.stages.lines.line_chunks import (
    ChunkPacker,
    ChunkSender,
    ChunkSizes,
    format_record,
    merge_chunks,
    merge_texts,
    read_chunks,
)
from cdxmill.stages.lines.line_lists import cut_blocks, distinct_captures, split_lines
from cdxmill.stages.lines.sample_lines import Reservoir, Sample, merge_samples, pick_splits
from cdxmill.stages.zipnum.write_shard import write_shard

_READ_SIZE = 1 << 20
_LEAST_SENT = 1000
"""A mapper sends at least this many samples."""
_SHARE_FACTOR = 4
"""A mapper sends this many times its share of the samples that are kept."""
SPLITS = "cdxmill_splits.txt"
"""Name of the file with the split points, in the working directory of a task."""
_CHUNK_LEVEL = 1
"""Compression level of chunks."""
_SORTED = 96 << 20
"""Bytes of lines that a mapper sorts at a time."""
_MERGED = 128 << 20
"""Bytes of overlapping chunks that a reducer may hold."""
_CHUNKS_AT_ONCE = 8
"""Number of chunks of one mapper that may overlap: so often it sorts, at most."""


@dataclass(frozen=True)
class SampleTaskOptions:
    """Options of both sampling tasks. `size` is the number of lines in the whole sample."""

    size: int
    seed: str
    shards: int


@dataclass(frozen=True)
class ShardTaskOptions:
    """Options of the task that writes a shard. `cluster` is the URL of the cluster's directory."""

    cluster: str
    block_lines: int
    compressor: Compressor
    convert: bool


class ReducerReport(NamedTuple):
    """What a reducer has written: a file of JSON beside the shard, for the launcher."""

    shard: ShardEntry
    compressor_version: str
    duplicate_lines: int
    failures: list[str]
    """CDX files that could not be read, in the report of the first shard: `path: reason; hint`."""

    def to_json(self) -> str:
        """The content of the file."""
        return json.dumps({**self._asdict(), "shard": self.shard._asdict()})

    @classmethod
    def from_json(cls, text: bytes) -> ReducerReport:
        """Parse what `to_json` has written."""
        fields = json.loads(text)
        return cls(**{**fields, "shard": ShardEntry(**fields["shard"])})


REPORT = "_report-"
"""Start of the name of a report; Hadoop ignores names that begin with an underscore."""


def report_name(number: int) -> str:
    """The name of the report of a shard.

    >>> report_name(7)
    '_report-00007'
    """
    return f"{REPORT}{number:05d}"


def lines_of(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """The lines of a stream, in lists."""
    return split_lines(iter(partial(stream.read, _READ_SIZE), b""))


def format_sample(sample: Sample, bound: float | None = None) -> bytes:
    """Lines `TAB <priority> TAB <key in base64>`. The text before the first tab is empty, so all go to one reducer.

    Base64, because a key may contain a tab, or a CR that Hadoop streaming takes for a line end.
    A line without a key says that no line with a priority above `bound` was sent.
    """
    rows = [*sample, (bound, b"")] if bound is not None else sample
    return b"".join(b"\t%r\t%b\n" % (priority, base64.b64encode(key)) for priority, key in rows)


_FAILURE = b"failure"
"""In the place of a priority: the key is the message of a file that could not be read."""


def format_failure(text: str) -> bytes:
    """A line between the samples, for the reducer."""
    return b"\t%b\t%b\n" % (_FAILURE, base64.b64encode(os.fsencode(text)))


def read_sample(lists: Iterator[list[bytes]], size: int, failures: list[bytes]) -> Sample:
    """The `size` samples of least priority, from lines of `format_sample`. Failures are added to the list.

    Returns fewer if a mapper has sent too few: samples above the lowest bound are dropped, so
    that every line of every mapper keeps the same chance.
    """
    sample: Sample = []
    bound = 1.0
    for lines in lists:
        rows = [line.split(b"\t") for line in lines]
        failures += [base64.b64decode(row[2]) for row in rows if row[1] == _FAILURE]
        pairs = [(float(row[1]), base64.b64decode(row[2])) for row in rows if row[1] != _FAILURE]
        bound = min([bound, *(priority for priority, key in pairs if not key)])
        sample += [pair for pair in pairs if pair[1]]
        if len(sample) >= 2 * size:
            sample = merge_samples((sample,), size)
    return [pair for pair in merge_samples((sample,), size) if pair[0] <= bound]


def format_points(sample: Sample, shards: int) -> bytes:
    """Split points in base64, one per line."""
    points = pick_splits((key for _, key in sample), shards)
    return b"".join(base64.b64encode(point) + b"\n" for point in points)


def parse_points(output: bytes) -> list[bytes]:
    """Parse what `format_points` has written."""
    return [base64.b64decode(line) for line in output.split() if not line.startswith(_MARK)]


_MARK = b"!"
"""Before a failure among the split points; base64 does not have it."""


def parse_failures(output: bytes) -> list[str]:
    """The failures between the split points: `path: reason; hint`."""
    rows = (line for line in output.split() if line.startswith(_MARK))
    return sorted(os.fsdecode(base64.b64decode(row[len(_MARK) :])) for row in rows)


def sample_lines(options: SampleTaskOptions) -> None:
    """Map: write a uniform sample of the lines on standard input.

    A mapper of many sends several times its share of the sample, which is enough, and not a whole one.
    """
    environ = os.environ  # the names are Hadoop's
    rng = random.Random(f"{options.seed}:{environ.get('mapreduce_task_partition', 0)}")
    mappers = int(environ.get("mapreduce_job_maps", 1))
    size = min(options.size, max(_LEAST_SENT, _SHARE_FACTOR * options.size // mappers))
    reservoir = Reservoir(size, rng)

    def take(pieces: Iterator[bytes]) -> None:
        for lines in split_lines(pieces):
            reservoir.add(lines)

    for failure in take_inputs(reservoir, take, "none of its lines are in the sample"):
        sys.stdout.buffer.write(format_failure(failure))
    sample = reservoir.sample()
    bound = max(sample)[0] if size < options.size and len(sample) == size else None
    sys.stdout.buffer.write(format_sample(sample, bound))


def pick_points(options: SampleTaskOptions) -> None:
    """Reduce: write the split points, from the samples of all mappers."""
    failures: list[bytes] = []
    sample = read_sample(lines_of(sys.stdin.buffer), options.size, failures)
    sys.stdout.buffer.writelines(_MARK + base64.b64encode(failure) + b"\n" for failure in failures)
    sys.stdout.buffer.write(format_points(sample, options.shards))


class _Taker(Protocol):
    """Takes the lines of files, and can forget those of the last one."""

    def begin(self) -> None: ...
    def undo(self) -> None: ...


def take_inputs(
    taker: _Taker,
    take: Callable[[Iterator[bytes]], None],
    consequence: str,
    keep: Callable[[], None] | None = None,
) -> Iterator[str]:
    """Have the texts of all files of this mapper taken, each whole or not at all. The failures: `path: reason; hint`."""
    for urls in urls_of(sys.stdin.buffer):
        for _, pieces in read_inputs(urls):
            taker.begin()
            try:
                take(pieces)
            except InputError as error:
                taker.undo()
                yield f"{error.path}: {error.reason}; {consequence}" + (
                    f": {error.hint}" if error.hint else ""
                )
            else:
                if keep is not None:
                    keep()


def send_chunks(library: str) -> None:
    """Map: write the lines of CDX files in sorted chunks. More mappers make smaller chunks."""
    points = parse_text(Path(SPLITS).read_bytes())
    environ = os.environ  # the names are Hadoop's
    mappers = int(environ.get("mapreduce_job_maps", 1))
    size = min(_READ_SIZE >> 4, max(_READ_SIZE >> 8, _MERGED // (mappers * _CHUNKS_AT_ONCE)))
    packer = Compressor(library, _CHUNK_LEVEL)
    packer.version()  # raises ValueError if the library is missing
    out = sys.stdout.buffer
    with TemporaryFile(dir=".") as spool:
        sender = ChunkSender(out, spool, _quick_packer(packer), points, ChunkSizes(size, _SORTED))
        consequence = "none of its lines are in the cluster"
        for failure in take_inputs(sender, sender.add_text, consequence, sender.keep):
            out.write(format_record(b"", os.fsencode(failure), packer))
        sender.end()


def _quick_packer(packer: Compressor) -> ChunkPacker:
    """Chunks are gzip data, whichever library makes them: isal takes half the time, where a node has it."""
    try:
        from isal import igzip_lib
    except ImportError:
        return packer
    return _Igzip(igzip_lib)


class _Igzip:
    def __init__(self, library: Any) -> None:
        self._pack, self._kind = library.compress, library.COMP_GZIP

    def compress(self, data: bytes) -> bytes:
        """Compress to one gzip member."""
        packed: bytes = self._pack(data, _CHUNK_LEVEL, self._kind)
        return packed


def write_one_shard(options: ShardTaskOptions) -> None:
    """Reduce: write shard, part and report from the sorted chunks on standard input."""
    number = int(os.environ["mapreduce_task_partition"])  # noqa: SIM112 - Hadoop's spelling
    version = options.compressor.version()
    destination = Destination(options.cluster)
    names = shard_name(number), part_name(number), report_name(number)
    failures: list[bytes] = []
    chunks = read_chunks(sys.stdin.buffer, Compressor(options.compressor.library, _CHUNK_LEVEL), failures)
    counted = _Counted(chunks)
    if options.convert or native.Merger is None:
        lists = distinct_captures(merge_chunks((text.split(b"\n") for text in counted), _SORTED >> 1))
        blocks = cut_blocks(convert_sorted(lists) if options.convert else lists, options.block_lines)
    else:
        blocks = merge_texts(counted, _SORTED >> 1, options.block_lines)
    with Path(names[0]).open("wb") as shard, Path(names[1]).open("wb") as part:
        found = write_shard(blocks, names[0], shard, part, options.compressor)
    entry = ShardEntry(names[0], found.bytes, found.lines, found.blocks, found.sha256)
    told = sorted(map(os.fsdecode, failures))
    report = ReducerReport(entry, version, counted.lines - found.lines, told)
    Path(names[2]).write_text(report.to_json())
    destination.put((names[2], *names[:2]))  # the report first: it says that the shard is of a job of cdxmill
    _count(report)


def _count(report: ReducerReport) -> None:
    """Add to Hadoop's counters."""
    shard = report.shard
    counters = {"lines": shard.lines, "duplicates": report.duplicate_lines}
    for name, value in {**counters, "blocks": shard.blocks, "bytes": shard.bytes}.items():
        sys.stderr.write(f"reporter:counter:cdxmill,{name},{value}\n")


class _Counted:
    """Passes texts of lines on, counts the lines in `lines`, and reports progress to Hadoop."""

    def __init__(self, texts: Iterator[bytes]) -> None:
        self._texts = texts
        self.lines = 0

    def __iter__(self) -> Iterator[bytes]:
        reported = 0
        for text in self._texts:
            self.lines += text.count(b"\n") + 1
            if self.lines > reported + 1_000_000:
                reported = self.lines
                sys.stderr.write(f"reporter:status:{reported} lines\n")  # Hadoop kills a silent task
            yield text


def run_task(arguments: list[str]) -> None:
    """Run the task that the first argument names, with the options that follow."""
    given = _parser().parse_args(arguments)
    if given.task == "chunks":
        send_chunks(given.compressor)
    elif given.task == "shard":
        compressor = Compressor(given.compressor, given.level)
        write_one_shard(ShardTaskOptions(given.cluster, given.numlines, compressor, given.convert))
    else:
        run = sample_lines if given.task == "sample" else pick_points
        run(SampleTaskOptions(given.size, given.seed, given.shards))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hadoop_task.py")
    tasks = parser.add_subparsers(dest="task", required=True)
    for name in ("sample", "points"):
        sampling = tasks.add_parser(name)
        sampling.add_argument("--size", type=int, required=True)
        sampling.add_argument("--seed", default="0")
        sampling.add_argument("--shards", type=int, default=1)
    chunks = tasks.add_parser("chunks")
    chunks.add_argument("--compressor", required=True)
    shard = tasks.add_parser("shard")
    shard.add_argument("--cluster", required=True)
    shard.add_argument("--numlines", type=int, default=BLOCK_LINES)
    shard.add_argument("--compressor", required=True)
    shard.add_argument("--level", type=int, required=True)
    shard.add_argument("--convert", action="store_true")
    return parser
