"""Build a ZipNum cluster on Spark: the command line of webarchive-indexing's zipnumcluster_cc_pyspark.py.

    spark-submit zipnumcluster_cc_pyspark.py --output_base_url=CLUSTER --partition_boundaries_file=FILE CDX [TABLE]

The bytes are those of `cdxmill zipnum` with the same split points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from cdxmill.cluster.split_files import read_splits, write_splits
from cdxmill.commands.clusters.zipnum import ZipnumOptions, check_inputs, zipnum_options
from cdxmill.errors import FAILED, OK, UsageError
from cdxmill.formats.clusters.split_points import format_boundaries, parse_boundaries
from cdxmill.inputs.cdx_files import take_inventory
from cdxmill.inputs.found_inputs import cdx_files_of
from cdxmill.messages import say
from cdxmill.options.clusters import ClusterOptions
from cdxmill.options.option import AnyPath, Option
from cdxmill.running.failures import Failures
from cdxmill.spark.engine import Engine
from cdxmill.spark.jobs import Maker, zipnum_on_spark
from cdxmill.spark.script import ScriptOptions, below, make_engine, parse_options, plain_url
from cdxmill.storage.location import locate

_SHARDS = 300
_SPLITS = (".txt", ".seq")
"""Split files of the other engines work, too."""


_ABOUT = "zipnumcluster_cc_pyspark.py: Build a ZipNum cluster from CDX files on Spark. INPUT is a directory, pattern or URL."


@dataclass(kw_only=True, repr=False, eq=False)
class SparkZipnumOptions(ScriptOptions, ClusterOptions):
    """The command line of the script."""

    output_base_url: Annotated[str, Option("--output_base_url", help="Directory or URL of the cluster.")]
    partition_boundaries_file: Annotated[
        str,
        Option(
            "--partition_boundaries_file",
            help="JSON list of [key, timestamp], the split points. It is read if it exists, and else written.",
        ),
    ]
    temporary_output_base_url: Annotated[
        str | None, Option("--temporary_output_base_url", help="Not used: temporary files are on the nodes.")
    ] = None
    numlines: Annotated[int, Option("--num_lines", min=1, help="Lines per block.")] = 3000
    shards: Annotated[
        int | None,
        Option(
            "--num_output_partitions", min=1, help=f"Number of shards. Default: {_SHARDS}, or as in the file."
        ),
    ] = None
    splits: AnyPath | None = field(default=None, init=False)
    processes: int = field(default=0, init=False)


def main(arguments: list[str]) -> int:
    """Run the job. Returns the exit status. Raises UsageError, InputError, StoppedError."""
    given = parse_options(SparkZipnumOptions, _ABOUT, arguments)
    output, boundaries = plain_url(given.output_base_url), plain_url(given.partition_boundaries_file)
    for place in (output, boundaries):
        locate(place).check_writable()
    paths = cdx_files_of(below(given.input_base_url, name) for name in given.input.split(","))
    options = zipnum_options(given)
    options = replace(options, shards=options.shards or _SHARDS)
    failures = Failures()
    with make_engine(given) as engine:
        options = _with_points(engine, paths, boundaries, options, failures)
        summary = zipnum_on_spark(engine, paths, output, options, failures, given.local_temp_dir)
    if not given.quiet:
        say(f"{output}: {summary}")
    return FAILED if failures.count else OK


def _with_points(
    engine: Engine, paths: Sequence[str], boundaries: str, options: ZipnumOptions, failures: Failures
) -> ZipnumOptions:
    """The options with the split points of the boundaries file. If it does not exist, they are found and written."""
    if locate(boundaries).exists():
        points = _read_points(boundaries)
        if options.shards not in (len(points) + 1, _SHARDS):
            raise UsageError(
                f"--num_output_partitions {options.shards} does not match {boundaries}, which gives"
                f" {len(points) + 1} shards; omit the option"
            )
        return replace(options, points=tuple(points), shards=len(points) + 1)
    if not paths:
        raise UsageError("no CDX files found; check the paths")
    inventory = take_inventory(paths, flavours=True)
    check_inputs(inventory, options)
    points = Maker(engine).split_points(inventory, options, failures)
    if (
        points or options.shards == 1
    ):  # else no line can be read, which is reported later: a rerun must sample again
        _write_points(points, boundaries)
        if not options.quiet:
            say(f"{boundaries}: {len(points)} split points, from a sample")
    return replace(options, points=tuple(points), shards=len(points) + 1)


def _read_points(path: str) -> list[bytes]:
    if path.lower().endswith(_SPLITS):
        return read_splits(path)
    try:
        return parse_boundaries(locate(path).read_bytes())
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None


def _write_points(points: Sequence[bytes], path: str) -> None:
    if path.lower().endswith(_SPLITS):
        write_splits(points, f"{path[:-4]}.txt")
        return
    with locate(path).write_atomic() as file:
        file.write(format_boundaries(points))
