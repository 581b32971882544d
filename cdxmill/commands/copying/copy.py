"""copy: the captures of queries -> new archives, each with its index.

    sources  -> plan     the chosen lines, by archive and offset         plan.py
    plan     -> units    fetched and checked in several processes        unit.py
    units    -> files    in the order of the plan                        output.py

The directory .work has the plan and the finished units. A run that was killed continues with them.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.commands.copying.output import CopyOutput, FileHead, Finished
from cdxmill.commands.copying.plan import (
    Asked,
    Identity,
    Planned,
    PlanSize,
    Revisit,
    Unit,
    detailed,
    find_originals,
    find_rows,
    read_rows,
    units_of,
    write_plan,
)
from cdxmill.commands.copying.unit import PLAN, UnitCopier, copied_as_it_is, revisit_of
from cdxmill.commands.copying.unit_files import CopiedRecord, Part, UnitResult, unit_file, unit_name
from cdxmill.errors import InputError, OutageError, StoppedError, UsageError
from cdxmill.formats.lines.capture_fields import REVISIT
from cdxmill.formats.own_records import format_row
from cdxmill.messages import count, human_bytes
from cdxmill.options.records import Copying
from cdxmill.outputs.names import check_inputs_stay
from cdxmill.outputs.record import check_failure_list
from cdxmill.outputs.time import output_time
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.lock import hold, renew_held
from cdxmill.running.processes import RateLimit, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.resume import WORK, WorkDirectory, fingerprint
from cdxmill.search.sources import state_of
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.scratch import temporary_directory

ORIGINALS = "originals.rows"
_RUNS = ".runs"
"""The ending of the file with the runs of a plan."""
_SECOND = 500_000
"""The number of the first unit with originals. No plan has as many units."""
FAILURES = "copy-failures.tsv"
"""The captures that could not be copied."""


class CopySummary(NamedTuple):
    """What a copy did: captures that were copied and those that were there before, new files, requests and bytes.

    With `related`, the records beside them are in `captures`, too.
    """

    captures: int
    present: int
    files: int
    bytes: int
    requests: int
    fetched: int
    related: bool = False

    def __str__(self) -> str:
        """Return the closing line."""
        present = f", {count(self.present, 'capture')} already there" if self.present else ""
        records = count(self.captures, "record" if self.related else "capture")
        what = f"{records} ({human_bytes(self.bytes)}) in {count(self.files, 'file')}"
        return f"{what}{present}; {count(self.requests, 'request')}, {human_bytes(self.fetched)} fetched"


def copy(asked: Asked, target: PathOrUrl, options: Copying, failures: Failures) -> CopySummary:
    """Copy the captures that `asked` finds to the directory `target`, a path or URL.

    Captures that it has already are not copied again. What cannot be copied is reported, and listed in FAILURES.
    Raises UsageError if another run writes to the directory or it is a source, InputError if a source cannot be read, StoppedError.
    """
    _check(asked, options)
    place = locate(target)
    check_inputs_stay([place], [locate(source.cluster) for source in asked.sources if not source.is_pipe])
    place.check_writable()
    with hold(place, failures.note), _work_directory(place) as directory:
        finished = Finished(place)
        if FAILURES in finished.names:
            check_failure_list(place / FAILURES)
        work = WorkDirectory(directory, job_of(asked, options))
        try:
            plan = _plan(asked, work, finished)
            _check_related(place, options, plan)
        except OutageError:  # a rerun continues with what is copied
            raise
        except (InputError, UsageError):
            work.remove()
            raise
        for fields in plan["invalid"]:
            failures.report_one_listed(Failure(*fields))
        for one in plan["other_digest"]:
            failures.report_one_listed(copied_as_it_is(one), "another digest than the index line")
        summary = _CopyRun(asked, options, work, finished, failures).copy(plan)
        list_failures(place / FAILURES, failures)
        work.remove()
    return summary


def _check(asked: Asked, options: Copying) -> None:
    """Raise UsageError for options that cannot be used."""
    if options.rate is not None and not 0 < options.rate <= 1e6:
        raise UsageError(f"--rate {options.rate}: expected a number of requests per second, such as 5 or 0.5")
    if options.originals and any(source.is_pipe for source in asked.sources):
        raise UsageError("--originals needs a source that can be searched again; a pipe is read once")
    for named in {source.places.named for source in asked.sources} - {None}:
        if not locate(str(named)).is_remote:  # elsewhere that costs requests
            with suppress(InputError):  # each capture of it is reported
                ArchivePlaces(named).open().close()


@contextmanager
def _work_directory(target: Location) -> Iterator[Path]:
    """The directory for a run's unfinished work. A remote copy cannot continue with the work of a killed run."""
    if target.directory is not None:
        yield target.directory / WORK
        return
    with temporary_directory() as directory:
        yield Path(directory) / WORK


