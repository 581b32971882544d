"""A uniform sample of the lines of a group of texts. Needs nothing but Python, so that it runs on any node of Hadoop."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cdxmill.running.failures import Failure
from cdxmill.stages.lines.sample_lines import Reservoir, Sample, add_pieces
from cdxmill.tasks.whole_files import whole_or_nothing


class SampleTask(NamedTuple):
    """A group of CDX files, and how it is sampled."""

    paths: list[str]
    seed: str
    size: int
    ceiling: float = 1.0


class GroupSample(NamedTuple):
    """A sample of a group's lines, and the files that could not be read."""

    sample: Sample
    failures: list[Failure]


def sample_texts(
    texts: Iterable[tuple[str, Iterator[bytes] | Iterator[bytes | bytearray]]], task: SampleTask
) -> GroupSample:
    """A uniform sample, of `task.size` lines, of all lines of the texts: the path of each file, and its pieces."""
    reservoir = Reservoir(task.size, random.Random(task.seed), task.ceiling)
    failures: list[Failure] = []
    for path, pieces in texts:
        with whole_or_nothing(path, failures, reservoir):
            add_pieces(pieces, reservoir)
    return GroupSample(reservoir.sample(), failures)
