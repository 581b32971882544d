"""The lines of a cluster, compared with the archives: each byte range must be the record of its line."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import accumulate
from typing import NamedTuple

from cdxmill.checks.shards import ReadShard, block_ranges, valid_blocks
from cdxmill.checks.verify_run import VerifyRun
from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.errors import InputError
from cdxmill.formats.lines.capture_fields import record_location
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.running.failures import Failure
from cdxmill.running.processes import counted
from cdxmill.stages.zipnum.check_index import MOST_FAULTS
from cdxmill.storage.location import total_size


class _LookUpTask(NamedTuple):
    """A shard, and the numbers of the lines to look up; None for all lines."""

    shard: ReadShard
    picked: list[int] | None
    archives: ArchivePlaces


class _LookUpResult(NamedTuple):
    looked_up: int
    findings: list[Failure]


def check_archives(
    shards: Sequence[ReadShard], archives: ArchivePlaces, sample: int | None, run: VerifyRun
) -> int:
    """Read the records of all lines of valid `shards`, or of a `sample` of them. Returns the number of records.

    Raises UsageError if there are no archives in the `archives`.
    """
    archives.open().close()
    shards = [shard for shard in shards if not shard.report.faults]
    tasks = [_LookUpTask(shard, picked, archives) for shard, picked in _deal(shards, sample)]
    size = total_size(task.shard.task.place for task in tasks) if sample is None else 0
    return sum(result.looked_up for result in run.results("reading records", _look_up, tasks, size))


def _deal(shards: Sequence[ReadShard], sample: int | None) -> Iterator[tuple[ReadShard, list[int] | None]]:
    """Each shard with the lines picked from it; None for all. The same cluster gives the same sample."""
    ends = list(accumulate(shard.report.lines for shard in shards))
    if sample is None or not ends or sample >= ends[-1]:
        yield from ((shard, None) for shard in shards)
        return
    picked: dict[int, list[int]] = {}
    for line in sorted(random.Random(0).sample(range(ends[-1]), sample)):
        number = bisect_right(ends, line)
        picked.setdefault(number, []).append(line - ends[number] + shards[number].report.lines)
    yield from ((shards[number], lines) for number, lines in picked.items())


def _look_up(task: _LookUpTask) -> _LookUpResult:
    looked_up = wrong = 0
    findings: list[Failure] = []
    with closing(task.archives.open()) as archives:
        for line in _lines(task):
            looked_up += 1
            finding = _check_line(archives, line)
            if finding is not None:
                wrong += 1
                if len(findings) < MOST_FAULTS:
                    findings.append(finding)
    if wrong > len(findings):
        reason = f"{wrong - len(findings)} more lines do not match their records"
        findings.append(Failure(str(task.shard.task.place), None, reason))
    return _LookUpResult(looked_up, findings)


def _lines(task: _LookUpTask) -> Iterator[bytes]:
    """The lines to look up. Blocks without any are not read."""
    place = task.shard.task.place
    with place.open_ranges() as read_at:
        if task.picked is None:
            for lines in valid_blocks(place, counted(read_at)):
                yield from lines
            return
        blocks = block_ranges(task.shard.task)
        block_lines = task.shard.report.block_lines or task.shard.report.last_lines
        number, lines = -1, []
        for picked in task.picked:
            if picked // block_lines != number:
                number = picked // block_lines
                data = read_at(*blocks[number])
                (lines,) = valid_blocks(place, lambda pos, size, data=data: data[pos : pos + size])  # type: ignore[misc]
            yield lines[picked % block_lines]


def _check_line(archives: ArchiveStore, line: bytes) -> Failure | None:
    """What is wrong with the record of a line, None if it matches."""
    try:
        location = record_location(line)
        reason = archives.fetch_line(location)[1]
    except ValueError as error:
        return Failure(line.split(b"{")[0][:100].decode("utf-8", "backslashreplace"), None, str(error))
    except InputError as error:
        return Failure(
            error.path, None, f"{error.reason} (capture of {location.url} at {location.timestamp})"
        )
    return None if reason is None else Failure(f"{location.filename}@{location.offset}", None, reason)
