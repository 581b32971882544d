"""CDX files -> a uniform sample of their lines, taken by tasks, and split points from it."""

from __future__ import annotations

import heapq
import random
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.formats.gzip_member import MAGIC
from cdxmill.inputs.cdx_files import deal, read_pieces
from cdxmill.running.failures import Failures
from cdxmill.running.quantities import count
from cdxmill.stages.lines.sample_lines import Reservoir, Sample, add_pieces, pick_splits
from cdxmill.storage.choose import (
    ask_all,
    file_size,
    open_ranges,
)

SAMPLES_PER_SHARD = 400
"""The worst of 300 shards then has about 1.15 times the mean of lines; 25 % above is rarer than one in a million."""


_SMALL = 8 << 20
"""Inputs of fewer bytes are sampled without a guess of their lines."""


_LOOKED_AT, _LOOK = 8, 1 << 16
"""Files, and bytes at the start of each, that tell how many lines there may be."""


_GENEROUS = 1.25
"""Lines looked at for each that is kept, if the guess is right."""


class SampleTask(NamedTuple):
    """A group of CDX files, and how it is sampled."""

    paths: list[str]
    seed: str
    size: int
    ceiling: float = 1.0


class SampleResult(NamedTuple):
    """A sample of a group's lines, and the files that could not be read."""

    sample: Sample
    failures: list[InputError]


def sample_tasks(paths: Sequence[str], seed: int, size: int, ceiling: float = 1.0) -> list[SampleTask]:
    """The files in groups, each sampled by itself; the same ones on any machine."""
    return [SampleTask(group, f"{seed}:{number}", size, ceiling) for number, group in enumerate(deal(paths))]


def guess_ceiling(paths: Sequence[str], size: int) -> float:
    """Below which priority the `size` lines of least priority are to be looked for: 1 for few lines."""
    sizes = ask_all(file_size, paths)
    if sum(sizes) < _SMALL:
        return 1.0
    largest = heapq.nlargest(_LOOKED_AT, zip(sizes, paths, strict=True))
    density = sum(_lines_a_byte(path) for _, path in largest) / len(largest)
    lines = density * sum(sizes)
    return min(1.0, _GENEROUS * size / lines) if lines else 1.0


def _lines_a_byte(path: str) -> float:
    """Line ends for each byte at the start of a file, packed or not; 0 where it cannot be read."""
    try:
        with open_ranges(path) as read_at:
            head = read_at(0, _LOOK)
        if not head.startswith(MAGIC):
            return head.count(b"\n") / max(len(head), 1)
        unpacker = zlib.decompressobj(31)
        text = unpacker.decompress(head)
        return text.count(b"\n") / (len(head) - len(unpacker.unused_data))
    except (InputError, zlib.error):
        return 0.0


def splits_of(sample: Sample, shards: int, failures: Failures) -> list[bytes]:
    """Split points from a sample; a note where there are fewer keys than shards asked for."""
    points = pick_splits((key for _, key in sample), shards)
    if len(points) + 1 < shards:
        why = "there are too few distinct keys" if sample else "no line was found"
        failures.note(f"note: {count(len(points) + 1, 'shard')}, not {shards}: {why}")
    return points


def sample_group(task: SampleTask) -> SampleResult:
    """A uniform sample of `task.size` of all lines of a group of files."""
    reservoir = Reservoir(task.size, random.Random(task.seed), task.ceiling)
    failures = []
    for path in task.paths:
        reservoir.begin()
        try:
            add_pieces(read_pieces(path), reservoir)
        except InputError as error:
            reservoir.undo()
            failures.append(error)
    return SampleResult(reservoir.sample(), failures)
