"""Build a ZipNum cluster from CDX files: the mappers sort, the shuffle sends lines to their shards, the reducers write.

    python zipnumclusterjob.py -r local --splitfile splits.seq --zipnum-dir CLUSTER CDX...

The cluster has the same bytes as that of `cdxmill zipnum` with the same split points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.errors import UsageError
from cdxmill.formats.clusters.zipnum import Compressor
from cdxmill.inputs.cdx_files import read_pieces
from cdxmill.inputs.found_inputs import cdx_files_of
from cdxmill.jobs.launcher.hadoop_directory import directory_of
from cdxmill.jobs.launcher.hadoop_inputs import bytes_per_mapper, cdx_inputs, group_inputs
from cdxmill.jobs.launcher.hadoop_step import HadoopStep
from cdxmill.jobs.launcher.mrjob_parts import RunnerLike
from cdxmill.jobs.launcher.stream_job import StreamJob
from cdxmill.jobs.launcher.zipnum_local import ShardsUnderMrjob
from cdxmill.jobs.launcher.zipnum_on_hadoop import (
    building_place,
    check_outputs,
    clear,
    cluster_url,
    finish,
    finish_switch,
    make_step,
    mark_place,
)
from cdxmill.jobs.nodes.zipnum import ShardTaskOptions, chunk_packer, send_chunks, write_one_shard
from cdxmill.jobs.zipnum_options import ZipnumJobArguments, ZipnumJobOptions, parse_options
from cdxmill.messages import say
from cdxmill.options.table import add_options
from cdxmill.running.failures import Failures
from cdxmill.stages.lines.line_chunks import format_line, format_marks, read_lines
from cdxmill.storage.location import locate


class ZipNumClusterJob(StreamJob):
    """Input: CDX files, directories, patterns. Output: the cluster."""

    arguments = "--splitfile FILE --zipnum-dir DIR CDX..."
    description = "Build a ZipNum cluster from CDX files. The split points give the shards."

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        add_options(ZipnumJobArguments, self.add_passthru_arg)

    @cached_property
    def zipnum_options(self) -> ZipnumJobOptions:
        """The parsed options. Raises UsageError."""
        return parse_options(self.options)

    def run_locally(self) -> int:
        """Build the cluster as `cdxmill zipnum` does, with shards that the tasks write. Raises UsageError."""
        self.check()
        options, failures = self.zipnum_options, Failures()
        if locate(options.directory).is_remote:
            raise UsageError(
                f"{options.directory}: not a directory of this machine; use -r hadoop, or cdxmill publish afterwards"
            )
        build = replace(options.build, make=ShardsUnderMrjob(self))
        summary = build_cluster(cdx_files_of(options.inputs), options.directory, build, failures)
        if not (summary.new and options.quiet):
            say(f"{options.directory}: {summary}")
        return failures.count

    def hadoop_step(self, runner: RunnerLike, directory: Path) -> HadoopStep:
        """Check everything first: what the job needs is missed only after hours."""
        options = self.zipnum_options
        url = cluster_url(options, runner)
        self._place = building_place(url, options.build.replace)
        check_outputs(options, self._place, runner)
        inputs = group_inputs(cdx_inputs(options.inputs, runner), bytes_per_mapper(runner))
        clear(directory_of(self._place, runner), options.build.replace)
        mark_place(self._place, url)
        return make_step(options, self._place, directory, [{"paths": paths} for paths in inputs])

    def finish(self, runner: RunnerLike) -> int:
        """Write the files beside the shards."""
        options = self.zipnum_options
        url = cluster_url(options, runner)
        failed = finish(options, url, self._place, runner)
        finish_switch(self._place, url)
        return failed

    def run_mapper(self, step_num: int = 0) -> None:
        """Send the lines in sorted chunks, with the number of their shard, because mrjob's shuffle has no split points."""
        run = self.mapper_run()
        points, packer = self.zipnum_options.points, chunk_packer(self.options.compressor)
        run.output.write(format_marks(len(points) + 1))
        send_chunks(_texts_of, points, partial(format_line, points=points, packer=packer), run)

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the shards whose chunks are on standard input."""
        run, given = self.reducer_run(), self.options
        compressor = Compressor(given.compressor, given.level)
        options = ShardTaskOptions(given.zipnum_dir, given.numlines, compressor, given.convert)
        for number, records in read_lines(run.input):
            write_one_shard(options, number, records, run)


def _texts_of(paths: Sequence[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
    return ((path, read_pieces(path)) for path in paths)


if __name__ == "__main__":  # mrjob starts each task with this file
    ZipNumClusterJob.run()
