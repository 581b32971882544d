"""Write archives again, compressed in another way: `cdxmill recompress` with mappers. There is no reducer.

    python recompressjob.py -r local --output_bucket DIR MANIFEST...

The archives, their proofs, indexes and tables of offsets have the bytes of `cdxmill recompress --manifest`.
"""

from __future__ import annotations

import pickle
from pathlib import Path

from cdxmill.commands.per_archive.ask import new_names, repacking_options
from cdxmill.commands.per_archive.recompress import Recompression, recompression
from cdxmill.commands.per_archive.recompress_elsewhere import RecompressWork
from cdxmill.inputs.archives import archives_of
from cdxmill.jobs.archive_job import ArchiveJob, ArchiveJobOptions, directory_url
from cdxmill.jobs.launcher.hadoop_directory import directory_of
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.mrjob_parts import MRStep, RunnerLike
from cdxmill.jobs.nodes.recompress import WORK_FILE, item_of, parse_results, recompress_archives
from cdxmill.jobs.nodes.task_context import format_failure
from cdxmill.options.option import option
from cdxmill.options.packing import Repacking


class RecompressJobOptions(ArchiveJobOptions, Repacking):
    """The options of the job: those of `recompress`, with another name for its output."""

    output: str = option("--output_bucket", "Directory or URL to write the new archives to.")


class RecompressJob(ArchiveJob[RecompressJobOptions]):
    """Input: manifests. Output: `<path> TAB <reason>` for each failure."""

    kind = RecompressJobOptions
    arguments = "--output_bucket DIR MANIFEST..."
    description = "Write the WARC and ARC files that the manifests list again, as .zst or as .gz."
    _made: Recompression

    def steps(self) -> list[MRStep]:
        """One step with mappers only."""
        return [MRStep(mapper=self.run_mapper)]

    def list_work(self) -> WorkList:
        """The archives to write again, with the paths or URLs of what is written."""
        return self._work(RecompressWork.of(repacking_options(self.own_options)), self.own_options.output)

    def hadoop_step(self, runner: RunnerLike, directory: Path) -> HadoopStep:
        """Each mapper gets some lines of the work list, and the dictionary in a file."""
        url = directory_url(self.own_options.output, runner)
        self.use_root(runner)
        directory_of(url, runner).check_writable()
        work = RecompressWork.of(repacking_options(self.own_options))
        path = directory / WORK_FILE
        path.write_bytes(pickle.dumps(work, protocol=4))
        return self.archive_step(self._work(work, url), ["recompress"], files={WORK_FILE: path})

    def _work(self, work: RecompressWork, output: str) -> WorkList:
        archives = archives_of(self.options.args, self.own_options.archive_root, self.failures)
        names = new_names(archives, self.own_options, output, self.failures)
        self._made = self.held.enter_context(recompression(names, output, work.options, self.failures))
        self.total = len(self._made.tasks) + len(self.failures.inputs)
        return [item_of(number, task) for number, task in enumerate(self._made.tasks)]

    def run_mapper(self, step_num: int = 0) -> None:
        """Write one archive after the other again."""
        run = self.mapper_run(self.own_options.scratch)
        recompress_archives(RecompressWork.of(repacking_options(self.own_options)), run)

    def finish(self, runner: RunnerLike) -> int:
        """Print the failures. Returns the exit status: 0 if there are no more than --max-failures allows."""
        found = list(self.failures.items)
        for number, result in parse_results(b"".join(runner.cat_output())):
            found += result.failures
            self._made.add(self._made.tasks[number], result)
        self.failures.close_listed()
        self.failures.close_notes()
        self.show(b"".join(format_failure(one._replace(hint="", is_outage=False)) for one in found))
        self.tell(str(self._made.summary()))
        return self.status_of(runner, "written again")


if __name__ == "__main__":  # mrjob starts each task with this file
    RecompressJob.run()
