"""copy: the captures of queries -> new archives, each with its index.

    sources  -> plan     the chosen lines, by archive and offset         copy_plan
    plan     -> units    fetched and checked in several processes        copy_unit
    units    -> files    in the order of the plan                        copy_output

The folder .work has the plan and the finished units. A run that was killed continues with them.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.commands.copy_output import CopyOutput, FileHead, Finished
from cdxmill.commands.copy_plan import Asked, PlanSize, Unit, find_rows, read_rows, units_of, write_plan
from cdxmill.commands.copy_unit import PLAN, Part, UnitCopier, UnitResult, unit_file
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.tsv_row import format_row
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.lock import hold
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count, human_bytes
from cdxmill.running.rate_limit import RateLimit
from cdxmill.running.resume import WorkFolder, fingerprint
from cdxmill.search.sources import STDIN, state_of
from cdxmill.storage.choose import check_writable, exists, is_remote, join, local_path, remove, write_atomic

WORK = ".work"
FAILURES = "copy-failures.tsv"
"""The captures that could not be copied."""


@dataclass(frozen=True, kw_only=True)
class CopyOptions:
    """How captures are copied. `most` is the size limit of a file in bytes, `rate` of requests per second."""

    processes: int = 4
    keep_arc: bool = False
    most: int = 1 << 30
    rate: float | None = None
    quiet: bool = False


class CopySummary(NamedTuple):
    """What a copy did: captures that were copied and those that were there before, new files, requests and bytes."""

    captures: int
    present: int
    files: int
    bytes: int
    requests: int
    fetched: int

    def __str__(self) -> str:
        """Return the closing line."""
        present = f", {count(self.present, 'capture')} already there" if self.present else ""
        what = f"{count(self.captures, 'capture')} ({human_bytes(self.bytes)}) in {count(self.files, 'file')}"
        return f"{what}{present}; {count(self.requests, 'request')}, {human_bytes(self.fetched)} fetched"


def copy(asked: Asked, target: str, options: CopyOptions, failures: Failures) -> CopySummary:
    """Copy the captures that `asked` finds to the folder `target`, a path or URL.

    Captures that it has already are not copied again. What cannot be copied is reported, and listed in FAILURES.
    Raises UsageError if another run writes to the folder, InputError if a source cannot be read, StoppedError.
    """
    check_writable(target)
    with _work_folder(target, failures) as folder:
        finished = Finished(target)
        work = WorkFolder(folder, _job(asked, options))
        try:
            plan = _plan(asked, work, finished)
        except (InputError, UsageError):
            work.scratch.remove()
            raise
        for path, reason in plan["invalid"]:
            failures.report(Failure(path, None, reason))
        summary = _Run(asked, target, options, failures).copy(work, folder, finished, plan)
        _list_failures(target, failures)
        work.scratch.remove()
    return summary


@contextmanager
def _work_folder(target: str, failures: Failures) -> Iterator[Path]:
    """The folder for a run's unfinished work. A remote copy cannot continue with that of a killed run."""
    if is_remote(target):
        with tempfile.TemporaryDirectory(prefix="cdxmill-") as folder:
            yield Path(folder)
        return
    path = Path(local_path(target))
    with hold(path, failures.note):
        yield path / WORK


def _job(asked: Asked, options: CopyOptions) -> str:
    """What decides the plan and the units. Standard input may be another one each time."""
    sources = [(source, state_of(source)) for source in asked.sources]
    once = time.time_ns() if any(source.name == STDIN for source in asked.sources) else 0
    return fingerprint(sources, asked.urls, asked.query, options.keep_arc, options.most, once)


def _plan(asked: Asked, work: WorkFolder, finished: Finished) -> dict[str, Any]:
    """Make the plan, unless the run that was killed has made it. Raises InputError."""
    known = work.load("begun")
    if known is not None:
        return dict(known)
    invalid: list[InputError] = []
    found = read_rows(find_rows(asked, work.scratch, invalid.append))
    present = 0

    def missing() -> Iterator[tuple[bytes, Any]]:
        nonlocal present
        for row, one in found:
            if one.identity in finished:
                present += 1
            else:
                yield row, one

    with work.scratch.create(PLAN) as file:
        size = write_plan(missing(), file)
    begun = {
        "timestamp": _now(),
        "size": size,
        "present": present,
        "invalid": [(error.path, error.reason) for error in invalid],
    }
    work.save("begun", begun)
    return begun


