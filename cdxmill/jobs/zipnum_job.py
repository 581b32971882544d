"""CDX files -> a ZipNum cluster: mappers sort, the shuffle brings shards together, reducers write them.

    python zipnumclusterjob.py -r local --splitfile splits.seq --zipnum-dir CLUSTER CDX...

The same bytes as those of `cdxmill zipnum` with the same split points.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from cdxmill.cluster.write_shards import write_shard_files
from cdxmill.inputs.sorting import sort_files
from cdxmill.jobs import zipnum_hadoop as on_hadoop
from cdxmill.jobs import zipnum_launcher as launcher
from cdxmill.jobs.bulk_job import BulkJob
from cdxmill.jobs.cdx_on_hadoop import cdx_inputs
from cdxmill.jobs.launch import count_failure
from cdxmill.jobs.on_hadoop import HadoopStep
from cdxmill.jobs.remote_folder import folder_of
from cdxmill.stages.lines.line_lists import cut_blocks
from cdxmill.stages.lines.mark_shards import mark_shards, unmark_shards
from cdxmill.stages.lines.merge_runs import merge_runs, sort_lists
from cdxmill.stages.lines.sort_lines import LineSorter


class ZipNumClusterJob(BulkJob):
    """Input: CDX files, folders of them, globs. Output: the cluster, and a line of JSON a shard."""

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        launcher.add_options(self.add_passthru_arg)

    def list_work(self) -> Iterator[list[str]]:
        """Groups of files."""
        yield from launcher.start_cluster(self.options)

    def finish(self, output: bytes) -> bytes:
        """Write the files beside the shards."""
        launcher.finish_cluster(self.options, output)
        return b""

    def _runner_kwargs(self) -> dict[str, Any]:
        kwargs: dict[str, Any] = super()._runner_kwargs()
        if self.is_on_hadoop:
            return kwargs
        place = ["--zipnum-dir", str(launcher.task_folder(self.options))]
        # mrjob's own output has no place in the cluster: it is named part-* too
        return {**kwargs, "output_dir": None, "extra_args": [*kwargs["extra_args"], *place]}

    def hadoop_step(self, runner: Any, folder: Path) -> HadoopStep:
        """Checks first: an input that does not fit costs hours there."""
        self._how = launcher.zipnum_options(self.options)
        launcher.cluster_folder(self.options)
        self._url = on_hadoop.cluster_url(self.options, runner)
        inputs = cdx_inputs(self.options.args, runner)
        on_hadoop.clear(folder_of(self._url, runner))
        return on_hadoop.make_step(self.options, self._how, self._url, folder, inputs)

    def finish_hadoop(self, runner: Any) -> int:
        """Write the files beside the shards."""
        on_hadoop.finish(self.options, self._how, self._url, runner)
        return 0

    def run_mapper(self, step_num: int = 0) -> None:
        """Pass lines on, sorted, and marked with their shards: the shuffle knows no split points."""
        with self.scratch() as scratch:
            options = launcher.zipnum_options(self.options)
            sorter = LineSorter(scratch.create, "map")
            for paths in self.work():
                for failure in sort_files(paths, sorter, options.convert):
                    count_failure(self, failure.path, failure.reason, failure.hint)
            lists = merge_runs(sorter.finish(), scratch.create, scratch.reader)
            for data in mark_shards(lists, options.points or ()):
                self.stdout.write(data)

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the shards whose lines come in."""
        with self.scratch() as scratch:
            folder, options = launcher.cluster_folder(self.options), launcher.zipnum_options(self.options)
            for number, group in groupby(unmark_shards(self.lines()), itemgetter(0)):
                lists = (lines for _, lines in group)
                merged = sort_lists(lists, f"shard-{number}", scratch.create, scratch.reader)
                blocks = cut_blocks(merged, options.block_lines)
                entry = write_shard_files(blocks, number, folder, options.compressor)
                self.stdout.write(json.dumps(entry._asdict()).encode() + b"\n")


if __name__ == "__main__":  # mrjob starts each task by this file
    ZipNumClusterJob.run()
