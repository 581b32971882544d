"""What runs on the nodes of Spark for `count`: count the archives of a group, and add the counts of a partition.

    archives --count--> sorted counts --cut by item--> parts --Spark--> sums --> sorted pieces

A part, and a piece of the sums, is a text of lines `<item> TAB <count>`, compressed: no item becomes an object of Spark.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.count import HELD, CountTask, GroupResult, count_watched
from cdxmill.commands.own_function import OwnSource
from cdxmill.inputs.named import Input
from cdxmill.running.watched import Limits
from cdxmill.spark.tasks import PIECE, OnNode, scratch_on_node
from cdxmill.stages.counting.counters import COUNTERS
from cdxmill.stages.counting.tally import new_tally, spill, sum_lines
from cdxmill.stages.lines.merge_lines import merge_runs
from cdxmill.stages.lines.sort_lines import Run
from cdxmill.storage.scratch import Scratch

_FAST = 1
"""The level of zlib: parts are written and read once."""


class CountWork(NamedTuple):
    """A group of archives to count, and in how many partitions. `what` is a name in COUNTERS, or a user's own counter.

    `node` has the directory for temporary files.
    """

    number: int
    archives: list[Input]
    what: str | OwnSource
    limits: Limits
    partitions: int
    node: OnNode


class Piece(NamedTuple):
    """Sorted sums of a partition: the number of lines and their compressed text. Of the last one, a pickled report."""

    partition: int
    lines: int
    data: bytes


Report = tuple[int, list[GroupResult]]
"""The number of a group, and what was read."""


def count_and_send(work: CountWork) -> Iterator[tuple[int, bytes]]:
    """Count a group, and send each partition its counts. The report goes to the partition after the last one."""
    with scratch_on_node(work.node.scratch) as directory:
        what, scratch = work.what, Scratch(Path(directory))
        counter = COUNTERS[what] if isinstance(what, str) else what.counter(Path(directory))
        task = CountTask(work.archives, scratch.directory / "0")
        results = [found for _, found in count_watched([task], counter, 1, lambda: None, work.limits)]
        for found in results:
            work.node.check_reached(found.failures)
        runs = [run for found in results for run in found.runs]
        texts = [bytearray() for _ in range(work.partitions)]
        for lines in sum_lines(merge_runs(runs, scratch.create, scratch.reader)):
            for line in lines:
                number = zlib.crc32(line[: line.index(b"\t")]) % work.partitions
                texts[number] += line + b"\n"
                if len(texts[number]) >= PIECE:
                    yield number, zlib.compress(texts[number], _FAST)
                    texts[number].clear()
        yield from ((number, zlib.compress(text, _FAST)) for number, text in enumerate(texts) if text)
    for found in results:
        found.runs = []
    yield work.partitions, pickle.dumps((work.number, results))


def add_parts(shared: tuple[int, str], number: int, parts: Iterator[bytes]) -> Iterator[Piece]:
    """The sums of a partition, or the reports. `shared` is the number of partitions, and the directory for temporary files."""
    partitions, place = shared
    if number == partitions:
        yield from (Piece(number, 0, report) for report in parts)
        return
    with scratch_on_node(place) as directory:
        scratch, tally, runs = Scratch(Path(directory)), new_tally(), list[Run]()
        for part in parts:
            for line in zlib.decompress(part).split(b"\n")[:-1]:
                item, _, count = line.partition(b"\t")
                tally.add(item, int(count))
            if tally.size > HELD:
                runs.append(spill(tally, scratch.create, f"{len(runs)}"))
        runs.append(spill(tally, scratch.create, f"{len(runs)}"))
        end = b"\t%d\n" % number  # lines of a run have its name
        for lines in sum_lines(merge_runs(runs, scratch.create, scratch.reader)):
            yield Piece(number, len(lines), zlib.compress(end.join([*lines, b""]), _FAST))
