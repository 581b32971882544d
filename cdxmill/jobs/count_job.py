"""Count what the archives that manifests list contain: the base class of the counting jobs, and of a user's own.

    from cdxmill.jobs.count_job import CountJob

    class LanguageCount(CountJob):
        def items(self, record):
            yield record.headers.get(b"warc-identified-content-language", b"unknown")

    if __name__ == "__main__":
        LanguageCount.run()

The mappers read the archives themselves and add up what they find, so only sums are shuffled. The reducers add those.
The output is that of `cdxmill count`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from cdxmill.capture import Record
from cdxmill.commands.counting.count_group import CountTask, count_group
from cdxmill.errors import UsageError
from cdxmill.inputs.found_inputs import archives_of
from cdxmill.jobs.index_options import ArchiveJobOptions, parse_limit
from cdxmill.jobs.launcher.hadoop_folder import folder_of
from cdxmill.jobs.launcher.hadoop_step import HadoopStep
from cdxmill.jobs.launcher.index_on_hadoop import folder_url
from cdxmill.jobs.launcher.mrjob_types import RunnerLike
from cdxmill.jobs.launcher.run_job import count_failure
from cdxmill.jobs.launcher.stream_job import StreamJob
from cdxmill.jobs.nodes.count import FAILURES, JOB_FILE, CountWork, sum_texts, texts_of
from cdxmill.messages import say
from cdxmill.options.table import add_options
from cdxmill.stages.counting.counters import COUNTERS, Counter, Item, counter_of


class CountJob(StreamJob):
    """Input: manifests. Output: lines `<item> TAB <count>`. A subclass sets `what` or has a method `items`."""

    arguments = "MANIFEST..."
    description = "Count what the archives that the manifests list contain. Prints <item> TAB <count>."
    what: ClassVar[str] = ""
    """A name in COUNTERS, or "" if the items are those of the method `items`."""

    def items(self, record: Record) -> Iterable[Item] | Item | None:
        """The items to count in a record: bytes or text. What is raised is reported, and the record is skipped."""
        raise NotImplementedError

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        add_options(ArchiveJobOptions, self.add_passthru_arg)

    @property
    def counter(self) -> Counter:
        """How records are counted."""
        return COUNTERS[self.what] if self.what else counter_of(self.items)

    def list_work(self) -> Iterator[CountWork]:
        """The archives, one at a time. Raises UsageError if the job does not say what it counts."""
        if not self.what and type(self).items is CountJob.items:
            raise UsageError(f"{type(self).__name__} has no method `items`; it says what the job counts")
        archives = archives_of(self.options.args, self.options.warc_bucket)
        self._total = len(archives)
        return map(CountWork, archives)

    def run_mapper(self, step_num: int = 0) -> None:
        """Write the counts of all archives of this task."""
        archives = [CountWork.from_json(line).archive for line in self.stdin]
        with self.scratch(self.options.s3_local_temp_dir) as scratch:
            result = count_group(CountTask(archives, self.counter, scratch.folder / "0"))
            for failure in result.failures:
                where = failure.path if failure.offset is None else f"{failure.path}@{failure.offset}"
                count_failure(self, where, failure.reason, failure.hint)
            for text in texts_of(result.runs, scratch):
                self.stdout.write(text)

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the sums."""
        for text in sum_texts(self.lines()):
            self.stdout.write(text)

    def finish(self, output: bytes) -> bytes:
        """The sums of all reducers, in one order."""
        if not output and not self.options.quiet:
            say(f"note: nothing was counted; give {self.counter.needs}")
        return b"".join(sorted(output.splitlines(keepends=True)))

    def hadoop_step(self, runner: RunnerLike, folder: Path) -> HadoopStep:
        """Each mapper gets some lines of the work list."""
        options = self.options
        self._limit = parse_limit(options.max_failures)
        if options.warc_bucket and runner.alias == "emr":
            options.warc_bucket = folder_url(options.warc_bucket, runner)
        work_list = folder / "archives.jsonl"
        work_list.write_text("".join(item.to_json() + "\n" for item in self.list_work()))
        scratch = ["--scratch", options.s3_local_temp_dir] if options.s3_local_temp_dir else []
        what = ["--what", self.what] if self.what else ["--job", type(self).__name__]
        return HadoopStep(
            inputs=work_list,
            mapper=["count", *what, *scratch],
            reducer=["sum"],
            settings={
                "mapreduce.input.lineinputformat.linespermap": str(options.warcs_per_map),
            },
            defaults={"mapreduce.map.maxattempts": "4", "mapreduce.job.reduces": "1"},
            output_dir=options.output_dir,
            files={} if self.what else {JOB_FILE: Path(inspect.getfile(type(self)))},
        )

    def finish_hadoop(self, runner: RunnerLike) -> int:
        """Print the failures, and the counts. Returns 0 if there are no more failures than --max-failures allows."""
        if self._should_cat_output():
            self.show(self.finish(b"".join(runner.cat_output())))
        failed = self._report_failures(runner)
        if not self.options.quiet:
            say(f"{self._total - failed} of {self._total} archives counted, {failed} with failures")
        return 0 if failed <= self._limit.of(self._total) else failed

    def _report_failures(self, runner: RunnerLike) -> int:
        """Print what the mappers could not count. Returns the number of archives."""
        output = folder_of(runner.get_output_dir(), runner)
        names = [name for name in output.names() if name.startswith(FAILURES)]
        if not names:
            return 0
        folder = Path(self._folder.name)
        output.get(names, folder)
        rows = sorted(
            row for name in names for row in (folder / name).read_text("utf-8", "replace").splitlines()
        )
        for row in rows:
            path, _, reason = row.partition("\t")
            say(f"{path}: {reason}")
        return len({row.partition("\t")[0] for row in rows})
