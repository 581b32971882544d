"""The options of zipnumclusterjob.py."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass

from cdxmill.commands.clusters.zipnum import ZipnumOptions
from cdxmill.errors import UsageError
from cdxmill.formats.clusters.zipnum_block import BLOCK_LINES, DEFAULT_LEVEL, LIBRARIES, checked_compressor
from cdxmill.inputs.split_files import read_splits
from cdxmill.jobs.launcher.mrjob_types import AddOption


@dataclass(frozen=True)
class ZipnumJobOptions:
    """The options of the ZipNum job.

    `folder` is the path or URL of the cluster's directory. `parts_folder` gets a copy of the
    parts, on Hadoop. `points` are the split points, and `build` is how the shards are written.
    """

    inputs: tuple[str, ...]
    folder: str
    parts_folder: str | None
    points: tuple[bytes, ...]
    build: ZipnumOptions
    quiet: bool


def add_options(add: AddOption) -> None:
    """Add the options to a job."""
    add(
        "--splitfile", help="Split points: a SequenceFile or text file, as dosample.py writes them. Required."
    )
    add("--zipnum-dir", help="Directory of the cluster. Default: --output-dir.")
    add(
        "--shards",
        type=int,
        help="Expected number of shards. An error if the split file gives another number.",
    )
    add(
        "--numlines",
        type=int,
        default=BLOCK_LINES,
        help=f"Number of lines per block. Default: {BLOCK_LINES}.",
    )
    add("--convert", action="store_true", help="Convert CDX lines with 6 fields to CDXJ.")
    add("--compressor", choices=LIBRARIES, default=LIBRARIES[0], help="Compression library for the blocks.")
    add("--level", type=int, default=DEFAULT_LEVEL, help=f"Compression level. Default: {DEFAULT_LEVEL}.")
    add("--replace", action="store_true", help="Replace a finished cluster in the directory.")
    add("--location", help="Directory or URL where the shards will be published. Written to cluster.loc.")


def parse_options(options: Namespace) -> ZipnumJobOptions:
    """The options as one typed value. Reads the split file. Raises UsageError."""
    folder = options.zipnum_dir or options.output_dir
    if not folder:
        raise UsageError("--zipnum-dir is missing; give the directory of the cluster")
    if not options.splitfile:
        raise UsageError("--splitfile is missing; give the split points, as dosample.py writes them")
    points = tuple(read_splits(options.splitfile))
    return ZipnumJobOptions(
        inputs=tuple(options.args),
        folder=folder,
        parts_folder=options.output_dir if options.zipnum_dir else None,
        points=points,
        build=_build_options(options, points),
        quiet=options.quiet,
    )


def _build_options(options: Namespace, points: tuple[bytes, ...]) -> ZipnumOptions:
    shards = len(points) + 1
    if options.shards not in (None, shards):
        raise UsageError(f"{options.splitfile}: gives {shards} shards, but --shards is {options.shards}")
    if options.numlines < 1:
        raise UsageError(f"invalid --numlines {options.numlines}: expected a number >= 1")
    try:
        compressor = checked_compressor(options.compressor, options.level)
    except ValueError as error:
        raise UsageError(f"--compressor, --level: {error}") from None
    return ZipnumOptions(
        shards=shards,
        points=points,
        block_lines=options.numlines,
        compressor=compressor,
        convert=options.convert,
        location=options.location,
        replace=options.replace,
    )
