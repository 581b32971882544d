"""Find split points: the mappers sample CDX files, one reducer keeps the samples of least priority.

    python samplecdxjob.py -r local --shards 300 CDX...
    python dosample.py -r local --shards 300 --splitfile splits.seq CDX...
    python dosample.py --shards 300 --splitfile splits.seq --from-cluster CLUSTER

The first prints the split points. The second takes all its options, and writes two files, a SequenceFile and a text file,
also without --splitfile. With --from-cluster the split points are taken from a cluster's index, which needs no job.

With -r local and -r inline the split points equal those of `cdxmill sample` with the same seed and inputs.
On Hadoop they depend on how Hadoop divides the inputs among its mappers.
"""

from __future__ import annotations

import posixpath
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from cdxmill.cluster.split_files import check_splits, split_files, write_splits
from cdxmill.errors import OK, CdxmillError
from cdxmill.formats.clusters.split_points import format_text
from cdxmill.inputs.cdx_files import cdx_files_of, take_inventory
from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory
from cdxmill.jobs.launcher.hadoop_inputs import bytes_per_mapper, cdx_inputs, group_inputs
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.mrjob_parts import RunnerLike
from cdxmill.jobs.launcher.stream_job import StreamJob
from cdxmill.jobs.nodes.sample import (
    parse_failures,
    parse_points,
    pick_points,
    sample_files,
    share_of_sample,
)
from cdxmill.messages import count, fail, say
from cdxmill.options.option import REPLACE, SEED, Options, option
from cdxmill.options.table import add_options, read_options
from cdxmill.outputs.names import check_inputs_stay
from cdxmill.running.failures import Failures
from cdxmill.running.processes import processes_by_default
from cdxmill.stages.lines.pick_splits import pick_splits
from cdxmill.storage.location import locate
from cdxmill.tasks.sampling import SAMPLES_PER_SHARD, guess_ceiling, run_sampling, sample_tasks, texts_of
from cdxmill.tasks.whole_files import SampleTask

Files = TypeVar("Files", bound=Iterable[str])


class SplitsOptions(Options):
    """How many shards, and where their split points are written."""

    shards: int = option("--shards", "Number of shards.", default=300, min=1)
    splitfile: str | None = option(
        "--splitfile",
        "Write the split points to this SequenceFile, and to a .txt file beside it.",
        default=None,
    )
    replace: bool = REPLACE


class SampleJobOptions(SplitsOptions):
    """The options of the sample job."""

    scaler: int = option("--scaler", "Number of sampled lines per shard.", default=SAMPLES_PER_SHARD, min=1)
    seed: int = SEED

    @property
    def size(self) -> int:
        """The number of lines in the whole sample."""
        return self.shards * self.scaler


class FromCluster(SplitsOptions):
    """The options with which the split points come from a cluster."""

    from_cluster: str = option("--from-cluster CLUSTER", "Directory or URL of the cluster.")
    splitfile: str = option(
        "--splitfile", "SequenceFile to write, with a .txt file beside it.", default="splits.seq"
    )


