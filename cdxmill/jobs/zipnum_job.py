"""Build a ZipNum cluster from CDX files: the mappers sort, the shuffle sends lines to their shards, the reducers write.

    python zipnumclusterjob.py -r local --splitfile splits.seq --zipnum-dir CLUSTER CDX...

The cluster has the same bytes as that of `cdxmill zipnum` with the same split points.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path

from cdxmill.commands.clusters.zipnum import build_cluster, summary_of_made, zipnum_options
from cdxmill.commands.clusters.zipnum_options import Made, ZipnumOptions
from cdxmill.errors import UsageError
from cdxmill.formats.clusters.compressor import checked_compressor
from cdxmill.inputs.cdx_files import Inventory, cdx_files_of, read_pieces
from cdxmill.jobs.launcher.hadoop_inputs import bytes_per_mapper, cdx_inputs, group_inputs, note_shared_names
from cdxmill.jobs.launcher.hadoop_step import HadoopStep
from cdxmill.jobs.launcher.mrjob_parts import RunnerLike
from cdxmill.jobs.launcher.stream_job import StreamJob
from cdxmill.jobs.launcher.zipnum_on_hadoop import ClusterOnHadoop, check_shards_stay
from cdxmill.jobs.nodes.zipnum import (
    ReducerReport,
    ShardTaskOptions,
    chunk_packer,
    read_reports,
    send_chunks,
    write_one_shard,
)
from cdxmill.messages import say
from cdxmill.options.clusters import CONVERT, ClusterOptions
from cdxmill.options.option import option
from cdxmill.running.failures import Failures
from cdxmill.running.processes import processes_by_default
from cdxmill.stages.lines.line_chunks import format_line, format_marks, read_lines
from cdxmill.storage.local import stopping
from cdxmill.storage.location import PathOrUrl, locate
from cdxmill.tasks.sampling import group_sources

_RUN = ".run-"


class ZipnumJobOptions(ClusterOptions):
    """The options of the ZipNum job."""

    splits: str | None = option(
        "--splitfile",
        "Split points: a SequenceFile or text file, as dosample.py writes them. With -r local and -r inline, they are"
        " found if this is omitted.",
        default=None,
    )
    zipnum_dir: str | None = option(
        "--zipnum-dir", "Directory of the cluster. Default: --output-dir.", default=None
    )
    shards: int | None = option(
        "--shards",
        "Number of shards. With a split file: an error if that gives another number.",
        default=None,
    )
    convert: bool = CONVERT
    seed: int = field(default=0, init=False)
    processes: int = field(default=1, init=False)


class ZipNumClusterJob(StreamJob[ZipnumJobOptions]):
    """Input: CDX files, directories, patterns. Output: the cluster."""

    kind = ZipnumJobOptions
    arguments = "[--splitfile FILE] --zipnum-dir DIR CDX..."
    description = "Build a ZipNum cluster from CDX files. The split points give the shards."

    @property
    def directory(self) -> str:
        """The path or URL of the cluster's directory. Raises UsageError."""
        found: str | None = self.own_options.zipnum_dir or self.options.output_dir
        if not found:
            raise UsageError("--zipnum-dir is missing; give the directory of the cluster")
        return found

    @cached_property
    def build(self) -> ZipnumOptions:
        """How the cluster is built. Reads the split file. Raises UsageError."""
        return zipnum_options(self.own_options, self.own_options.convert)

    def check(self) -> None:
        """Raise UsageError if the job cannot run with its options."""
        super().check()
        if self.is_on_hadoop and self.own_options.splits is None:
            raise UsageError("--splitfile is missing; see --help")

    def run_all(self) -> int:
        """On this machine, build the cluster as `cdxmill zipnum` does. With a split file, the tasks write the shards."""
        if self.is_on_hadoop:
            return super().run_all()
        self.check()
        directory, failures = self.directory, Failures()
        if locate(directory).is_remote:
            raise UsageError(
                f"{directory}: not a directory of this machine; use -r hadoop, or cdxmill publish afterwards"
            )
        if self.own_options.splits is None:
            processes = 1 if self.options.runner == "inline" else processes_by_default()
            build = replace(self.build, processes=processes)
        else:
            build = replace(self.build, make=self._make_shards)
        summary = build_cluster(cdx_files_of(self.options.args), directory, build, failures)
        if not (summary.new and self.options.quiet):
            say(f"{directory}: {summary}")
        return failures.status

    def _make_shards(
        self, inventory: Inventory, directory: PathOrUrl, options: ZipnumOptions, failures: Failures
    ) -> Made:
        """Run the job. Its tasks write to a directory of their own: reducers of a killed run may still be alive."""
        place = Path(locate(directory).local).absolute() / f"{_RUN}{os.getpid()}"
        with stopping(place):
            for left in place.parent.glob(f"{_RUN}*"):
                if left.name.removeprefix(_RUN).isdecimal() and not left.is_symlink():
                    shutil.rmtree(left)
            place.mkdir()
        work = [{"paths": [source.path for source in group]} for group in group_sources(inventory.sources)]
        # mrjob's own output must not go to the cluster: it has files named part-* as well
        to = ("--zipnum-dir", place.as_uri())
        with self.local_runner(work, *to, output_dir=None, sort_values=True) as runner:
            runner.run()
        reports = read_reports(place, options.shards, options.compressor, str(directory))
        with stopping(place):
            for path in place.glob("[cp]*"):
                path.replace(place.parent / path.name)
            shutil.rmtree(place)
        return self._made(reports, failures)

    def hadoop_step(self, runner: RunnerLike, directory: Path) -> HadoopStep:
        """Check everything first: what the job needs is missed only after hours."""
        parts = self.options.output_dir if self.own_options.zipnum_dir else None
        files = cdx_inputs(self.options.args, runner)
        check_shards_stay(self.directory, files)
        self._cluster = ClusterOnHadoop(self.directory, parts, self.build, runner, self.held)
        note_shared_names(files, runner)
        inputs = group_inputs(files, bytes_per_mapper(runner))
        return self._cluster.step([{"paths": paths} for paths in inputs], directory)

    def finish(self, runner: RunnerLike) -> int:
        """Write the files beside the shards. Returns the exit status."""
        failures = Failures()
        made = self._made(self._cluster.write_files(), failures)
        self._cluster.switch()
        self.tell(f"{self._cluster.url}: {summary_of_made(made)}")
        return failures.status

    def _made(self, reports: list[ReducerReport], failures: Failures) -> Made:
        """What the reducers have made. Reports the files that failed."""
        failed = [failure for report in reports for failure in report.failures]
        for failure in failed:
            failures.report(failure)
        taken = sum(report.shard.lines + report.duplicate_lines for report in reports)
        return Made([report.shard for report in reports], list(self.build.points or ()), taken, failed)

    def run_mapper(self, step_num: int = 0) -> None:
        """Send the lines in sorted chunks, with the number of their shard, because mrjob's shuffle has no split points."""
        run = self.mapper_run()
        points, pack = self.build.points or (), chunk_packer(self.options.compressor)
        run.output.write(format_marks(len(points) + 1))
        form = partial(format_line, points=points, pack=pack)
        send_chunks(_texts_of, points, form, run, self.options.convert)

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the shards whose chunks are on standard input."""
        run, given = self.reducer_run(), self.options
        compressor = checked_compressor(given.compressor, given.level, given.section_lines)
        options = ShardTaskOptions(given.zipnum_dir, given.numlines, compressor)
        for number, records in read_lines(run.input):
            write_one_shard(options, number, records, run)


def _texts_of(paths: Sequence[str]) -> Generator[tuple[str, Iterator[bytes]]]:
    return ((path, read_pieces(path)) for path in paths)


if __name__ == "__main__":  # mrjob starts each task with this file
    ZipNumClusterJob.run()
