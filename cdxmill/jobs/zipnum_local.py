"""What the launcher of zipnumclusterjob.py does under the local runners, before and after the tasks."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from cdxmill.cluster.write import unpublish, write_cluster_files
from cdxmill.commands.zipnum import check_inputs
from cdxmill.errors import StoppedError
from cdxmill.formats.cluster_manifest import ShardEntry
from cdxmill.inputs.grouping import group_sources
from cdxmill.inputs.sources import take_inventory
from cdxmill.jobs.found_inputs import cdx_files_of
from cdxmill.jobs.zipnum_options import ZipnumJobOptions
from cdxmill.storage.local import make_folder, stopping

_RUN = ".run-"


def task_folder(options: ZipnumJobOptions) -> Path:
    """The directory that the reducers of this run write to. Another run's reducers may still be alive."""
    return Path(options.folder) / f"{_RUN}{os.getpid()}"


def start_cluster(options: ZipnumJobOptions) -> list[list[str]]:
    """Check the inputs, and delete the manifest of an earlier run. Returns the CDX files in groups."""
    folder = Path(options.folder)
    inventory = take_inventory(cdx_files_of(options.inputs), flavours=True)
    check_inputs(inventory, options.build)
    make_folder(folder)
    with stopping(folder):
        for left in folder.glob(f"{_RUN}*"):
            shutil.rmtree(left)
    unpublish(folder)
    return [[source.path for source in group] for group in group_sources(inventory.sources)]


def finish_cluster(options: ZipnumJobOptions, output: bytes) -> None:
    """Move the shards into the cluster, and write its other files. `output` has one `ShardEntry` per line."""
    folder, build = Path(options.folder), options.build
    shards = sorted(parse_entry(row) for row in output.splitlines())
    if len(shards) != build.shards:
        raise StoppedError(
            f"{folder}: only {len(shards)} of {build.shards} shards were written; run the job again"
        )
    with stopping(folder):
        for path in task_folder(options).iterdir():
            path.replace(folder / path.name)
        task_folder(options).rmdir()
    write_cluster_files(folder, shards, options.points, build.compressor, build.block_lines, build.location)


def format_entry(entry: ShardEntry) -> bytes:
    """A line of a reducer's output."""
    return json.dumps(entry._asdict()).encode() + b"\n"


def parse_entry(line: bytes) -> ShardEntry:
    """Parse what `format_entry` has written."""
    return ShardEntry(**json.loads(line))
