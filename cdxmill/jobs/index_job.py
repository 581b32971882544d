"""Index archives: one CDX file per archive. The mappers index; there is no reducer.

    python indexwarcsjob.py -r local --cdx_bucket OUT MANIFEST...

A manifest lists one archive per line. The path is the last tab-separated field that is not empty. `-` is standard
input. The CDX files have the same bytes as those of `cdxmill index --manifest`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cdxmill.commands.per_archive.index import IndexOptions
from cdxmill.commands.per_archive.task import OutputDirectory, checked_place, open_directory, outputs_in
from cdxmill.inputs.dictionaries import use_dictionary
from cdxmill.inputs.named import Input
from cdxmill.jobs.archive_job import ArchiveJob, ReadingJobOptions, counted, directory_url, sent_dictionary
from cdxmill.jobs.launcher.hadoop_directory import directory_of, held
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.mrjob_parts import MRStep, RunnerLike
from cdxmill.jobs.nodes.archives import ArchiveWork, index_archives, parse_output
from cdxmill.jobs.nodes.task_context import format_failure
from cdxmill.jobs.nodes.wacz_work import WaczWork
from cdxmill.messages import count
from cdxmill.options.option import Existing, Flag, flags, option
from cdxmill.outputs.existing import rule_of
from cdxmill.outputs.names import cdx_names
from cdxmill.running.failures import Failures
from cdxmill.storage.location import Location
from cdxmill.storage.wacz import is_wacz


class IndexJobOptions(ReadingJobOptions, Existing):
    """The options of the index job."""

    cdx_directory: str = option("--cdx_bucket", "Directory or URL to write the CDX files to.")
    update: bool = option("--skip-existing", "Skip archives with a finished CDX file. Default.", default=True)
    replace: bool = option("--replace", "Index all archives again.", default=False)
    cc_index_paths: bool = flags(
        Flag(True, "--cc-index-paths", "Write the CDX file of crawl-data/X to cc-index/cdx/X. Default."),
        Flag(False, "--no-cc-index-paths", "Write the CDX file of crawl-data/X to crawl-data/X."),
        default=True,
    )


class IndexWARCJob(ArchiveJob[IndexJobOptions]):
    """Input: manifests. Output: `<path> TAB <reason>` for each failure."""

    kind = IndexJobOptions
    arguments = "--cdx_bucket DIR MANIFEST..."
    description = "Index the WARC and ARC files that the manifests list: one CDX file per archive."

    def steps(self) -> list[MRStep]:
        """One step with mappers only."""
        return [MRStep(mapper=self.run_mapper)]

    def list_work(self) -> WorkList:
        """The archives to index, each with the path or URL of its CDX file."""
        names = self._names()
        opened = open_directory(names, self.own_options.cdx_directory, Failures())
        directory = self.held.enter_context(opened)
        outputs = self._outputs(names, directory)
        closed = outputs_in(directory.place, {one: name for one, name in names.items() if is_wacz(one.path)})
        self.held.enter_context(directory.writing(outputs | closed))
        return self._work(outputs, closed, directory)

    def hadoop_step(self, runner: RunnerLike, directory: Path) -> HadoopStep:
        """Each mapper gets some lines of the work list, and the dictionary in a file."""
        url = directory_url(self.own_options.cdx_directory, runner)
        self.use_root(runner)
        directory_of(url, runner).check_writable()
        self.held.enter_context(held(url))
        names = self._names()
        target = OutputDirectory(checked_place(names, url), None, Path())
        outputs = self._outputs(names, target)
        closed = [archive for archive in names if is_wacz(archive.path)]
        files = sent_dictionary(self.own_options.dictionary, directory)
        return self.archive_step(self._work(outputs, closed, target), ["index"], files=files)

    def _names(self) -> dict[Input, str]:
        """The archives, and the names of their outputs. That of a WACZ stands for those of its archives. Raises UsageError."""
        options = self.own_options
        return cdx_names(self.listed(), options.cc_index_paths)

    def _outputs(self, names: dict[Input, str], directory: OutputDirectory) -> dict[Input, Location]:
        """The archives that have to be indexed, with their outputs. Raises UsageError."""
        plain = {archive: name for archive, name in names.items() if not is_wacz(archive.path)}
        return directory.plan(plain, IndexOptions().settings(), rule_of(self.own_options)).to_write

    def _work(
        self, outputs: dict[Input, Location], closed: Iterable[Input], directory: OutputDirectory
    ) -> WorkList:
        """The work list: archives with their outputs, and WACZ files, whose outputs the tasks plan."""
        self.count_listed(outputs)
        record = None if directory.directory is None else str(directory.directory)
        rule, cc_index_paths = rule_of(self.own_options).name, self.own_options.cc_index_paths
        work = [ArchiveWork(archive, output.text, record).item() for archive, output in outputs.items()]
        place = directory.place.text
        return work + [WaczWork(wacz, place, record, rule, cc_index_paths).item() for wacz in closed]

    def run_mapper(self, step_num: int = 0) -> None:
        """Index one archive after the other."""
        run = self.mapper_run(self.own_options.scratch)
        use_dictionary(self.own_options.dictionary)
        index_archives(run)

    def finish(self, runner: RunnerLike) -> int:
        """Print the failures. Returns the exit status: 0 if there are no more than --max-failures allows."""
        found, notes = parse_output(b"".join(runner.cat_output()))
        failures = self.failures
        for note in notes:
            failures.note_one(note.path, note.reason)
        failures.close_notes()
        for failure in found:
            failures.report(failure)
        self.show(b"".join(format_failure(one._replace(hint="", is_outage=False)) for one in found))
        number = counted(runner, "notes")
        return self.status_of(runner, "indexed", f", {count(number, 'note')}" if number else "")


if __name__ == "__main__":  # mrjob starts each task with this file
    IndexWARCJob.run()