def _check_related(target: Location, options: Copying, plan: dict[str, Any]) -> None:
    """Raise UsageError if related records are asked for, but their responses were copied without them."""
    if options.related and plan["unrelated"]:
        what = count(plan["unrelated"], "capture")
        raise UsageError(
            f"{target}: has {what} of this query without related records; choose another directory"
        )


def job_of(asked: Asked, options: Copying) -> str:
    """What decides the plan and the units. A pipe may be another one each time."""
    sources = [(source, state_of(source)) for source in asked.sources]
    once = time.time_ns() if any(source.is_pipe for source in asked.sources) else 0
    form = options.keep_arc, options.related, options.originals, options.any_digest, options.source_headers
    return fingerprint(sources, asked.urls, vars(asked.query), form, once)


def _plan(asked: Asked, work: WorkDirectory, finished: Finished) -> dict[str, Any]:
    """Make the plan, unless the run that was killed has made it. Raises InputError."""
    known = _planned("begun", PLAN, work)
    if known is not None:
        return known
    invalid: list[InputError] = []
    begun = _write_rows(find_rows(asked, work.scratch, invalid.append), PLAN, work, finished)
    begun["timestamp"] = output_time()
    begun["invalid"] = [(error.path, error.offset, error.reason, error.hint) for error in invalid]
    work.save("begun", begun)
    return begun


def _planned(name: str, plan: str, work: WorkDirectory) -> dict[str, Any] | None:
    """What a killed run has saved about a plan; None if the plan is missing: the run may have been killed at its end."""
    known = work.load(name)
    return dict(known) if known is not None and (work.scratch.directory / plan).exists() else None


def _write_rows(
    rows: Iterable[bytes], plan: str, work: WorkDirectory, finished: Finished, have: Container[Identity] = ()
) -> dict[str, Any]:
    """Write the rows of captures that are neither finished nor in `have`.

    Returns their size; the number of finished ones, and of those without their related records; and the finished
    revisits, as `Finished.revisits` takes them.
    """
    present = unrelated = 0
    revisits: list[list[Any]] = []
    other_digest: list[CopiedRecord] = []

    def missing() -> Iterator[tuple[bytes, Planned]]:
        nonlocal present, unrelated
        for row, one in read_rows(rows):
            if one.identity in have:
                continue
            copied = finished.copied(one)
            if copied is None:
                yield row, one
                continue
            present, unrelated = present + 1, unrelated + (copied in finished.unrelated)
            if copied in finished.other_digest:
                other_digest.append(copied)
            if REVISIT.encode() in one.line:
                revisits.append([*copied, *revisit_of(detailed(one))])

    with work.scratch.create(plan) as file, work.scratch.create(plan + _RUNS) as runs:
        size = write_plan(missing(), file, runs)
    found = {"size": size, "present": present, "unrelated": unrelated}
    return {**found, "revisits": revisits, "other_digest": other_digest}


class _Phase(NamedTuple):
    """A plan in a scratch file, and the number of its first unit."""

    plan: str
    first: int
    size: PlanSize


