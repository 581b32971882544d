"""Count the records of a group of archives: the task that `count` runs in its processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.inputs.named import Input
from cdxmill.running.counted_reads import counted
from cdxmill.running.failures import Failure
from cdxmill.stages.counting.count_records import Counted, count_records
from cdxmill.stages.counting.counters import Counter
from cdxmill.stages.counting.sum_lines import spill
from cdxmill.stages.counting.tally import Tally, new_tally
from cdxmill.stages.lines.sorted_runs import Run
from cdxmill.stages.window import CHUNK, LOCAL_CHUNK
from cdxmill.storage.location import Location
from cdxmill.storage.scratch import Scratch
from cdxmill.storage.unchanged import open_unchanged

HELD = 64 << 20
"""Bytes of each of the two tallies of a process. A larger one is spilled."""


class CountTask(NamedTuple):
    """Archives to count; the runs are written to `scratch`, and their names start with its name."""

    archives: list[Input]
    counter: Counter
    scratch: Path


@dataclass
class GroupResult:
    """The runs with the counts of a group of archives, what was read, and what went wrong."""

    runs: list[Run] = field(default_factory=list)
    counted: Counted = field(default_factory=Counted)
    failures: list[Failure] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    """Archives with records, but none to count."""


def count_group(task: CountTask) -> GroupResult:
    """Count the records of some archives. Of an archive that cannot be read to its end, nothing is counted."""
    result = GroupResult()
    group = _Group(Scratch(task.scratch), task.scratch.name)
    for archive in task.archives:
        try:
            found = group.count(archive.location, task.counter)
        except InputError as error:
            group.undo()
            result.failures.append(Failure(archive.label, None, error.reason, error.hint))
            continue
        group.keep()
        result.counted.add(found)
        result.failures += [
            Failure(archive.label, one.offset, one.reason, one.hint) for one in found.findings.damage
        ]
        if found.records and not found.counted and not found.skipped:
            result.without.append(archive.label)
    result.runs = group.finish()
    return result


class _Group:
    """The tallies of a group: `_own` of the archive that is read, `_all` of those before it."""

    def __init__(self, scratch: Scratch, name: str) -> None:
        self._scratch, self._name = scratch, name
        self._own, self._all = new_tally(), new_tally()
        self._own_runs: list[Run] = []
        self._runs: list[Run] = []
        self._number = 0

    def count(self, archive: Location, counter: Counter) -> Counted:
        """Count the records of an archive. Raises InputError."""
        with open_unchanged(archive) as read_at:
            chunk = CHUNK if archive.is_remote else LOCAL_CHUNK
            return count_records(counted(read_at), counter, self._own, self._limit, chunk)

    def _limit(self) -> None:
        if self._own.size > HELD:
            self._own_runs.append(self._spill(self._own))

    def _spill(self, tally: Tally) -> Run:
        self._number += 1
        name = f"{self._name}.{self._number}"
        run = spill(tally, self._scratch.create, name)
        return run._replace(name=f"{self._name}/{name}")

    def keep(self) -> None:
        """Keep the counts of the archive that was read."""
        self._all.absorb(self._own)
        self._runs += self._own_runs
        self._own_runs = []
        if self._all.size > HELD:
            self._runs.append(self._spill(self._all))

    def undo(self) -> None:
        """Forget them."""
        self._own.take(b"")
        self._scratch.delete(run.name.rpartition("/")[2] for run in self._own_runs)
        self._own_runs = []

    def finish(self) -> list[Run]:
        """All runs."""
        if len(self._all):
            self._runs.append(self._spill(self._all))
        return self._runs
