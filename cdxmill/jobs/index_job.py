"""Index archives: one CDX file per archive. The mappers index; there is no reducer.

    python indexwarcsjob.py -r local --cdx_bucket OUT MANIFEST...

A manifest lists one archive per line. The path is the last tab-separated field that is not empty. `-` is standard
input. The CDX files have the same bytes as those of `cdxmill index --manifest`.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from cdxmill.commands.per_archive.index import IndexOptions
from cdxmill.commands.per_archive.task import outputs_in
from cdxmill.inputs.found_inputs import archives_of
from cdxmill.inputs.named import Input, check_archives
from cdxmill.jobs.archive_job import IndexJobOptions, directory_url, make_step, parse_options
from cdxmill.jobs.launcher.hadoop_directory import directory_of
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.mrjob_parts import MRStep, RunnerLike
from cdxmill.jobs.launcher.stream_job import StreamJob
from cdxmill.jobs.nodes.index import ArchiveWork, index_archives, parse_output
from cdxmill.jobs.nodes.task_context import format_failure
from cdxmill.messages import count, say
from cdxmill.options.table import add_options
from cdxmill.outputs.existing import plan_outputs
from cdxmill.outputs.names import cdx_names, identity
from cdxmill.outputs.record import forgetting
from cdxmill.running.failures import Failures
from cdxmill.running.lock import hold
from cdxmill.storage.location import locate


class IndexWARCJob(StreamJob):
    """Input: manifests. Output: `<path> TAB <reason>` for each failure."""

    arguments = "--cdx_bucket DIR MANIFEST..."
    description = "Index the WARC and ARC files that the manifests list: one CDX file per archive."

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        add_options(IndexJobOptions, self.add_passthru_arg)

    _context = ExitStack()
    """Forgets earlier failures of the archives that were indexed, and lets others write to the directory."""

    @cached_property
    def index_options(self) -> IndexJobOptions:
        """The parsed options. Raises UsageError."""
        return parse_options(self.options)

    def steps(self) -> list[MRStep]:
        """One step with mappers only."""
        return [MRStep(mapper=self.run_mapper)]

    def list_work(self) -> WorkList:
        """The archives to index, each with the path or URL of its CDX file."""
        directory = self._local_directory
        names = _names(self.index_options)
        with ExitStack() as stack:
            if directory is not None:
                stack.enter_context(hold(directory))
            work = _list_work(self.index_options, names, directory)
            stack.enter_context(forgetting(directory, {identity(item.archive.location) for item in work}))
            self._context = stack.pop_all()
        return self._counted(work)

    def _counted(self, work: list[ArchiveWork]) -> WorkList:
        self._total = len(work)
        return [item.item() for item in work]

    @property
    def _local_directory(self) -> Path | None:
        return locate(self.index_options.cdx_directory).directory

    def hadoop_step(self, runner: RunnerLike, directory: Path) -> HadoopStep:
        """Each mapper gets some lines of the work list."""
        options = self.index_options
        options = replace(options, cdx_directory=directory_url(options.cdx_directory, runner))
        # on other clusters it may be a path that exists on all nodes
        if options.archive_root and runner.alias == "emr":
            options = replace(options, archive_root=directory_url(options.archive_root, runner))
        directory_of(options.cdx_directory, runner).check_writable()
        return make_step(options, self._counted(_list_work(options, _names(options), None)))

    def finish(self, runner: RunnerLike) -> int:
        """Print the failures. Returns 0 if there are no more than --max-failures allows."""
        found, notes = parse_output(b"".join(runner.cat_output()))
        failures = Failures()
        for note in notes:
            failures.note_one(note.path, note.reason)
        failures.close_notes()
        for failure in found:
            failures.report(failure)
        self._context.close()
        self.show(b"".join(format_failure(failure._replace(hint="")) for failure in found))
        failed = len(failures.inputs)
        if not self.index_options.quiet:
            done = f"{self._total - failed} of {self._total} archives indexed"
            say(f"{done}, {failed} with failures" + _notes_of(runner))
        return 0 if failed <= self.index_options.max_failures.of(self._total) else failed

    def run_mapper(self, step_num: int = 0) -> None:
        """Index one archive after the other."""
        index_archives(self.mapper_run(self.index_options.scratch))


def _notes_of(runner: RunnerLike) -> str:
    """The number of notes, as the end of a summary."""
    number = sum(counters.get("cdxmill", {}).get("notes", 0) for counters in runner.counters())
    return f", {count(number, 'note')}" if number else ""


def _names(options: IndexJobOptions) -> dict[Input, str]:
    """The archives, and the names of their outputs. Raises UsageError."""
    names = cdx_names(archives_of(options.manifests, options.archive_root), options.cc_index_paths)
    check_archives(names)
    locate(options.cdx_directory).check_writable()
    return names


def _list_work(
    options: IndexJobOptions, names: dict[Input, str], directory: Path | None
) -> list[ArchiveWork]:
    """The archives that have to be indexed. `directory` is a local output directory that only this machine writes to."""
    outputs = outputs_in(locate(directory or options.cdx_directory), names)
    plan = plan_outputs(outputs, IndexOptions().settings(), options.existing, directory)
    record = None if directory is None else str(directory)
    return [ArchiveWork(archive, output.text, record) for archive, output in plan.to_write.items()]


if __name__ == "__main__":  # mrjob starts each task with this file
    IndexWARCJob.run()
