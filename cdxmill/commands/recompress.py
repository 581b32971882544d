"""recompress: archives -> the same records, compressed in another way."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.index import check_archives, forgetting
from cdxmill.commands.recompress_one import (
    RecompressOptions,
    RecompressResult,
    RecompressTask,
    packer_of,
    recompress_one,
)
from cdxmill.errors import UsageError
from cdxmill.inputs.existing_outputs import Rule, plan_outputs
from cdxmill.inputs.named import Input
from cdxmill.inputs.output_names import identity
from cdxmill.running.failures import Failures
from cdxmill.running.lock import hold
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.running.quantities import count, human_bytes
from cdxmill.storage.choose import (
    PathOrUrl,
    check_libraries,
    check_writable,
    is_remote,
    join,
    local_path,
    total_size,
)
from cdxmill.storage.local import sync_folders


class RecompressSummary(NamedTuple):
    """What `recompress` did. The sizes, in bytes, are those of the archives that were written."""

    files: int
    kept: int
    records: int
    before: int
    after: int
    kept_as: str = "up to date"

    def __str__(self) -> str:
        """Return the closing line: records, files, and the saving."""
        kept = f", {self.kept} {self.kept_as}" if self.kept else ""
        text = f"{count(self.records, 'record')} of {count(self.files, 'archive')}{kept}"
        if not self.before or not self.after:
            return text
        change = 100 * (self.after - self.before) / self.before
        how = f"{abs(change):.1f} % {'larger' if change > 0 else 'smaller'}"
        return f"{text}: {human_bytes(self.before)} before, {human_bytes(self.after)} after ({how})"


def recompress(
    names: Mapping[Input, str], folder: PathOrUrl, options: RecompressOptions, failures: Failures
) -> RecompressSummary:
    """Write each archive again to the file of its name below `folder`, a path or URL.

    Raises UsageError if there are no archives, if such URLs cannot be written to, or if an output exists that may not
    be replaced. Nothing is changed then.
    """
    check_archives(names)
    check_writable(folder)
    packer_of(options)  # for all processes
    is_local = not is_remote(str(folder))
    base = local_path(str(folder)) if is_local else str(folder)
    outputs = {archive: join(base, name) for archive, name in names.items()}
    _check_inputs_stay(outputs)
    if not is_local:
        with tempfile.TemporaryDirectory(prefix="cdxmill-") as scratch:
            return _run(outputs, None, Path(scratch), options, failures)
    path = Path(base)
    with hold(path, failures.note), tempfile.TemporaryDirectory(prefix=".scratch-", dir=path) as scratch:
        return _run(outputs, path, Path(scratch), options, failures)


def _check_inputs_stay(outputs: Mapping[Input, str]) -> None:
    """Raise UsageError if an output would replace an archive that is read."""
    read = {_real(archive.path) for archive in outputs}
    for output in outputs.values():
        if _real(output) in read:
            raise UsageError(f"{output}: is an input; choose another output directory")


def _real(path: str) -> str:
    return identity(path) if is_remote(path) else str(Path(local_path(path)).resolve())


def _run(
    outputs: Mapping[Input, str],
    folder: Path | None,
    scratch: Path,
    options: RecompressOptions,
    failures: Failures,
) -> RecompressSummary:
    archives, kept = plan_outputs(outputs, options.settings(), options.existing, folder)
    tasks = [
        RecompressTask(archive, outputs[archive], folder, scratch / str(number), options)
        for number, archive in enumerate(archives)
    ]
    with forgetting(folder, archives):
        summary = _run_tasks(tasks, options, failures)
        if folder is not None:
            sync_folders(outputs[archive] for archive in archives)
    kept_as = "skipped" if options.existing is Rule.SKIP else "up to date"
    return summary._replace(kept=len(kept), kept_as=kept_as)


def _run_tasks(
    tasks: Sequence[RecompressTask], options: RecompressOptions, failures: Failures
) -> RecompressSummary:
    check_libraries(task.archive.path for task in tasks)
    total = total_size(task.archive.path for task in tasks)
    results: list[RecompressResult] = []
    with Progress("recompressing", len(tasks), total, options.quiet) as progress:
        failures.show_on(progress)
        for index, result in run_tasks(recompress_one, tasks, options.processes, progress.tick):
            label = tasks[index].archive.label
            failures.report_listed(label, [one._replace(path=label) for one in result.failures])
            results.append(result._replace(failures=[]))
            progress.advance()
    written = [result for result in results if result.after]
    return RecompressSummary(
        files=len(tasks),
        kept=0,
        records=sum(result.records for result in results),
        before=sum(result.before for result in written),
        after=sum(result.after for result in written),
    )