def _now() -> str:
    """14 digits. SOURCE_DATE_EPOCH sets another time, so that two copies of the same captures have the same bytes."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = int(seconds) if seconds.isascii() and seconds.isdigit() else time.time()
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(now))


class _Run:
    """One run of `copy`."""

    def __init__(self, asked: Asked, target: str, options: CopyOptions, failures: Failures) -> None:
        self._asked, self._target, self._options, self._failures = asked, target, options, failures
        self._captures = self._requests = self._fetched = 0

    def copy(self, work: WorkFolder, folder: Path, finished: Finished, plan: dict[str, Any]) -> CopySummary:
        """Copy what is planned."""
        size = PlanSize(*plan["size"])
        with (folder / PLAN).open("rb") as file:
            units = list(units_of(file, size))
        head = FileHead(plan["timestamp"], _about(self._asked))
        with CopyOutput(self._target, finished, self._options.most, head) as output:
            for result, number in self._in_order(work, folder, units, size, finished):
                for kind, part in result.parts.items():
                    if not _are_in(part, finished):
                        self._captures += output.add(kind, unit_file(folder, number, kind), part)
            output.finish()
        return CopySummary(
            self._captures, plan["present"], output.files, output.bytes, self._requests, self._fetched
        )

    def _in_order(
        self, work: WorkFolder, folder: Path, units: Sequence[Unit], size: PlanSize, finished: Finished
    ) -> Iterator[tuple[UnitResult, int]]:
        """The results of all units, and their numbers, in the order of the units."""
        ready: set[int] = set()
        following = 0
        for number in self._completed(work, folder, units, size, finished):
            ready.add(number)
            while following in ready:
                ready.remove(following)
                found = work.load(_name(following))
                if found is None:
                    raise StoppedError(f"{folder / _name(following)}.json: cannot be read; run it again")
                yield UnitResult.from_json(found), following
                following += 1

    def _completed(
        self, work: WorkFolder, folder: Path, units: Sequence[Unit], size: PlanSize, finished: Finished
    ) -> Iterator[int]:
        """Copy the units that no earlier run has copied. The numbers of all units, in the order in which they end."""
        left = []
        for unit in units:
            if _is_valid(work.load(_name(unit.number)), folder, unit.number, finished):
                yield unit.number
            else:
                left.append(unit)
        places = [source.places for source in self._asked.sources]
        limit = RateLimit(self._options.rate)
        copier = UnitCopier(places, work.scratch, finished, limit.wait, keep_arc=self._options.keep_arc)
        total = size.bytes if len(left) == len(units) else 0
        with Progress("copying", size.captures, total, self._options.quiet) as progress:
            self._failures.show_on(progress)
            for index, found in run_tasks(copier, left, self._options.processes, progress.tick):
                result = UnitResult.from_json(found)
                work.save(_name(left[index].number), found)
                self._requests += result.requests
                self._fetched += result.fetched
                progress.done += result.captures
                for failure in result.failures:
                    self._failures.report(failure)
                yield left[index].number


def _name(number: int) -> str:
    return f"unit-{number:06d}"


def _are_in(part: Part, finished: Finished) -> bool:
    return all((filename, offset, time) in finished for filename, offset, _, time, *_ in part.rows)


def _is_valid(found: Any, folder: Path, number: int, finished: Finished) -> bool:
    """Whether the result of an earlier run can be used: all was copied, and its files are there or are finished."""
    if found is None:
        return False
    try:
        result = UnitResult.from_json(found)
        return not result.failures and all(
            _are_in(part, finished) or unit_file(folder, number, kind).stat().st_size == part.size
            for kind, part in result.parts.items()
        )
    except (OSError, TypeError, KeyError, ValueError):
        return False


def _about(asked: Asked) -> list[tuple[str, str]]:
    """Fields of the warcinfo records. Local paths stay private."""
    names = [
        source.name if is_remote(source.name) else Path(source.name).name
        for source in asked.sources
        if source.name != STDIN
    ]
    shown = ", ".join(asked.urls[:20]) + (" ..." if len(asked.urls) > 20 else "")
    return [("description", f"captures of {shown}, copied from {', '.join(names) or 'index lines'}")]


def _list_failures(target: str, failures: Failures) -> None:
    """List the failures of this run in place of those of earlier runs."""
    path = join(target, FAILURES)
    if failures.items:
        rows = [
            [one.path, "" if one.offset is None else str(one.offset), one.reason, one.hint]
            for one in failures.items
        ]
        with write_atomic(path) as file:
            file.writelines(map(format_row, rows))
    elif exists(path):
        remove(path)
