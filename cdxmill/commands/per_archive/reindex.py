"""reindex: the index of archives -> the index of the same archives, written again by `recompress`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.per_archive.index import forgetting
from cdxmill.commands.per_archive.reindex_one import ReindexResult, ReindexTask, reindex_one
from cdxmill.inputs.named import Input
from cdxmill.outputs.existing import Rule, check_inputs_stay, plan_outputs
from cdxmill.outputs.names import identity
from cdxmill.outputs.settings import TableSettings
from cdxmill.running.failures import Failures
from cdxmill.running.lock import hold
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count
from cdxmill.stages.lines.move_lines import Names, TableNames
from cdxmill.storage.choose import (
    PathOrUrl,
    ask_all,
    check_libraries,
    check_writable,
    is_remote,
    join,
    local_path,
    status,
    total_size,
)
from cdxmill.storage.local.files import sync_folders
from cdxmill.storage.scratch import temporary_folder


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
    folder: PathOrUrl,
    options: ReindexOptions,
    failures: Failures,
) -> ReindexSummary:
    """Write each index file, with its lines moved by `tables`, to the file of its name below `folder`, a path or URL.

    Failures are reported and listed: in a file in the folder, or, if it is remote, in files beside the outputs.
    Raises UsageError if nothing can be written there, or if an output exists that may not be replaced. Nothing is
    changed then.
    """
    check_writable(folder)
    is_local = not is_remote(str(folder))
    base = local_path(str(folder)) if is_local else str(folder)
    check_inputs_stay(names, base)
    settings = TableSettings(TableNames(tables), _fingerprints(tables))
    if not is_local:
        with temporary_folder() as scratch:
            return _run(names, base, Path(scratch), settings, options, failures)
    path = Path(base)
    with hold(path, failures.note), tempfile.TemporaryDirectory(prefix=".scratch-", dir=path) as scratch:
        return _run(names, base, Path(scratch), settings, options, failures)


def _fingerprints(tables: Mapping[str, Names]) -> tuple[tuple[str, object], ...]:
    found = zip(tables, ask_all(status, tables), strict=True)
    return tuple(sorted((identity(path), entry and (entry.size, entry.modified)) for path, entry in found))


def _run(
    names: Mapping[Input, str],
    base: str,
    scratch: Path,
    settings: TableSettings,
    options: ReindexOptions,
    failures: Failures,
) -> ReindexSummary:
    folder = None if is_remote(base) else Path(base)
    outputs = {index: join(base, name) for index, name in names.items()}
    indexes, kept = plan_outputs(outputs, settings, options.existing, folder)
    tasks = [
        ReindexTask(index, outputs[index], folder, scratch / str(number), settings)
        for number, index in enumerate(indexes)
    ]
    with forgetting(folder, indexes):
        results = _run_tasks(tasks, options, failures)
        if folder is not None:
            sync_folders(outputs[index] for index in indexes)
    counts = (sum(numbers) for numbers in zip(*(result[:4] for result in results), strict=True))
    return ReindexSummary(len(tasks), len(kept), *(counts if results else (0, 0, 0, 0)))


def _run_tasks(
    tasks: Sequence[ReindexTask], options: ReindexOptions, failures: Failures
) -> list[ReindexResult]:
    check_libraries(task.cdx.path for task in tasks)
    total = total_size(task.cdx.path for task in tasks)
    results = []
    with Progress("reindexing", len(tasks), total, options.quiet) as progress:
        failures.show_on(progress)
        for number, result in run_tasks(reindex_one, tasks, options.processes, progress.tick):
            failures.report_listed(tasks[number].cdx.label, result.failures)
            results.append(result._replace(failures=[]))
            progress.advance()
    return results
