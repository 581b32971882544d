"""What the tasks of the sample and the zipnum job do on a node of Hadoop: lines in, bytes out.

They run with a bare Python (3.9 or later) and what jobs/node_archive.py packs: nothing may
be imported here that has to be installed.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import sys
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from cdxmill.formats.cluster_manifest import ShardEntry
from cdxmill.formats.split_points import parse_text
from cdxmill.formats.zipnum_block import Compressor
from cdxmill.formats.zipnum_index import part_name, shard_name
from cdxmill.jobs.node_output import Destination
from cdxmill.stages.lines.convert_sorted import convert_sorted
from cdxmill.stages.lines.line_chunks import format_chunk, merge_chunks, read_chunks, sort_chunks
from cdxmill.stages.lines.line_lists import cut_blocks, distinct_captures, split_lines
from cdxmill.stages.lines.sample_lines import Reservoir, Sample, merge_samples, pick_splits
from cdxmill.stages.zipnum.write_shard import BLOCK_LINES, write_shard

_PIECE = 1 << 20
_GZIP = b"\x1f\x8b\x08"
_LEAST_SENT, _GENEROUS = 1000, 4
"""Samples that a mapper sends at the least, and times its share of those that are kept."""
REPORT = "_report-"
SPLITS = "cdxmill_splits.txt"
"""The split points, in the working folder of a task."""
_PACKED = 1
"""The level at which chunks are packed."""
_SORTED = 96 << 20
"""Bytes of lines that a mapper sorts at a time."""
_MERGED = 128 << 20
"""Bytes of lines that a reducer can well hold of chunks that overlap."""
_CHUNKS_AT_ONCE = 8
"""Chunks of one mapper that overlap at one place, at the most: so often it sorts."""


def lines_of(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """The lines of a stream, in lists."""
    return split_lines(iter(partial(stream.read, _PIECE), b""))


def format_sample(sample: Sample, bound: float | None = None) -> bytes:
    """`TAB <priority> TAB <key in base64>` lines: with nothing before the first tab, all go to one reducer.

    A key may hold a tab or a CR, which streaming takes for an end. A line without key says
    that of the lines with a priority above `bound` none was sent.
    """
    rows = [*sample, (bound, b"")] if bound is not None else sample
    return b"".join(b"\t%r\t%b\n" % (priority, base64.b64encode(key)) for priority, key in rows)


def read_sample(lists: Iterator[list[bytes]], size: int) -> Sample:
    """The `size` samples of least priority among lines of `format_sample`.

    Fewer where a mapper has sent too few: what is above the least bound is left out, for then
    every line of every mapper has the same chance still.
    """
    sample: Sample = []
    bound = 1.0
    for lines in lists:
        rows = (line.split(b"\t") for line in lines)
        pairs = [(float(row[1]), base64.b64decode(row[2])) for row in rows]
        bound = min([bound, *(priority for priority, key in pairs if not key)])
        sample += [pair for pair in pairs if pair[1]]
        if len(sample) >= 2 * size:
            sample = merge_samples((sample,), size)
    return [pair for pair in merge_samples((sample,), size) if pair[0] <= bound]


def format_points(sample: Sample, shards: int) -> bytes:
    """Split points, a line each, in base64."""
    points = pick_splits((key for _, key in sample), shards)
    return b"".join(base64.b64encode(point) + b"\n" for point in points)


def parse_points(output: bytes) -> list[bytes]:
    """What `format_points` has written."""
    return [base64.b64decode(line) for line in output.split()]


def sample_lines(options: argparse.Namespace) -> None:
    """Map: a uniform sample of the lines on standard input.

    With many mappers no one needs to send all that the reducer keeps: a generous share is enough.
    """
    environ = os.environ  # the names are Hadoop's
    rng = random.Random(f"{options.seed}:{environ.get('mapreduce_task_partition', 0)}")
    mappers = int(environ.get("mapreduce_job_maps", 1))
    size = min(options.size, max(_LEAST_SENT, _GENEROUS * options.size // mappers))
    reservoir = Reservoir(size, rng)
    for lines in lines_of(sys.stdin.buffer):
        reservoir.add(lines)
    sample = reservoir.sample()
    bound = max(sample)[0] if size < options.size and len(sample) == size else None
    sys.stdout.buffer.write(format_sample(sample, bound))


def pick_points(options: argparse.Namespace) -> None:
    """Reduce: split points from all samples."""
    sample = read_sample(lines_of(sys.stdin.buffer), options.size)
    sys.stdout.buffer.write(format_points(sample, options.shards))


def send_chunks(options: argparse.Namespace) -> None:
    """Map: the lines on standard input in sorted chunks, the smaller the more mappers there are."""
    points = parse_text(Path(SPLITS).read_bytes())
    environ = os.environ  # the names are Hadoop's
    mappers = int(environ.get("mapreduce_job_maps", 1))
    size = min(_PIECE >> 4, max(_PIECE >> 8, _MERGED // (mappers * _CHUNKS_AT_ONCE)))
    packer = Compressor(options.compressor, _PACKED)
    packer.version()  # it is there, or the reason is told
    for chunk in sort_chunks(lines_of(sys.stdin.buffer), points, size, _SORTED):
        sys.stdout.buffer.write(format_chunk(chunk, packer))
    sys.stdout.buffer.flush()


class ReducedShard(NamedTuple):
    """What a reducer tells of its shard, as JSON."""

    entry: ShardEntry
    compressor: str
    duplicates: int


def write_one_shard(options: argparse.Namespace) -> None:
    """Reduce: the sorted chunks on standard input become shard, part and report in the cluster's folder."""
    number = int(os.environ["mapreduce_task_partition"])  # noqa: SIM112 - Hadoop's spelling
    compressor = Compressor(options.compressor, options.level)
    version = compressor.version()
    destination = Destination(options.cluster)
    names = shard_name(number), part_name(number), f"{REPORT}{number:05d}"
    chunks = read_chunks(sys.stdin.buffer, Compressor(options.compressor, _PACKED))
    counted = _Counted(merge_chunks(chunks, _SORTED >> 1))
    lists = distinct_captures(counted)
    if options.convert:
        lists = convert_sorted(lists)
    blocks = cut_blocks(lists, options.numlines)
    with Path(names[0]).open("wb") as shard, Path(names[1]).open("wb") as part:
        found = write_shard(blocks, names[0], shard, part, compressor)
    entry = ShardEntry(names[0], found.bytes, found.lines, found.blocks, found.sha256)
    report = {
        "entry": entry._asdict(),
        "compressor": version,
        "duplicates": counted.lines - found.lines,
    }
    Path(names[2]).write_text(json.dumps(report))
    destination.put(names)
    counters = {"lines": found.lines, "duplicates": counted.lines - found.lines}
    for name, value in {**counters, "blocks": found.blocks, "bytes": found.bytes}.items():
        sys.stderr.write(f"reporter:counter:cdxmill,{name},{value}\n")


