"""Archives -> a uniform sample of their records, in two steps: choose records, then read only these.

The first step reads every archive and keeps offsets alone, so memory does not grow with the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.inputs.named import Input
from cdxmill.running.counted_reads import counted
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.records.fetch_record import Archive, NoRecord
from cdxmill.stages.records.sample_records import Candidate, first_bytes, sample_archive
from cdxmill.stages.window import CHUNK, LOCAL_CHUNK
from cdxmill.storage.location import locate, total_size

_HELD_OUT = 8
"""One part in this number of the sample is kept for measuring."""


class Chosen(NamedTuple):
    """A record of the sample: the number of its archive, and where it is there."""

    archive: int
    found: Candidate


class Sample(NamedTuple):
    """The records to train on, and those to measure with. `by_file` is whether no archive has records of both."""

    training: list[Chosen]
    held_out: list[Chosen]
    by_file: bool


class _SampleTask(NamedTuple):
    path: str
    seed: str
    limit: int


class _SampleResult(NamedTuple):
    candidates: list[Candidate]
    failures: list[Failure]


def choose_records(
    archives: Sequence[Input], limit: int, seed: int, processes: int, quiet: bool, failures: Failures
) -> Sample:
    """A uniform sample of at most `limit` bytes of all records. Failures are reported. The same for any `processes`."""
    for archive in archives:
        archive.location.require()
    tasks = [_SampleTask(archive.path, f"{seed}:{number}", limit) for number, archive in enumerate(archives)]
    chosen: list[Chosen] = []
    total = total_size(archive.location for archive in archives)
    with Progress("sampling", len(tasks), total, quiet) as progress:
        failures.show_on(progress)
        for number, result in run_tasks(_sample, tasks, processes, progress.tick):
            failures.report_listed(archives[number].label, result.failures)
            chosen += [Chosen(number, candidate) for candidate in result.candidates]
            chosen = _lowest(chosen, limit)
            progress.advance()
    return _hold_out(chosen, seed)


def _sample(task: _SampleTask) -> _SampleResult:
    try:
        with locate(task.path).open_ranges() as read_at:
            chunk = CHUNK if locate(task.path).is_remote else LOCAL_CHUNK
            sampled = sample_archive(counted(read_at), task.seed, task.limit, chunk)
    except InputError as error:
        return _SampleResult([], [Failure.from_error(error)])
    found = [Failure(task.path, one.offset, one.reason, one.hint) for one in sampled.damage]
    return _SampleResult(sampled.candidates, found)


def _lowest(chosen: list[Chosen], limit: int) -> list[Chosen]:
    """Those of lowest priority, as many as have `limit` bytes."""
    chosen.sort(key=lambda one: (one.found.priority, one.archive))
    for number, one in enumerate(chosen):
        limit -= one.found.size
        if limit < 0:
            return chosen[:number]
    return chosen


def _hold_out(chosen: list[Chosen], seed: int) -> Sample:
    """Divide a sample. Whole archives are held out; if there is only one, records of it."""
    sizes: dict[int, int] = {}
    for one in chosen:
        sizes[one.archive] = sizes.get(one.archive, 0) + one.found.size
    if len(sizes) < 2:
        return Sample(chosen[len(chosen) // _HELD_OUT :], chosen[: len(chosen) // _HELD_OUT], False)
    numbers = sorted(sizes, key=lambda number: (sizes[number], number))[:-1]  # never the largest one
    Random(f"{seed}:held out").shuffle(numbers)
    wanted, held = sum(sizes.values()) // _HELD_OUT, set()
    for number in numbers:
        if wanted > 0:
            held.add(number)
            wanted -= sizes[number]
    return Sample(
        [one for one in chosen if one.archive not in held],
        [one for one in chosen if one.archive in held],
        True,
    )


def read_chosen(archives: Sequence[Input], chosen: Sequence[Chosen], failures: Failures) -> list[bytes]:
    """The first bytes of each record, by archive and offset. Archives that cannot be read now are reported."""
    by_place = sorted(chosen, key=lambda one: (one.archive, one.found.offset))
    found: list[bytes] = []
    for number, group in groupby(by_place, key=attrgetter("archive")):
        try:
            found += _read(archives[number].path, (one.found for one in group))
        except InputError as error:
            failures.report(Failure.from_error(error))
    return found


def _read(path: str, candidates: Iterator[Candidate]) -> Iterator[bytes]:
    with locate(path).open_ranges() as read_at:
        archive = Archive(read_at)
        for one in candidates:
            try:
                yield first_bytes(archive.record(one.offset, one.length).content())
            except NoRecord as error:
                reason = f"changed while it was read ({error})"
                raise InputError(path, reason, "run it again when nothing writes to the file") from None
