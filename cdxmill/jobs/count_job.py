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
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from cdxmill.commands.count import report_failure
from cdxmill.errors import UsageError
from cdxmill.inputs.dictionaries import use_dictionary
from cdxmill.jobs.archive_job import ArchiveJob, ReadingJobOptions, sent_dictionary
from cdxmill.jobs.launcher.hadoop_directory import directory_of
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.mrjob_parts import RunnerLike, prints_output
from cdxmill.jobs.nodes.archives import FAILURES, JOB_FILE, add_counts, count_archives, parse_output
from cdxmill.options.contents import Watched
from cdxmill.running.watched import Limits
from cdxmill.stages.counting.counters import COUNTERS, Counter
from cdxmill.stages.counting.own_counter import Found, Item, OwnCounter
from cdxmill.stages.pages.full_record import FullRecord


class CountJobOptions(ReadingJobOptions, Watched):
    """The options of jobs that count."""


class CountJob(ArchiveJob[CountJobOptions]):
    """Input: manifests. Output: lines `<item> TAB <count>`. A subclass sets `what` or has a method `items`."""

    kind = CountJobOptions
    arguments = "MANIFEST..."
    description = "Count what the archives that the manifests list contain. Prints <item> TAB <count>."
    what: ClassVar[str] = ""
    """A name in COUNTERS, or "" if the items are those of the method `items`."""

    def items(self, record: FullRecord) -> Iterable[Found] | Mapping[Item, int] | Found | None:
        """The items to count in a record: bytes or text, or pairs of an item and a number.

        What is raised is reported, and the record is skipped.
        """
        raise NotImplementedError

    @property
    def counter(self) -> Counter | OwnCounter:
        """How records are counted."""
        return COUNTERS[self.what] if self.what else OwnCounter(self.items)

    def list_work(self) -> WorkList:
        """The archives. Raises UsageError if the job does not say what it counts."""
        if not self.what and type(self).items is CountJob.items:
            raise UsageError(f"{type(self).__name__} has no method `items`; it says what the job counts")
        archives = self.listed()
        self.count_listed(archives)
        return [{"archive": archive.to_fields()} for archive in archives]

    def run_mapper(self, step_num: int = 0) -> None:
        """Write the counts of all archives of this task."""
        options = self.own_options
        limits = Limits(options.timeout, options.memory << 20)
        run = self.mapper_run(options.scratch)
        use_dictionary(options.dictionary)
        count_archives(self.counter, run, limits)

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the sums."""
        place = os.environ["mapreduce_task_output_dir"]  # noqa: SIM112 - mrjob has Hadoop's spelling
        output = Path(self.options.launched_from, place)
        add_counts(output.as_uri(), self.reducer_run())

    def hadoop_step(self, runner: RunnerLike, directory: Path) -> HadoopStep:
        """Each mapper gets some lines of the work list, and the dictionary and a user's job in files."""
        self.use_root(runner)
        what = ["--what", self.what] if self.what else ["--job", type(self).__name__]
        limits = ["--timeout", str(self.own_options.timeout), "--memory", str(self.own_options.memory)]
        files = sent_dictionary(self.own_options.dictionary, directory)
        if not self.what:
            files[JOB_FILE] = Path(inspect.getfile(type(self)))
        return self.archive_step(self.list_work(), ["count", *what, *limits], ["sum"], files)

    def finish(self, runner: RunnerLike) -> int:
        """Print the failures, and the counts in one order. Returns the exit status."""
        if prints_output(self):
            output = b"".join(runner.cat_output())
            if not output:
                self.tell(f"note: nothing was counted; give {self.counter.needs}")
            self.show(b"".join(sorted(output.splitlines(keepends=True))))
        self._report_failures(runner)
        return self.status_of(runner, "counted")

    def _report_failures(self, runner: RunnerLike) -> None:
        """Print what the mappers could not count."""
        output = directory_of(runner.get_output_dir(), runner)
        names = [name for name in output.names() if name.startswith(FAILURES)]
        failures = self.failures
        with tempfile.TemporaryDirectory(prefix="cdxmill-") as directory:
            if names:
                output.get(names, Path(directory))
            rows = [row for name in names for row in Path(directory, name).read_bytes().splitlines()]
        found, notes = parse_output(b"\n".join(sorted(rows)))
        for failure in found:
            report_failure(failure, failures)
        failures.close_listed()
        for note in notes:
            failures.note_one(note.path, note.reason)
        failures.close_notes()
