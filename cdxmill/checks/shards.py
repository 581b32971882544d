"""The shards of a cluster, read whole, and held against their parts and their lines in the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.formats.zipnum_index import parse_index_line
from cdxmill.running.counted_reads import counted
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.zipnum.check_index import MOST_FAULTS, ShardLines, numbered, wrong_line
from cdxmill.stages.zipnum.check_shard import CheckedShard, Fault, check_shard
from cdxmill.storage.choose import open_ranges, read_bytes, total_size

Reports = dict[str, CheckedShard | None]
"""What is in each shard, by name in the order of the lines; None for one that cannot be read."""


class ShardTask(NamedTuple):
    """A shard, where it, its part and the index are, and its lines in that; `exact` as cdxmill writes them."""

    name: str
    place: str
    part: str | None
    index_place: str | None
    lines: ShardLines
    numbered: bool
    block_lines: int | None
    exact: bool


class _ShardResult(NamedTuple):
    report: CheckedShard | None
    faults: list[tuple[str, Fault]]


def read_shards(tasks: Sequence[ShardTask], processes: int, failures: Failures, quiet: bool) -> Reports:
    """What is in the shards. What is wrong with them, their parts and the index is told."""
    reports: Reports = {task.name: None for task in tasks}
    size = total_size(task.place for task in tasks)
    with Progress("reading shards", len(tasks), size, quiet) as progress:
        failures.show_on(progress)
        for number, result in run_tasks(_check, tasks, processes, progress.tick):
            reports[tasks[number].name] = result.report
            for path, fault in result.faults:
                failures.add(path, fault.offset, fault.reason)
            progress.advance()
    return reports


def _check(task: ShardTask) -> _ShardResult:
    """What is in a shard; what is wrong with it, with its part and with its lines in the index."""
    try:
        index = _slice(task.index_place, task.lines)
        part = None
        faults = []
        if task.part is not None:
            try:
                part = read_bytes(task.part)
            except InputError as error:
                faults.append((task.part, Fault(None, error.reason)))
        lengths = _lengths(index) or _lengths(part or b"")
        with open_ranges(task.place) as read_at:
            report = check_shard(counted(read_at), task.name, lengths, task.block_lines)
    except InputError as error:
        return _ShardResult(None, [(error.path, Fault(None, error.reason))])
    faults += [(task.place, fault) for fault in report.faults[:MOST_FAULTS]]
    if len(report.faults) > MOST_FAULTS:
        more = f"{len(report.faults) - MOST_FAULTS} more blocks are wrong"
        faults.append((task.place, Fault(report.faults[-1].offset, more)))
    if not report.faults:
        faults += _compare(task, report, part, index)
    return _ShardResult(report._replace(part=b""), faults)


def _slice(place: str | None, lines: ShardLines) -> bytes:
    if place is None or lines.start == lines.end:
        return b""
    with open_ranges(place) as read_at:
        return read_at(lines.start, lines.end - lines.start)


def block_ranges(task: ShardTask) -> list[tuple[int, int]]:
    """Offset and length of each block, as the part has them, or the index."""
    lines = _slice(task.index_place, task.lines) if task.part is None else read_bytes(task.part)
    return sorted(_lengths(lines).items())


def _lengths(index: bytes) -> dict[int, int]:
    """Where an index says that blocks are, and how long."""
    found = {}
    for line in index.split(b"\n"):
        try:
            block = parse_index_line(line)
        except ValueError:
            continue
        found[block.offset] = block.length
    return found


def _compare(
    task: ShardTask, report: CheckedShard, part: bytes | None, index: bytes
) -> Iterator[tuple[str, Fault]]:
    """Where part and index are not what the sound shard makes of them."""
    if task.part is not None and part is not None:
        wrong = wrong_line(part, report.part, task.exact)
        if wrong is not None:
            yield task.part, Fault(None, _told(*wrong, task.name, wrong[0]))
    if task.index_place is not None:
        wanted = numbered(report.part, task.lines.number) if task.numbered else report.part
        wrong = wrong_line(index, wanted, task.exact)
        if wrong is not None:
            line = task.lines.number + wrong[0] - 1
            yield task.index_place, Fault(None, _told(line, *wrong[1:], task.name, wrong[0]))


def _told(line: int, have: bytes, want: bytes, shard: str, block: int) -> str:
    if not block:
        return f"what it has of {shard} does not end where its last line does"
    if not have:
        return f"block {block} of {shard} is not in it, {want[:120]!r}"
    if not want:
        return f"line {line}: {shard} has no block {block}, {have[:120]!r}"
    return f"line {line} is {have[:120]!r}, but block {block} of {shard} is {want[:120]!r}"


def check_seams(tasks: Sequence[ShardTask], reports: Reports, failures: Failures) -> bool:
    """Order from shard to shard, and one number of lines in blocks; whether all lines are in order."""
    sound = True
    last, before, block_lines = b"", "", 0
    for name, place in ((task.name, task.place) for task in tasks):
        report = reports[name]
        if report is None or report.faults:
            sound = False
        if report is None or not report.lines:
            continue
        if before and report.first <= last:
            failures.add(place, 0, f"begins with {report.first[:80]!r}, but {before} ends with {last[:80]!r}")
            sound = False
        most = max(report.block_lines, report.last_lines) if block_lines else 0
        block_lines = block_lines or report.block_lines
        if (report.block_lines or block_lines) != block_lines or most > block_lines:
            failures.add(place, None, f"has {most} lines in a block, but other shards have {block_lines}")
        last, before = report.last, name
    return sound
