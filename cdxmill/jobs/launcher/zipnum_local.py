"""What the launcher of zipnumclusterjob.py does under the local runners, before and after the tasks."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from cdxmill.cluster.output import open_output
from cdxmill.cluster.own_files import WORK
from cdxmill.cluster.write import unpublish, write_cluster_files
from cdxmill.commands.clusters.zipnum import check_inputs, run_of, summary_of
from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.inputs.found_inputs import cdx_files_of
from cdxmill.inputs.sources import take_inventory
from cdxmill.jobs.launcher.run_job import AlreadyDone
from cdxmill.jobs.zipnum_options import ZipnumJobOptions
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.local.files import stopping
from cdxmill.tasks.grouping import group_sources

_RUN = ".run-"


class LocalCluster:
    """The cluster of one run: where it is written, and its files in groups, one per mapper."""

    def __init__(self, options: ZipnumJobOptions, locks: ExitStack) -> None:
        """Check the inputs and the directory. Raises UsageError, or AlreadyDone if nothing is to be done."""
        self._options = options
        inventory = take_inventory(cdx_files_of(options.inputs), flavours=True)
        if not inventory.sources:
            raise UsageError("no CDX files found; check the paths")
        check_inputs(inventory, options.build)
        self._run = run_of(inventory, options.build)
        self._failures = Failures()
        place = open_output(
            Path(options.folder), self._run, options.build.replace, self._failures, options.points
        )
        self._output = locks.enter_context(place)
        if self._output.finished is not None:
            raise AlreadyDone(f"{options.folder}: {summary_of(self._output.finished)}", self._failures.count)
        self.groups = [[source.path for source in group] for group in group_sources(inventory.sources)]
        with stopping(self._work):
            for left in self._work.glob(f"{_RUN}*"):
                shutil.rmtree(left)
        self._output.clear()
        self._output.start(options.build.shards)
        unpublish(self._output.work)

    @property
    def task_folder(self) -> Path:
        """The directory that the reducers of this run write to. Another run's reducers may still be alive."""
        return self._work / f"{_RUN}{os.getpid()}"

    @property
    def _work(self) -> Path:
        return Path(self._output.work)

    def finish(self, shards: Sequence[ShardEntry], failures: Sequence[str]) -> None:
        """Move the shards into the cluster, and write its other files. `failures` are those of the mappers."""
        work, build = self._work, self._options.build
        with stopping(work):
            for path in self.task_folder.iterdir():
                path.replace(work / path.name)
            self.task_folder.rmdir()
        for failure in failures:
            path_, _, reason = failure.partition(": ")
            self._failures.items.append(Failure(path_, None, reason))
        lines = sum(shard.lines for shard in shards)
        blocks, size = sum(shard.blocks for shard in shards), sum(shard.bytes for shard in shards)
        self._output.record(self._run, [len(shards), lines, blocks, 0, size], ())
        location = build.location or self._options.folder
        write_cluster_files(work, shards, self._options.points, build.compressor, build.block_lines, location)
        with stopping(work):
            shutil.rmtree(work / WORK)
        self._output.finish()


def parse_entries(options: ZipnumJobOptions, output: bytes) -> list[ShardEntry]:
    """The shards in the output of the reducers. Raises StoppedError if one is missing."""
    shards = sorted(parse_entry(row) for row in output.splitlines())
    if len(shards) != options.build.shards:
        raise StoppedError(
            f"{options.folder}: only {len(shards)} of {options.build.shards} shards were written;"
            " run the job again"
        )
    return shards


def format_entry(entry: ShardEntry) -> bytes:
    """A line of a reducer's output."""
    return json.dumps(entry._asdict()).encode() + b"\n"


def parse_entry(line: bytes) -> ShardEntry:
    """Parse what `format_entry` has written."""
    return ShardEntry(**json.loads(line))
