"""reindex: the index of archives -> the index of the same archives, written again by `recompress`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cdxmill.commands.per_archive.reindex_one import ReindexResult, ReindexTask, reindex_one
from cdxmill.commands.per_archive.task import open_directory, outputs_in, report, run_each, showing
from cdxmill.inputs.named import Input
from cdxmill.outputs.existing import Rule, TableSettings, check_inputs_stay
from cdxmill.outputs.names import identity
from cdxmill.running.failures import Failures
from cdxmill.running.quantities import count
from cdxmill.stages.lines.move_lines import Names, TableNames
from cdxmill.storage.location import Location, PathOrUrl, ask_all, locate


@dataclass(frozen=True, kw_only=True)
class ReindexOptions:
    """How index files are rewritten, and what happens to outputs that exist."""

    processes: int = 1
    existing: Rule = Rule.REFUSE
    quiet: bool = False


class ReindexSummary(NamedTuple):
    """What `reindex` did: index files, and lines of those that were written."""

    files: int
    kept: int
    moved: int
    copied: int
    skipped: int
    duplicates: int

    def __str__(self) -> str:
        """Return the closing line."""
        kept = f", {self.kept} up to date" if self.kept else ""
        others = f", {self.copied} of other archives" if self.copied else ""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        twice = f", {count(self.duplicates, 'duplicate')} dropped" if self.duplicates else ""
        return f"{count(self.moved, 'line')} moved in {count(self.files, 'index file')}{others}{skipped}{twice}{kept}"


def reindex(
    names: Mapping[Input, str],
    tables: Mapping[str, Names],
    target: PathOrUrl,
    options: ReindexOptions,
    failures: Failures,
) -> ReindexSummary:
    """Write each index file, with its lines moved by `tables`, to the file of its name below `target`, a path or URL.

    Failures are reported and listed: in a file in the directory, or, if it is remote, in files beside the outputs.
    Raises UsageError if nothing can be written there, or if an output exists that may not be replaced. Nothing is
    changed then.
    """
    place = locate(target)
    place.check_writable()
    check_inputs_stay(outputs_in(place, names))
    settings = TableSettings(TableNames(tables), _fingerprints(tables))
    with open_directory(place, failures) as directory:
        outputs, kept = directory.plan(names, settings, options.existing)
        tasks = [
            ReindexTask(index, output, directory.directory, directory.scratch / str(number), settings)
            for number, (index, output) in enumerate(outputs.items())
        ]
        with directory.writing(outputs):
            results = _run_tasks(tasks, options, failures)
    counts = (sum(numbers) for numbers in zip(*(result[:4] for result in results), strict=True))
    return ReindexSummary(len(tasks), len(kept), *(counts if results else (0, 0, 0, 0)))


def _fingerprints(tables: Mapping[str, Names]) -> tuple[tuple[str, object], ...]:
    found = zip(tables, ask_all(Location.status, map(locate, tables)), strict=True)
    return tuple(sorted((identity(path), entry and (entry.size, entry.modified)) for path, entry in found))


def _run_tasks(
    tasks: Sequence[ReindexTask], options: ReindexOptions, failures: Failures
) -> list[ReindexResult]:
    results = []
    with showing("reindexing", tasks, options.quiet, failures) as progress:
        for task, result in run_each(reindex_one, tasks, options.processes, progress):
            report(task.archive, result.failures, failures)
            results.append(result._replace(failures=[]))
    return results
