"""Find split points: the mappers sample CDX files, one reducer keeps the samples of least priority.

    python samplecdxjob.py -r local --shards 300 CDX...

With -r local and -r inline the split points equal those of `cdxmill sample` with the same seed and inputs.
On Hadoop they depend on how Hadoop divides the inputs among its mappers.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from cdxmill.formats.clusters.split_points import format_text
from cdxmill.inputs.found_inputs import cdx_files_of
from cdxmill.inputs.sources import take_inventory
from cdxmill.inputs.split_files import check_splits_absent, write_splits
from cdxmill.jobs.launcher.hadoop_folder import RemoteFolder
from cdxmill.jobs.launcher.hadoop_inputs import bytes_per_mapper, cdx_inputs, group_inputs
from cdxmill.jobs.launcher.hadoop_step import HadoopStep
from cdxmill.jobs.launcher.mrjob_types import RunnerLike
from cdxmill.jobs.launcher.run_job import count_failure
from cdxmill.jobs.launcher.stream_job import StreamJob
from cdxmill.jobs.nodes.lines import format_points, format_sample, parse_failures, parse_points, read_sample
from cdxmill.jobs.sample_options import SampleJobOptions, parse_options
from cdxmill.messages import say
from cdxmill.options.table import add_options
from cdxmill.running.processes import processes_by_default
from cdxmill.running.quantities import count
from cdxmill.stages.lines.sample_lines import Sample, merge_samples
from cdxmill.tasks.sampling import SampleTask, guess_ceiling, run_sampling, sample_group, sample_tasks

_SHORT = b"\n"
"""Before the split points of a sample that is smaller than wanted. Tasks on Hadoop do not write it."""

_SETTINGS = {"mapreduce.job.reduces": "1"}


class SampleWork(NamedTuple):
    """One item of the job's work list: a group of CDX files, and how to sample it."""

    task: SampleTask

    def to_json(self) -> str:
        """One line of the work list, without line end."""
        return json.dumps(self.task._asdict())

    @classmethod
    def from_json(cls, line: bytes) -> SampleWork:
        """Parse what `to_json` has written."""
        return cls(SampleTask(**json.loads(line)))


class SampleCDXJob(StreamJob):
    """Input: CDX files, directories, patterns. Output: split points, one per line."""

    arguments = "CDX..."
    description = "Sample CDX files and print split points for the ZipNum job, one per line."

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        add_options(SampleJobOptions, self.add_passthru_arg)

    @cached_property
    def sample_options(self) -> SampleJobOptions:
        """The parsed options. Raises UsageError."""
        return parse_options(self.options)

    def make_runner(self) -> RunnerLike:
        """mrjob's runner for this job. Raises UsageError, also if a split file exists."""
        options = self.sample_options
        if options.splitfile and not options.replace:
            check_splits_absent(options.splitfile, ".seq")
        return super().make_runner()

    def list_work(self) -> Iterator[SampleWork]:
        """Groups of files, and how to sample each."""
        options = self.sample_options
        self._inventory = take_inventory(cdx_files_of(options.inputs))
        self._ceiling = guess_ceiling(self._inventory, options.size)
        return map(SampleWork, sample_tasks(self._inventory, options.seed, options.size, self._ceiling))

    def hadoop_step(self, runner: RunnerLike, folder: Path) -> HadoopStep:
        """Each mapper sends a sample of its lines, one reducer picks the split points."""
        options = self.sample_options
        size = ["--size", str(options.size)]
        if options.splitfile:
            RemoteFolder(posixpath.dirname(options.splitfile) or ".").check_writable()
        return HadoopStep(
            inputs=group_inputs(cdx_inputs(options.inputs, runner), bytes_per_mapper(runner)),
            mapper=["sample", *size, "--seed", str(options.seed)],
            reducer=["points", *size, "--shards", str(options.shards)],
            settings=_SETTINGS,
            defaults={},
            output_dir=options.output_dir,
        )

    def finish_hadoop(self, runner: RunnerLike) -> int:
        """Write the split files, and print the split points."""
        output = b"".join(runner.cat_output())
        failures = parse_failures(output)
        for failure in failures:
            say(failure)
        self.show(self.finish(output))
        return len(failures)

    def run_mapper(self, step_num: int = 0) -> None:
        """Write the sample of the files on standard input."""
        self.stdout.write(format_sample(self._sample()))

    def _sample(self) -> Sample:
        merged: Sample = []
        with self.scratch():
            for work in map(SampleWork.from_json, self.stdin):
                result = sample_group(work.task)
                merged = merge_samples((merged, result.sample), self.sample_options.size)
                for failure in result.failures:
                    count_failure(self, failure.path, failure.reason, failure.hint)
        return merged

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the split points."""
        options = self.sample_options
        sample = read_sample(self.lines(), options.size, [])
        self.stdout.write(_SHORT if len(sample) < options.size else b"")
        self.stdout.write(format_points(sample, options.shards))

    def _sample_again(self) -> bytes:
        """The split points from all lines, as `cdxmill sample` takes them if the guess of their number was wrong."""
        options = self.sample_options
        tasks = sample_tasks(self._inventory, options.seed, options.size)
        sample = run_sampling(tasks, self._inventory.total, processes_by_default(), quiet=True, failures=None)
        return format_points(sample, options.shards)

    def finish(self, output: bytes) -> bytes:
        """Write the split files; the split points are the job's output."""
        options = self.sample_options
        if output.startswith(_SHORT) and self._ceiling < 1:
            output = self._sample_again()
        points = parse_points(output)
        if len(points) + 1 < options.shards:
            say(f"note: {len(points) + 1} shards, not {options.shards}: too few keys")
        if options.splitfile:
            write_splits(points, options.splitfile, ".seq")
            if not self.options.quiet:
                say(
                    f"{options.splitfile}: {count(len(points), 'split point')} for {count(len(points) + 1, 'shard')}"
                )
        return format_text(points)


if __name__ == "__main__":  # mrjob starts each task with this file
    SampleCDXJob.run()
