"""Options of zipnumclusterjob.py, and what its launcher does before and after the tasks."""

from __future__ import annotations

import json
import os
import shutil
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cdxmill.cluster.write import unpublish, write_cluster_files
from cdxmill.commands.zipnum import ZipnumOptions, check_inputs
from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.cluster_manifest import ShardEntry
from cdxmill.formats.zipnum_block import DEFAULT_LEVEL, LIBRARIES, Compressor
from cdxmill.inputs.cdx_files import find_cdx_files
from cdxmill.inputs.grouping import group_sources
from cdxmill.inputs.sources import take_inventory
from cdxmill.inputs.split_files import read_splits
from cdxmill.stages.zipnum.write_shard import BLOCK_LINES
from cdxmill.storage.local import make_folder, stopping

_RUN = ".run-"


def add_options(add: Callable[..., Any]) -> None:
    """Add the options, `add` being like argparse's add_argument."""
    add(
        "--splitfile",
        help="Split points: a SequenceFile or a text file, as dosample.py makes them. Required.",
    )
    add("--zipnum-dir", help="Folder of the cluster; without it, --output-dir is.")
    add("--shards", type=int, help="Number of shards. The split file tells it; another number is an error.")
    add("--numlines", type=int, default=BLOCK_LINES, help="Lines a block.")
    add("--convert", action="store_true", help="Turn CDX lines with 6 fields into CDXJ.")
    add("--compressor", choices=LIBRARIES, default=LIBRARIES[0], help="Library that packs the blocks.")
    add("--level", type=int, default=DEFAULT_LEVEL, help="How hard blocks are packed.")
    add("--location", help="Folder or URL where the shards will be published, for cluster.loc.")


def cluster_folder(options: Namespace) -> Path:
    """The folder that the cluster goes to. Raises UsageError where none is named."""
    named = options.zipnum_dir or options.output_dir
    if not named:
        raise UsageError("say where the cluster goes: --zipnum-dir FOLDER")
    return Path(named)


def zipnum_options(options: Namespace) -> ZipnumOptions:
    """How the cluster is built. Raises UsageError."""
    if not options.splitfile:
        raise UsageError("say where the shards begin: --splitfile FILE, as dosample.py makes it")
    points = tuple(read_splits(options.splitfile))
    shards = len(points) + 1
    if options.shards not in (None, shards):
        raise UsageError(f"{options.splitfile} gives {shards} shards, but --shards says {options.shards}")
    if options.numlines < 1:
        raise UsageError("--numlines is a number from 1")
    if not 1 <= options.level <= (9 if options.compressor == "zlib" else 12):
        raise UsageError(f"{options.compressor} has no level {options.level}")
    compressor = Compressor(options.compressor, options.level)
    return ZipnumOptions(
        shards=shards,
        points=points,
        block_lines=options.numlines,
        compressor=compressor,
        convert=options.convert,
        location=options.location,
    )


def task_folder(options: Namespace) -> Path:
    """Where this run's reducers write: reducers that outlive a killed launcher write elsewhere."""
    return cluster_folder(options) / f"{_RUN}{os.getpid()}"


def start_cluster(options: Namespace) -> list[list[str]]:
    """Check everything and declare the cluster unfinished; the CDX files in groups."""
    folder = cluster_folder(options)
    inventory = take_inventory(find_cdx_files(options.args), flavours=True)
    check_inputs(inventory, zipnum_options(options))
    make_folder(folder)
    with stopping(folder):
        for left in folder.glob(f"{_RUN}*"):
            shutil.rmtree(left)
    unpublish(folder)
    return [[source.path for source in group] for group in group_sources(inventory.sources)]


def finish_cluster(options: Namespace, output: bytes) -> None:
    """Write the files beside the shards; `output` has a line of JSON for each of these."""
    folder, how = cluster_folder(options), zipnum_options(options)
    shards = sorted(ShardEntry(**json.loads(row)) for row in output.splitlines())
    if len(shards) != how.shards:
        raise StoppedError(f"{folder}: {len(shards)} of {how.shards} shards came out; run it again")
    with stopping(folder):
        for path in task_folder(options).iterdir():
            path.replace(folder / path.name)
        task_folder(options).rmdir()
    write_cluster_files(folder, shards, how.points or (), how.compressor, how.block_lines, how.location)