class _CopyRun:
    """One run of `copy`."""

    def __init__(
        self, asked: Asked, options: Copying, work: WorkDirectory, finished: Finished, failures: Failures
    ) -> None:
        self._asked, self._options, self._failures = asked, options, failures
        self._work, self._directory, self._finished = work, work.scratch.directory, finished
        self._captures = self._requests = self._fetched = 0
        self._revisits: list[list[Any]] = []

    def copy(self, plan: dict[str, Any]) -> CopySummary:
        """Copy what is planned, and then the originals of all revisits."""
        head = FileHead(plan["timestamp"], _about(self._asked))
        with CopyOutput(self._finished, self._options.size, head) as output:
            self._copy_units(_Phase(PLAN, 0, PlanSize(*plan["size"])), output)
            if self._options.originals:
                self._revisits += self._finished.revisits(plan["revisits"])
            if self._revisits:
                self._copy_units(_Phase(ORIGINALS, _SECOND, self._plan_originals()), output)
            output.finish()
        done = self._captures, plan["present"], output.files, output.bytes, self._requests, self._fetched
        return CopySummary(*done, self._options.related)

    def _plan_originals(self) -> PlanSize:
        """Plan the copy of the records that revisits refer to, without those that are copied anyway."""
        known = _planned("originals", ORIGINALS, self._work)
        if known is None:
            with (self._directory / PLAN).open("rb") as file:
                have = {one.identity for _, one in read_rows(row.removesuffix(b"\n") for row in file)}
            missing: list[Revisit] = []
            rows = find_originals(self._asked, starmap(Revisit, self._revisits), missing.append)
            known = _write_rows(sorted(rows), ORIGINALS, self._work, self._finished, have)
            known["missing"] = missing
            self._work.save("originals", known)
        for one in starmap(Revisit, known["missing"]):
            reason = f"no source has the record that this revisit refers to ({one.url} {one.timestamp})"
            failure = Failure(one.filename, one.offset, reason, "add the index that has it to SOURCE")
            self._failures.report_one_listed(failure, "no source has the record of a revisit")
        return PlanSize(*known["size"])

    def _copy_units(self, phase: _Phase, output: CopyOutput) -> None:
        end = (self._directory / phase.plan).stat().st_size
        with (self._directory / (phase.plan + _RUNS)).open("rb") as file:
            units = list(units_of(file, end, phase.size, phase.first))
        for result, number in self._in_order(units, phase):
            if self._options.originals:
                self._revisits += result.revisits
            for kind, part in result.parts.items():
                renew_held()
                if not _are_in(part, self._finished):
                    self._captures += output.add(kind, unit_file(self._directory, number, kind), part)

    def _in_order(self, units: Sequence[Unit], phase: _Phase) -> Iterator[tuple[UnitResult, int]]:
        """The results of all units, and their numbers, in the order of the units."""
        ready: set[int] = set()
        following = phase.first
        for number in self._completed(units, phase):
            ready.add(number)
            while following in ready:
                found = self._work.load(unit_name(following))
                if found is None:
                    path = self._directory / unit_name(following)
                    raise StoppedError(f"{path}.json: cannot be read; run it again")
                yield UnitResult.from_json(found), following
                following += 1

    def _completed(self, units: Sequence[Unit], phase: _Phase) -> Iterator[int]:
        """Copy the units that no earlier run has copied. The numbers of all units, in the order in which they end."""
        left, done = [], 0
        for unit in units:
            copied = _copied(self._work, unit.number, self._finished)
            if copied is None:
                left.append(unit)
            else:
                done += copied
                yield unit.number
        limit = RateLimit(self._options.rate)
        copier = UnitCopier(
            self._asked.places, self._work, phase.plan, self._finished, limit.wait, self._options
        )
        total = phase.size.bytes if len(left) == len(units) else 0
        with (
            closing(copier),
            Progress("copying", phase.size.captures, total, self._options.quiet) as progress,
        ):
            self._failures.show_on(progress)
            progress.done = done
            for index, result in run_tasks(copier, left, self._options.processes, progress.tick):
                self._requests += result.requests
                self._fetched += result.fetched
                progress.done += result.captures
                for failure in result.failures:
                    reason = failure.reason.rpartition(" (")[0]  # without the capture
                    self._failures.report_one_listed(failure, reason)
                yield left[index].number


def _are_in(part: Part, finished: Finished) -> bool:
    return bool(finished.captures) and all(one in finished for one in part.records())


def _copied(work: WorkDirectory, number: int, finished: Finished) -> int | None:
    """The captures of a unit that an earlier run has copied; None if it lacks some, or a file that is not finished."""
    found = work.load(unit_name(number))
    if found is None:
        return None
    directory = work.scratch.directory
    try:
        result = UnitResult.from_json(found)
        is_whole = not result.failures and all(
            _are_in(part, finished) or unit_file(directory, number, kind).stat().st_size == part.size
            for kind, part in result.parts.items()
        )
    except (OSError, AttributeError, TypeError, KeyError, ValueError):
        return None
    return result.captures if is_whole else None


def _about(asked: Asked) -> list[tuple[str, str]]:
    """Fields of the warcinfo records. Local paths stay private."""
    names = [
        source.name if locate(source.name).is_remote else Path(source.name).name
        for source in asked.sources
        if not source.is_pipe
    ]
    shown = ", ".join(asked.urls[:20]) + (" ..." if len(asked.urls) > 20 else "")
    return [("description", f"captures of {shown}, copied from {', '.join(names) or 'index lines'}")]


def list_failures(place: Location, failures: Failures) -> None:
    """List the failures of this run in place of those of earlier runs."""
    if failures.items:
        rows = [
            [one.path, "" if one.offset is None else str(one.offset), one.reason, one.hint]
            for one in failures.items
        ]
        if failures.count > len(rows):
            rows.append(["", "", f"{failures.count - len(rows)} more failures", ""])
        with place.write_atomic() as file:
            file.writelines(map(format_row, rows))
    elif place.exists():
        place.remove()
