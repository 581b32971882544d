"""CDX files -> split points: the mappers sample, one reducer keeps the samples of least priority.

    python samplecdxjob.py -r local --shards 300 CDX...

Under -r local and inline the same split points as those of `cdxmill sample` with the same seed, but where
that has to sample again: files whose lines are far longer than they begin.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cdxmill.errors import UsageError
from cdxmill.formats.split_points import format_text
from cdxmill.inputs.cdx_files import find_cdx_files
from cdxmill.inputs.sampling import SAMPLES_PER_SHARD, SampleTask, guess_ceiling, sample_group, sample_tasks
from cdxmill.inputs.sources import take_inventory
from cdxmill.jobs.bulk_job import BulkJob
from cdxmill.jobs.cdx_on_hadoop import cdx_inputs
from cdxmill.jobs.launch import count_failure
from cdxmill.jobs.node_tasks import format_points, format_sample, parse_points, read_sample
from cdxmill.jobs.on_hadoop import HadoopStep
from cdxmill.jobs.split_files import write_split_files
from cdxmill.stages.lines.sample_lines import Sample, merge_samples

_SETTINGS = {
    "mapreduce.job.reduces": "1",
    "stream.map.input.ignoreKey": "true",
    "textinputformat.record.delimiter": "\n",
    "mapreduce.input.fileinputformat.input.dir.recursive": "true",
}


class SampleCDXJob(BulkJob):
    """Input: CDX files, folders of them, globs. Output: split points, one a line."""

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        add = self.add_passthru_arg
        add("--shards", type=int, default=300, help="Number of shards to divide into.")
        add("--scaler", type=int, default=SAMPLES_PER_SHARD, help="Sampled lines a shard.")
        add("--seed", type=int, default=0, help="The same seed gives the same split points.")
        add("--splitfile", help="Write the SequenceFile here, and the text beside it with the ending .txt.")

    def list_work(self) -> Iterator[dict[str, Any]]:
        """Groups of files, and how each is sampled."""
        self._check()
        inventory = take_inventory(find_cdx_files(self.options.args))
        ceiling = guess_ceiling(inventory, self._size)
        for task in sample_tasks(inventory, self.options.seed, self._size, ceiling):
            yield task._asdict()

    def hadoop_step(self, runner: Any, folder: Path) -> HadoopStep:
        """Each mapper sends a sample of the same size, one reducer picks."""
        self._check()
        size = ["--size", str(self._size)]
        return HadoopStep(
            inputs=cdx_inputs(self.options.args, runner),
            mapper=["sample", *size, "--seed", str(self.options.seed)],
            reducer=["points", *size, "--shards", str(self.options.shards)],
            settings=_SETTINGS,
            defaults={"mapreduce.input.fileinputformat.split.maxsize": str(256 << 20)},
            input_format="org.apache.hadoop.mapred.lib.CombineTextInputFormat",
            output_dir=self.options.output_dir,
        )

    def finish_hadoop(self, runner: Any) -> int:
        """Write the split files, and show the points."""
        self.show(self.finish(b"".join(runner.cat_output())))
        return 0

    def run_mapper(self, step_num: int = 0) -> None:
        """Write the sample of the files that come in."""
        self.stdout.write(format_sample(self._sample()))

    def _sample(self) -> Sample:
        merged: Sample = []
        with self.scratch():
            for task in self.work():
                result = sample_group(SampleTask(**task))
                merged = merge_samples((merged, result.sample), self._size)
                for failure in result.failures:
                    count_failure(self, failure.path, failure.reason, failure.hint)
        return merged

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the split points."""
        self.stdout.write(format_points(read_sample(self.lines(), self._size), self.options.shards))

    def finish(self, output: bytes) -> bytes:
        """Write the split files; the points are shown."""
        points = parse_points(output)
        if len(points) + 1 < self.options.shards:
            print(f"note: {len(points) + 1} shards, not {self.options.shards}: too few keys", file=sys.stderr)
        if self.options.splitfile:
            write_split_files(points, self.options.splitfile)
        return format_text(points)

    @property
    def _size(self) -> int:
        return int(self.options.shards * self.options.scaler)

    def _check(self) -> None:
        if self.options.shards < 1 or self.options.scaler < 1:
            raise UsageError("--shards and --scaler are numbers from 1")


if __name__ == "__main__":  # mrjob starts each task by this file
    SampleCDXJob.run()
