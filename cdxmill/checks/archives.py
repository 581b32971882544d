"""The lines of a cluster, held against the archives: every byte range gives the record of its line."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import accumulate
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.formats.record_location import record_location
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.running.counted_reads import counted
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.captures.match_record import mismatch
from cdxmill.stages.zipnum.check_index import MOST_FAULTS
from cdxmill.stages.zipnum.check_shard import CheckedBlock, read_blocks
from cdxmill.storage.choose import open_ranges, total_size


class SoundLines(NamedTuple):
    """A shard whose blocks are sound: its path or URL, and how many lines it has, and its blocks but the last.

    `read_blocks` gives the offset and the length of each block.
    """

    place: str
    lines: int
    block_lines: int
    blocks: Callable[[], list[tuple[int, int]]]


class _Task(NamedTuple):
    shard: SoundLines
    picked: list[int] | None
    archives: str


class _Result(NamedTuple):
    looked_up: int
    wrong: int
    told: list[tuple[str, str]]


def check_archives(
    shards: Sequence[SoundLines],
    archives: str,
    sample: int | None,
    processes: int,
    failures: Failures,
    quiet: bool,
) -> int:
    """Read the records of all lines of `shards`, or of a `sample` of them; how many were looked up.

    Raises UsageError where `archives` is no place for them. What is wrong is told.
    """
    ArchiveStore(archives).close()
    tasks = [_Task(shard, picked, archives) for shard, picked in _deal(shards, sample)]
    size = total_size(task.shard.place for task in tasks) if sample is None else 0
    looked_up = 0
    with Progress("reading records", len(tasks), size, quiet) as progress:
        failures.show_on(progress)
        for number, result in run_tasks(_look_up, tasks, processes, progress.tick):
            looked_up += result.looked_up
            for where, reason in result.told:
                failures.add(where, None, reason)
            if result.wrong > len(result.told):
                more = f"{result.wrong - len(result.told)} more lines do not lead to their records"
                failures.add(tasks[number].shard.place, None, more)
            progress.advance()
    return looked_up


def _deal(shards: Sequence[SoundLines], sample: int | None) -> Iterator[tuple[SoundLines, list[int] | None]]:
    """Each shard with the lines that are picked of it; None for all. The same sample for the same cluster."""
    ends = list(accumulate(shard.lines for shard in shards))
    if sample is None or not ends or sample >= ends[-1]:
        yield from ((shard, None) for shard in shards)
        return
    picked: dict[int, list[int]] = {}
    for line in sorted(random.Random(0).sample(range(ends[-1]), sample)):
        number = bisect_right(ends, line)
        picked.setdefault(number, []).append(line - ends[number] + shards[number].lines)
    yield from ((shards[number], lines) for number, lines in picked.items())


def _look_up(task: _Task) -> _Result:
    looked_up = wrong = 0
    told: list[tuple[str, str]] = []
    with closing(ArchiveStore(task.archives)) as archives:
        for line in _lines(task):
            looked_up += 1
            reason = _wrong(archives, line)
            if reason is not None:
                wrong += 1
                if len(told) < MOST_FAULTS:
                    told.append(reason)
    return _Result(looked_up, wrong, told)


def _lines(task: _Task) -> Iterator[bytes]:
    """The lines that are looked up. Blocks without one are not read."""
    shard = task.shard
    with open_ranges(shard.place) as read_at:
        if task.picked is None:
            for block in read_blocks(counted(read_at), {}):
                yield from _sound(shard, block).lines
            return
        blocks = shard.blocks()
        number, lines = -1, []
        for picked in task.picked:
            if picked // shard.block_lines != number:
                number = picked // shard.block_lines
                data = read_at(*blocks[number])
                (block,) = read_blocks(lambda pos, size, data=data: data[pos : pos + size], {})  # type: ignore[misc]
                lines = _sound(shard, block).lines
            yield lines[picked % shard.block_lines]


def _sound(shard: SoundLines, block: object) -> CheckedBlock:
    if not isinstance(block, CheckedBlock):
        raise InputError(shard.place, "a block is damaged", "it was changed meanwhile")
    return block


def _wrong(archives: ArchiveStore, line: bytes) -> tuple[str, str] | None:
    """Where, and why, the line does not lead to its record."""
    try:
        place = record_location(line)
        found = archives.fetch(place.filename, place.offset, place.length)
    except ValueError as error:
        return line.split(b"{")[0][:100].decode("utf-8", "backslashreplace"), str(error)
    except InputError as error:
        return error.path, f"{error.reason} (of {place.url} {place.timestamp})"
    reason = mismatch(found.record, place)
    return None if reason is None else (f"{place.filename}@{place.offset}", reason)