class SampleCDXJob(StreamJob[SampleJobOptions]):
    """Input: CDX files, directories, patterns. Output: split points, one per line."""

    kind = SampleJobOptions
    arguments = "CDX..."
    description = "Sample CDX files and print split points for the ZipNum job, one per line."

    _ceiling = 1.0
    """See `guess_ceiling`; on Hadoop nothing is guessed."""

    def check(self) -> None:
        """Raise UsageError if the job cannot run with its options, also if a split file exists."""
        options = self.own_options
        if options.splitfile:
            check_splits(options.splitfile, ".seq", replace=options.replace)
        super().check()

    def list_work(self) -> WorkList:
        """Groups of files, and how to sample each."""
        options = self.own_options
        self._inventory = take_inventory(self._staying(cdx_files_of(self.options.args)))
        self._ceiling = guess_ceiling(self._inventory, options.size)
        tasks = sample_tasks(self._inventory, options.seed, options.size, self._ceiling)
        return [task._asdict() for task in tasks]

    def _staying(self, files: Files) -> Files:
        """The CDX files. Raises UsageError if a split file would replace one."""
        if self.own_options.splitfile:
            check_inputs_stay(split_files(self.own_options.splitfile, ".seq"), map(locate, files))
        return files

    def hadoop_step(self, runner: RunnerLike, directory: Path) -> HadoopStep:
        """Each mapper sends a sample of its lines, one reducer picks the split points."""
        options = self.own_options
        size = ["--size", str(options.size)]
        if options.splitfile:
            RemoteDirectory(posixpath.dirname(options.splitfile) or ".").check_writable()
        files = self._staying(cdx_inputs(self.options.args, runner))
        groups = group_inputs(files, bytes_per_mapper(runner))
        total = sum(files.values())
        tasks = []
        for paths in groups:
            part = sum(files[path] for path in paths) / max(total, 1)
            share = share_of_sample(options.size, len(groups), part)
            tasks.append(SampleTask(paths, str(options.seed), share))
        return HadoopStep(
            inputs=[task._asdict() for task in tasks],
            mapper=["sample", *size],
            reducer=["points", *size, "--shards", str(options.shards)],
            settings={"mapreduce.job.reduces": "1"},
            defaults={},
            output_dir=self.options.output_dir,
        )

    def run_mapper(self, step_num: int = 0) -> None:
        """Write the sample of the files on the work list."""
        sample_files(self.own_options.size, texts_of, self.mapper_run())

    def run_reducer(self, step_num: int = 0) -> None:
        """Write the split points."""
        pick_points(self.own_options.size, self.own_options.shards, self.reducer_run())

    def finish(self, runner: RunnerLike) -> int:
        """Write the split files, and print the split points."""
        options = self.own_options
        output = b"".join(runner.cat_output())
        failures = Failures()
        for failure in parse_failures(output):
            failures.report(failure)
        points = self._points_again() if self._is_short(runner) else parse_points(output)
        if len(points) + 1 < options.shards:
            say(f"note: {len(points) + 1} shards, not {options.shards}: too few keys")
        if options.splitfile:
            write_splits(points, options.splitfile, ".seq")
            self.tell(
                f"{options.splitfile}: {count(len(points), 'split point')} for {count(len(points) + 1, 'shard')}"
            )
        self.show(format_text(points))
        return failures.status

    def _is_short(self, runner: RunnerLike) -> bool:
        """Whether the sample is too small because the number of lines was guessed wrongly."""
        return self._ceiling < 1 and runner.counters()[0]["cdxmill"]["samples"] < self.own_options.size

    def _points_again(self) -> list[bytes]:
        """The split points from all lines, as `cdxmill sample` takes them if the guess of their number was wrong."""
        options = self.own_options
        tasks = sample_tasks(self._inventory, options.seed, options.size)
        sample = run_sampling(tasks, self._inventory.total, processes_by_default(), quiet=True, failures=None)
        return pick_splits((key for _, key in sample), options.shards)


def dosample() -> int:
    """Run the job for two split files, or read a cluster's index. Returns the exit status."""
    if any(word.partition("=")[0] == "--from-cluster" for word in sys.argv[1:]):
        return _split_cluster()
    sys.argv[1:1] = ["--splitfile", "splits.seq", "--no-cat-output"]  # the user's own come later and win
    SampleCDXJob.arguments = "CDX...\n       %(prog)s --from-cluster CLUSTER"
    SampleCDXJob.description = "Sample CDX files and write split points for the ZipNum job to two files."
    SampleCDXJob.run()
    return OK


def _split_cluster() -> int:
    """Write the split points of a cluster's index. Options of mrjob are ignored."""
    from cdxmill.commands.clusters.split_points import split_cluster  # the job's tasks do not need it

    parser = ArgumentParser(description="Take split points from the index of a ZipNum cluster.")
    add_options(FromCluster, parser.add_argument)
    given, _ = parser.parse_known_args()
    try:
        options = read_options(FromCluster, given)
        found = split_cluster(
            options.from_cluster, options.shards, options.splitfile, ".seq", replace=options.replace
        )
    except CdxmillError as error:
        return fail(error, error.status)
    say(str(found))
    return OK


if __name__ == "__main__":  # mrjob starts each task with this file
    SampleCDXJob.run()
