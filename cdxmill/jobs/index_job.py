"""Index archives: one CDX file per archive. The mappers index; there is no reducer.

    python indexwarcsjob.py -r local --cdx_bucket OUT MANIFEST...

A manifest lists one archive per line. The path is the last tab-separated field. `-` is standard
input. The CDX files have the same bytes as those of `cdxmill index --manifest`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from mrjob.step import MRStep

from cdxmill.commands.index import FAILURES, IndexOptions, IndexTask, forget_failed, index_one, is_finished
from cdxmill.inputs.named import Input
from cdxmill.jobs.found_inputs import archives_of
from cdxmill.jobs.hadoop_step import HadoopStep
from cdxmill.jobs.index_on_hadoop import folder_url, make_step
from cdxmill.jobs.index_options import IndexJobOptions, add_options, cdx_names, parse_options
from cdxmill.jobs.index_task import ArchiveWork, format_failure
from cdxmill.jobs.mrjob_types import RunnerLike
from cdxmill.jobs.run_job import count_failure
from cdxmill.jobs.stream_job import StreamJob
from cdxmill.messages import say
from cdxmill.storage.choose import ask_all, check_writable, is_newer, is_remote, join
from cdxmill.storage.local import make_folder


class IndexWARCJob(StreamJob):
    """Input: manifests. Output: `<path> TAB <reason>` for each failure."""

    arguments = "--cdx_bucket FOLDER MANIFEST..."
    description = "Index the WARC and ARC files that the manifests list: one CDX file per archive."

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        add_options(self.add_passthru_arg)

    @cached_property
    def index_options(self) -> IndexJobOptions:
        """The parsed options. Raises UsageError."""
        return parse_options(self.options)

    def steps(self) -> list[MRStep]:
        """One step with mappers only."""
        return [MRStep(mapper=self.run_mapper)]

    def list_work(self) -> Iterator[ArchiveWork]:
        """The archives to index, each with the path or URL of its CDX file."""
        return self._list_work(self.index_options)

    def _list_work(self, options: IndexJobOptions) -> Iterator[ArchiveWork]:
        names = cdx_names(archives_of(options.manifests, options.archive_root), options.cc_index_paths)
        if is_remote(options.cdx_folder):
            yield from _list_remote(options, names)
            return
        folder = Path(options.cdx_folder)
        make_folder(folder)
        forget_failed(folder / FAILURES, names, folder, options.skip_existing)
        for archive, name in names.items():
            output = join(options.cdx_folder, name)
            if not (options.skip_existing and is_newer(output, archive.path)):
                yield ArchiveWork(archive, output)

    def hadoop_step(self, runner: RunnerLike, folder: Path) -> HadoopStep:
        """Each mapper gets some lines of the work list."""
        options = self.index_options
        options = replace(options, cdx_folder=folder_url(options.cdx_folder, runner))
        # on other clusters it may be a path that exists on all nodes
        if options.archive_root and runner.alias == "emr":
            options = replace(options, archive_root=folder_url(options.archive_root, runner))
        work = list(self._list_work(options))
        self._total = len(work)
        work_list = folder / "archives.jsonl"
        work_list.write_text("".join(item.to_json() + "\n" for item in work))
        return make_step(options, work_list)

    def finish_hadoop(self, runner: RunnerLike) -> int:
        """Print the failures. Returns 0 if there are no more than --max-failures allows."""
        output = b"".join(runner.cat_output())
        self.show(output)
        failed = len({line.split(b"\t")[0] for line in output.splitlines()})
        if not self.index_options.quiet:
            done = f"{self._total - failed} of {self._total} archives indexed"
            say(f"{done}, {failed} with failures")
        return 0 if failed <= self.index_options.max_failures.of(self._total) else failed

    def run_mapper(self, step_num: int = 0) -> None:
        """Index one archive after the other."""
        options = self.index_options
        with self.scratch(options.scratch) as scratch:
            record = None if is_remote(options.cdx_folder) else Path(options.cdx_folder) / FAILURES
            for number, work in enumerate(map(ArchiveWork.from_json, self.stdin)):
                folder = scratch.folder / str(number)
                self._index(IndexTask(work.archive, work.output, record, folder, IndexOptions()))

    def _index(self, task: IndexTask) -> None:
        path = task.archive.path
        for failure in index_one(task).failures(path):
            where = path if failure.offset is None else f"{path}@{failure.offset}"
            count_failure(self, where, failure.reason, failure.hint)
            self.stdout.write(format_failure(failure))


def _list_remote(options: IndexJobOptions, names: dict[Input, str]) -> Iterator[ArchiveWork]:
    check_writable(options.cdx_folder)
    outputs = {join(options.cdx_folder, name): archive for archive, name in names.items()}
    done = [False] * len(outputs)
    if options.skip_existing:
        done = ask_all(lambda output: is_finished(output, outputs[output].path), outputs)
    for output, is_done in zip(outputs, done, strict=True):
        if not is_done:
            yield ArchiveWork(outputs[output], output)


if __name__ == "__main__":  # mrjob starts each task with this file
    IndexWARCJob.run()
