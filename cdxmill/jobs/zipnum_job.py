"""Build a ZipNum cluster from CDX files: the mappers sort, the shuffle sends lines to their shards, the reducers write.

    python zipnumclusterjob.py -r local --splitfile splits.seq --zipnum-dir CLUSTER CDX...

The cluster has the same bytes as that of `cdxmill zipnum` with the same split points.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from cdxmill.cluster.write import write_shard_files
from cdxmill.jobs.launcher.hadoop_folder import folder_of
from cdxmill.jobs.launcher.hadoop_inputs import bytes_per_mapper, cdx_inputs, group_inputs
from cdxmill.jobs.launcher.hadoop_step import HadoopStep
from cdxmill.jobs.launcher.hadoop_switch import building_place, finish_switch, mark_place
from cdxmill.jobs.launcher.mrjob_types import RunnerArguments, RunnerLike
from cdxmill.jobs.launcher.run_job import count_failure
from cdxmill.jobs.launcher.stream_job import StreamJob
from cdxmill.jobs.launcher.zipnum_local import LocalCluster, format_entry, parse_entries
from cdxmill.jobs.launcher.zipnum_on_hadoop import check_outputs, clear, cluster_url, finish, make_step
from cdxmill.jobs.zipnum_options import ZipnumJobArguments, ZipnumJobOptions, parse_options
from cdxmill.options.table import add_options
from cdxmill.stages.lines.line_lists import cut_blocks
from cdxmill.stages.lines.mark_shards import mark_shards, unmark_shards
from cdxmill.stages.lines.merge_runs import merge_runs, sort_lists
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.tasks.sorting import sort_files


class SortWork(NamedTuple):
    """One item of the job's work list: a group of CDX files."""

    paths: list[str]

    def to_json(self) -> str:
        """One line of the work list, without line end."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, line: bytes) -> SortWork:
        """Parse what `to_json` has written."""
        return cls(**json.loads(line))


class ZipNumClusterJob(StreamJob):
    """Input: CDX files, directories, patterns. Output: the cluster."""

    arguments = "--splitfile FILE --zipnum-dir FOLDER CDX..."
    description = "Build a ZipNum cluster from CDX files. The split points give the shards."

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        add_options(ZipnumJobArguments, self.add_passthru_arg)

    @cached_property
    def zipnum_options(self) -> ZipnumJobOptions:
        """The parsed options. Raises UsageError."""
        return parse_options(self.options)

    @cached_property
    def local_cluster(self) -> LocalCluster:
        """The cluster of a local run. Its folder is held until the launcher ends. Raises UsageError, AlreadyDone."""
        self._locks = ExitStack()
        return LocalCluster(self.zipnum_options, self._locks)

    def list_work(self) -> Iterator[SortWork]:
        """Groups of files."""
        return map(SortWork, self.local_cluster.groups)

    def finish(self, output: bytes) -> bytes:
        """Write the files beside the shards. The job prints nothing."""
        shards = parse_entries(self.zipnum_options, output)
        with self._locks:
            self.local_cluster.finish(shards, self.failed_inputs)
        return b""

    def _runner_kwargs(self) -> RunnerArguments:
        arguments: RunnerArguments = super()._runner_kwargs()
        if self.is_on_hadoop:
            return arguments
        folder = ["--zipnum-dir", str(self.local_cluster.task_folder)]
        # mrjob's own output must not go to the cluster: it has files named part-* as well
        return {**arguments, "output_dir": None, "extra_args": [*arguments["extra_args"], *folder]}

    def hadoop_step(self, runner: RunnerLike, folder: Path) -> HadoopStep:
        """Check everything first: what the job needs is missed only after hours."""
        options = self.zipnum_options
        url = cluster_url(options, runner)
        self._place = building_place(url, options.build.replace)
        check_outputs(options, self._place, runner)
        inputs = group_inputs(cdx_inputs(options.inputs, runner), bytes_per_mapper(runner))
        clear(folder_of(self._place, runner), options.build.replace)
        mark_place(self._place, url)
        return make_step(options, self._place, folder, inputs)

    def finish_hadoop(self, runner: RunnerLike) -> int:
        """Write the files beside the shards."""
        options = self.zipnum_options
        url = cluster_url(options, runner)
        failed = finish(options, url, self._place, runner)
        finish_switch(self._place, url)
        return failed

    def run_mapper(self, step_num: int = 0) -> None:
        """Sort lines, and mark each with the number of its shard, because mrjob's shuffle has no split points."""
        with self.scratch() as scratch:
            options = self.zipnum_options
            sorter = LineSorter(scratch.create, "map")
            for work in map(SortWork.from_json, self.stdin):
                for failure in sort_files(work.paths, sorter, options.build.convert):
                    count_failure(self, failure.path, failure.reason, failure.hint)
            lists = merge_runs(sorter.finish(), scratch.create, scratch.reader)
            for data in mark_shards(lists, options.points):
                self.stdout.write(data)

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the shards whose lines are on standard input."""
        with self.scratch() as scratch:
            folder, build = Path(self.zipnum_options.folder), self.zipnum_options.build
            for number, group in groupby(unmark_shards(self.lines()), itemgetter(0)):
                lists = (lines for _, lines in group)
                merged = sort_lists(lists, f"shard-{number}", scratch.create, scratch.reader)
                blocks = cut_blocks(merged, build.block_lines)
                self.stdout.write(format_entry(write_shard_files(blocks, number, folder, build.compressor)))


if __name__ == "__main__":  # mrjob starts each task with this file
    ZipNumClusterJob.run()