def _refuse_gzip(lines: list[bytes]) -> None:
    """Hadoop goes by names: a file of gzip that is not named so comes as lines of junk, this one among them."""
    at = bisect_left(lines, _GZIP)
    if lines[at : at + 1] and lines[at].startswith(_GZIP):
        raise ValueError(
            "an input is gzip, but its name does not end in .gz: rename it, Hadoop goes by names"
        )


class _Counted:
    """Lists as they pass; `lines` counts, and the task's progress is told now and then."""

    def __init__(self, lists: Iterator[list[bytes]]) -> None:
        self._lists = lists
        self.lines = 0

    def __iter__(self) -> Iterator[list[bytes]]:
        told = 0
        for lists in self._lists:
            _refuse_gzip(lists)
            self.lines += len(lists)
            if self.lines > told + 1_000_000:
                told = self.lines
                sys.stderr.write(f"reporter:status:{told} lines\n")  # else Hadoop takes the task for dead
            yield lists


def parse_options(arguments: list[str]) -> argparse.Namespace:
    """The options of a task; `run` is its function."""
    parser = argparse.ArgumentParser(prog="hadoop_task.py")
    tasks = parser.add_subparsers(required=True)
    add_sample(tasks.add_parser("sample"), sample_lines)
    add_sample(tasks.add_parser("points"), pick_points)
    chunks = tasks.add_parser("chunks")
    chunks.add_argument("--compressor", required=True)
    chunks.set_defaults(run=send_chunks)
    shard = tasks.add_parser("shard")
    shard.add_argument("--cluster", required=True)
    shard.add_argument("--numlines", type=int, default=BLOCK_LINES)
    shard.add_argument("--compressor", required=True)
    shard.add_argument("--level", type=int, required=True)
    shard.add_argument("--convert", action="store_true")
    shard.set_defaults(run=write_one_shard)
    return parser.parse_args(arguments)


def add_sample(parser: argparse.ArgumentParser, run: object) -> None:
    """The options that both sampling tasks have."""
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--shards", type=int, default=1)
    parser.set_defaults(run=run)
