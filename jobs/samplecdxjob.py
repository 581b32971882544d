#!/usr/bin/env python3
"""CDX files -> split points: the mappers sample, one reducer keeps the samples of least priority.

    python samplecdxjob.py -r local --shards 300 CDX...

The same split points as those of `cdxmill sample` with the same seed.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cdxmill.commands.cdx_inputs import deal
from cdxmill.commands.inputs import find_cdx_files
from cdxmill.commands.sample import SAMPLES_PER_SHARD, SampleTask, sample_group
from cdxmill.errors import UsageError
from cdxmill.formats.split_points import format_text, parse_text
from cdxmill.jobs.bulk_job import BulkJob
from cdxmill.jobs.launch import count_failure
from cdxmill.jobs.seqfileutils import write_split_files
from cdxmill.stages.sample_lines import Reservoir, Sample, merge_samples, pick_splits


class SampleCDXJob(BulkJob):  # type: ignore[misc]
    """Input: CDX files, folders of them, globs. Output: split points, one a line."""

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        add = self.add_passthru_arg
        add("--shards", type=int, default=300, help="Number of shards to divide into.")
        add("--scaler", type=int, default=SAMPLES_PER_SHARD, help="Sampled lines a shard.")
        add("--seed", type=int, default=0, help="The same seed gives the same split points.")
        add("--splitfile", help="Write the SequenceFile here, and the text beside it with the ending .txt.")

    def list_work(self) -> Iterator[list[Any]]:
        """Groups of files, each with its seed."""
        if self.options.shards < 1 or self.options.scaler < 1:
            raise UsageError("--shards and --scaler are numbers from 1")
        for number, paths in enumerate(deal(find_cdx_files(self.options.args))):
            yield [f"{self.options.seed}:{number}", paths]

    def run_mapper(self, step_num: int = 0) -> None:
        """Write `TAB <priority> TAB <key>`: with nothing before the first tab, all go to one reducer."""
        for priority, key in self._sample(self.options.shards * self.options.scaler):
            self.stdout.write(b"\t%r\t%b\n" % (priority, key))

    def _sample(self, size: int) -> Sample:
        work = self.work()
        if work is None:
            partition = os.environ.get("mapreduce_task_partition", "0")  # noqa: SIM112 - Hadoop's spelling
            reservoir = Reservoir(size, random.Random(f"{self.options.seed}:{partition}"))
            for lines in self.lines():
                reservoir.add(lines)
            return reservoir.sample()
        merged: Sample = []
        with self.scratch():
            for seed, paths in work:
                result = sample_group(SampleTask(paths, seed, size))
                merged = merge_samples((merged, result.sample), size)
                for error in result.failures:
                    count_failure(self, error.path, error.reason, error.hint)
        return merged

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the split points."""
        size = self.options.shards * self.options.scaler
        sample: Sample = []
        for lines in self.lines():
            rows = [line.split(b"\t", 2)[1:] for line in lines]
            sample += [(float(priority), key) for priority, key in rows]
            if len(sample) >= 2 * size:
                sample = merge_samples((sample,), size)
        keys = (key for _, key in merge_samples((sample,), size))
        self.stdout.write(format_text(pick_splits(keys, self.options.shards)))

    def finish(self, output: bytes) -> None:
        """Write the split files."""
        points = parse_text(output)
        if len(points) + 1 < self.options.shards:
            print(f"note: {len(points) + 1} shards, not {self.options.shards}: too few keys", file=sys.stderr)
        if self.options.splitfile:
            write_split_files(points, Path(self.options.splitfile))


if __name__ == "__main__":
    SampleCDXJob.run()
