#!/usr/bin/env python3
"""CDX files -> a ZipNum cluster: mappers sort, the shuffle brings shards together, reducers write them.

    python zipnumclusterjob.py -r local --splitfile splits.seq --zipnum-dir CLUSTER CDX...

The same bytes as those of `cdxmill zipnum` with the same split points.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from cdxmill.commands.zipnum import sort_files, write_shard_files
from cdxmill.formats.convert import convert_line
from cdxmill.jobs import zipnum_launcher as launcher
from cdxmill.jobs.bulk_job import BulkJob
from cdxmill.jobs.launch import count_failure
from cdxmill.stages.mark_shards import mark_shards, unmark_shards
from cdxmill.stages.merge_lines import merge_runs, sort_lists
from cdxmill.stages.read_lines import is_capture_line
from cdxmill.stages.sample_lines import Reservoir
from cdxmill.stages.sort_lines import LineSorter


class ZipNumClusterJob(BulkJob):  # type: ignore[misc]
    """Input: CDX files, folders of them, globs. Output: the cluster, and a line of JSON a shard."""

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        launcher.add_options(self.add_passthru_arg)

    def list_work(self) -> Iterator[list[str]]:
        """Groups of files."""
        yield from launcher.start_cluster(self.options)

    def finish(self, output: bytes) -> None:
        """Write the files beside the shards."""
        launcher.finish_cluster(self.options, output)

    def _runner_kwargs(self) -> dict[str, Any]:
        kwargs = super()._runner_kwargs()
        place = ["--zipnum-dir", str(launcher.task_folder(self.options))]
        # mrjob's own output has no place in the cluster: it is named part-* too
        return {**kwargs, "output_dir": None, "extra_args": [*kwargs["extra_args"], *place]}

    def _should_cat_output(self) -> bool:
        return False

    def run_mapper(self, step_num: int = 0) -> None:
        """Pass lines on; for a shuffle that knows no split points sorted, and marked with their shards."""
        work = self.work()
        if work is None:
            self._pass_lines()
            return
        with self.scratch() as scratch:
            options = launcher.zipnum_options(self.options)
            sorter = LineSorter(scratch.create, "map")
            for paths in work:
                for failure in sort_files(paths, sorter, Reservoir(0, random.Random()), options.convert):
                    count_failure(self, *failure)
            lists = merge_runs(sorter.finish(), scratch.create, scratch.reader)
            for data in mark_shards(lists, options.points or ()):
                self.stdout.write(data)

    def _pass_lines(self) -> None:
        for lines in self.lines():
            if self.options.convert:
                lines = [convert_line(line) for line in lines if is_capture_line(line)]
            self.stdout.write(b"\n".join([*lines, b""]))

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the shards whose lines come in."""
        with self.scratch() as scratch:
            folder, options = launcher.cluster_folder(self.options), launcher.zipnum_options(self.options)
            for number, group in groupby(self._shards(), itemgetter(0)):
                lists = (lines for _, lines in group)
                merged = sort_lists(lists, f"shard-{number}", scratch.create, scratch.reader)
                entry = write_shard_files(merged, number, folder, options.compressor, options.block_lines)
                self.stdout.write(json.dumps(entry).encode() + b"\n")

    def _shards(self) -> Iterator[tuple[int, list[bytes]]]:
        """(shard, some of its lines); at least once for every shard of this task."""
        if self.options.launched_from is not None:
            return unmark_shards(self.lines())
        partition = int(os.environ["mapreduce_task_partition"])  # noqa: SIM112 - Hadoop's spelling
        return ((partition, lines) for lines in chain([[]], self.lines()))


if __name__ == "__main__":
    ZipNumClusterJob.run()
