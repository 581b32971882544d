"""The shards of a cluster, read whole, and compared with their parts and their lines in the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cdxmill.checks.verify_run import VerifyRun
from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum import parse_index_line
from cdxmill.running.failures import Failure
from cdxmill.running.processes import counted
from cdxmill.stages.window import ReadAt, chunk_of
from cdxmill.stages.zipnum.check_index import MOST_FAULTS, ShardLines, WrongLine, numbered, wrong_line
from cdxmill.stages.zipnum.check_shard import BlockRule, CheckedShard, Fault, check_shard, read_blocks
from cdxmill.storage.location import Location, total_size


def valid_blocks(shard: Location, read_at: ReadAt) -> Iterator[list[bytes]]:
    """The lines of each block. Raises InputError if the shard is no longer valid."""
    for block in read_blocks(read_at, {}, chunk_of(shard.is_remote)):
        if isinstance(block, Fault):
            raise InputError(str(shard), block.reason, "the file was changed during the check; run it again")
        yield block.lines


class ShardFiles(NamedTuple):
    """A shard, the paths or URLs of its part and of the index, and the range of its lines in the index.

    `exact` if its part and index must be written as cdxmill writes them. Unless it `is_even`, its blocks may have any
    number of lines up to `block_lines`.
    """

    name: str
    place: Location
    part_file: Location | None
    index_file: Location | None
    lines: ShardLines
    numbered: bool
    block_lines: int | None
    section_lines: int
    exact: bool
    is_even: bool = True


class ReadShard(NamedTuple):
    """A shard after it was read: its contents, and what is wrong with it, its part and its index lines."""

    task: ShardFiles
    report: CheckedShard
    findings: list[Failure]


def read_shards(tasks: Sequence[ShardFiles], run: VerifyRun) -> list[ReadShard]:
    """Read and check all shards."""
    return run.results("reading shards", _read_shard, tasks, total_size(task.place for task in tasks))


def _read_shard(task: ShardFiles) -> ReadShard:
    try:
        index = _index_lines(task)
        part, findings = _read_part(task)
        lengths = _lengths(index) or _lengths(part or b"")
        with task.place.open_ranges() as read_at:
            wanted = BlockRule(task.block_lines, task.section_lines, task.is_even)
            report = check_shard(counted(read_at), task.name, lengths, wanted, chunk_of(task.place.is_remote))
    except InputError as error:
        return ReadShard(task, CheckedShard([Fault(None, error.reason)]), [Failure.from_error(error)])
    findings += _damage(task, report.faults)
    if not report.faults:
        findings += _compare(task, report, part, index)
    return ReadShard(task, report._replace(part=b""), findings)


def _read_part(task: ShardFiles) -> tuple[bytes | None, list[Failure]]:
    """The part, None if the cluster has no parts or it cannot be read."""
    if task.part_file is None:
        return None, []
    try:
        return task.part_file.read_bytes(), []
    except InputError as error:
        return None, [Failure.from_error(error, str(task.part_file))]


def _damage(task: ShardFiles, faults: Sequence[Fault]) -> Iterator[Failure]:
    for fault in faults[:MOST_FAULTS]:
        yield Failure(str(task.place), fault.offset, fault.reason)
    if len(faults) > MOST_FAULTS:
        yield Failure(str(task.place), faults[-1].offset, f"{len(faults) - MOST_FAULTS} more corrupt blocks")


def _index_lines(task: ShardFiles) -> bytes:
    if task.index_file is None or task.lines.start == task.lines.end:
        return b""
    with task.index_file.open_ranges() as read_at:
        return read_at(task.lines.start, task.lines.end - task.lines.start)


def block_ranges(task: ShardFiles) -> list[tuple[int, int]]:
    """Offset and length of each block by the part, or by the index if there are no parts."""
    lines = _index_lines(task) if task.part_file is None else task.part_file.read_bytes()
    return sorted(_lengths(lines).items())


def _lengths(index: bytes) -> dict[int, int]:
    """The length of each block by its offset, as an index has them."""
    found = {}
    for line in index.split(b"\n"):
        try:
            block = parse_index_line(line)
        except ValueError:
            continue
        found[block.offset] = block.length
    return found


def _compare(task: ShardFiles, report: CheckedShard, part: bytes | None, index: bytes) -> Iterator[Failure]:
    """Compare part and index with the shard. Requires: the shard has no faults."""
    if part is not None:
        wrong = wrong_line(part, report.part, task.exact)
        if wrong is not None:
            yield Failure(str(task.part_file), None, _difference(task.name, wrong, 1))
    if task.index_file is not None:
        wanted = numbered(report.part, task.lines.number) if task.numbered else report.part
        wrong = wrong_line(index, wanted, task.exact)
        if wrong is not None:
            yield Failure(str(task.index_file), None, _difference(task.name, wrong, task.lines.number))


def _difference(shard: str, wrong: WrongLine, first: int) -> str:
    """A wrong line in words. `first` is the number of the shard's first line in the file."""
    number, found, wanted = wrong
    if not number:
        return f"its lines for {shard} do not end with one line end"
    if not found:
        return f"block {number} of {shard} is missing, expected {wanted[:120]!r}"
    if not wanted:
        return f"line {first + number - 1} is {found[:120]!r}, but {shard} has no block {number}"
    return f"line {first + number - 1} is {found[:120]!r}, but block {number} of {shard} is {wanted[:120]!r}"


def check_order(shards: Sequence[ReadShard]) -> Iterator[Failure]:
    """Check that each shard starts after the last line of the previous one."""
    before: ReadShard | None = None
    for shard in shards:
        if not shard.report.lines:
            continue
        first = shard.report.first
        if before is not None and first <= before.report.last:
            last = before.report.last
            reason = f"starts with {first[:80]!r}, but {before.task.name} ends with {last[:80]!r}"
            yield Failure(str(shard.task.place), 0, reason)
        before = shard


def check_block_lines(shards: Sequence[ReadShard]) -> Iterator[Failure]:
    """Check that full blocks have the same number of lines in all shards, where they must be even."""
    wanted = 0
    for shard in shards:
        if not shard.task.is_even:
            continue
        full, last = shard.report.block_lines, shard.report.last_lines
        most = max(full, last)
        if wanted and ((full and full != wanted) or most > wanted):
            reason = f"has {most} lines in a block, but other shards have {wanted}"
            yield Failure(str(shard.task.place), None, reason)
        wanted = wanted or full
