"""The scripts for spark-submit, with the command lines of webarchive-indexing's jobs on cc-pyspark.

    spark-submit indexwarcs_cc_pyspark.py --input_base_url=ROOT --output_base_url=CDX LIST [TABLE]
    spark-submit zipnumcluster_cc_pyspark.py --output_base_url=CLUSTER --partition_boundaries_file=FILE CDX [TABLE]

The bytes are those of `cdxmill index --manifest`, and of `cdxmill zipnum` with the same split points.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import NoReturn, TypeVar

from cdxmill.cluster.find import local_directory
from cdxmill.cluster.split_files import read_splits, split_files, write_splits
from cdxmill.commands.clusters.zipnum import build_cluster, check_inputs, zipnum_options
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.per_archive.index import IndexOptions, index_to_directory
from cdxmill.errors import INTERRUPTED, STOPPED, CdxmillError, UsageError
from cdxmill.formats.clusters.split_points import format_boundaries, parse_boundaries
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.cdx_files import cdx_files_of, take_inventory
from cdxmill.messages import fail, say, say_lines
from cdxmill.options.archives import ArchiveInputs
from cdxmill.options.clusters import ClusterOptions
from cdxmill.options.option import REPLACE, AnyPath, Existing, Options, argument, option
from cdxmill.options.table import add_options, read_options
from cdxmill.outputs.existing import rule_of
from cdxmill.outputs.names import cdx_names, check_inputs_stay
from cdxmill.regex import regex
from cdxmill.running.failures import Failures
from cdxmill.running.processes import exit_on_signals
from cdxmill.spark.engine import Engine, check_pyspark
from cdxmill.spark.jobs import IndexRunner, Maker, WaczOpener
from cdxmill.storage.location import join, locate

_SHARDS = 300
_SPLITS = (".txt", ".seq")
"""Split files of the other engines work, too."""
_WITHOUT_HOST = regex(r"^(file|hdfs):/(?!/)", re.I)
_OLD_S3 = regex(r"^s3n://", re.I)
_Options = TypeVar("_Options", bound=Options)
_IGNORED = ("--output_format", "--output_compression", "--output_option", "--log_level")
"""Options of cc-pyspark that say how a table is written."""


class ScriptOptions(Options):
    """The options that all jobs of cc-pyspark have."""

    input: str = argument(
        "INPUT",
        "What is read. Several are separated by commas.",
    )
    output: str = argument("TABLE", "Name of a table. Not used: no table is written.", default="")
    input_base_url: str = option(
        "--input_base_url", "Directory or URL that relative inputs start from.", default=""
    )
    num_input_partitions: int = option(
        "--num_input_partitions", "Number of tasks that read inputs.", default=0, min=0
    )
    local_temp_dir: str = option(
        "--local_temp_dir", "Directory of the nodes for temporary files.", default=""
    )
    replace: bool = REPLACE
    quiet: bool = option(
        "--quiet -q", "Hide the progress and the summary. Failures are still reported.", default=False
    )


class SparkIndexOptions(ScriptOptions, Existing):
    """The command line of the script."""

    output_base_url: str = option(
        "--output_base_url", "Directory or URL for the CDX files.", default="my_cdx_bucket"
    )
    num_output_partitions: int | None = option(
        "--num_output_partitions", "Not used: no table is written.", default=None
    )
    update: bool = option(
        "--skip-existing --update", "Skip archives with a finished CDX file.", default=False
    )


class SparkZipnumOptions(ScriptOptions, ClusterOptions):
    """The command line of the script."""

    output_base_url: str = option("--output_base_url", "Directory or URL of the cluster.")
    partition_boundaries_file: str = option(
        "--partition_boundaries_file",
        "JSON list of [key, timestamp], the split points. It is read if it exists, and else written.",
    )
    temporary_output_base_url: str | None = option(
        "--temporary_output_base_url", "Not used: temporary files are on the nodes.", default=None
    )
    numlines: int = option("--num_lines", "Lines per block.", default=3000, min=1)
    shards: int | None = option(
        "--num_output_partitions",
        f"Number of shards. Default: {_SHARDS}, or as in the file.",
        default=None,
        min=1,
    )
    splits: AnyPath | None = field(default=None, init=False)
    processes: int = field(default=0, init=False)


def index(arguments: list[str]) -> int:
    """Run indexwarcs_cc_pyspark.py. Returns the exit status. Raises UsageError, InputError, StoppedError."""
    about = (
        "Index the WARC and ARC files of a list on Spark. INPUT is a file or URL with a list of archives, one per line."
        " One .cdx.gz file is written per archive."
    )
    given = parse_options(SparkIndexOptions, "indexwarcs_cc_pyspark.py", about, arguments)
    existing, output = rule_of(given), plain_url(given.output_base_url)
    failures = Failures()
    asked = ArchiveInputs(manifest=plain_url(given.input), root=plain_url(given.input_base_url))
    with make_engine(given) as engine:
        names = cdx_names(find_archives(asked, failures, open_all=WaczOpener(engine)), True)
        run = IndexRunner(engine, given.local_temp_dir)
        options = IndexOptions(existing=existing, quiet=given.quiet, run=run)
        summary = index_to_directory(names, output, options, failures)
    if not given.quiet:
        say_lines(summary.report(failures, output))
    return failures.status


def zipnum(arguments: list[str]) -> int:
    """Run zipnumcluster_cc_pyspark.py. Returns the exit status. Raises UsageError, InputError, StoppedError."""
    about = "Build a ZipNum cluster from CDX files on Spark. INPUT is a directory, pattern or URL."
    given = parse_options(SparkZipnumOptions, "zipnumcluster_cc_pyspark.py", about, arguments)
    output, boundaries = plain_url(given.output_base_url), plain_url(given.partition_boundaries_file)
    for place in (output, boundaries):
        locate(place).check_writable()
    directory = output if locate(output).is_remote else local_directory(output)
    paths = cdx_files_of(below(given.input_base_url, name) for name in given.input.split(","))
    options = zipnum_options(given)
    options = replace(options, shards=options.shards or _SHARDS)
    failures = Failures()
    with make_engine(given) as engine:
        points = _points(engine, paths, boundaries, options, failures)
        make = Maker(engine, given.local_temp_dir)
        options = replace(options, points=tuple(points), shards=len(points) + 1, make=make, is_far=True)
        summary = build_cluster(paths, directory, options, failures)
    if not given.quiet:
        say(f"{output}: {summary}")
    return failures.status


def _points(
    engine: Engine, paths: Sequence[str], boundaries: str, options: ZipnumOptions, failures: Failures
) -> list[bytes]:
    """The split points of the boundaries file. If it does not exist, they are found and written."""
    if locate(boundaries).exists():
        points = _read_points(boundaries)
        if options.shards not in (len(points) + 1, _SHARDS):
            raise UsageError(
                f"--num_output_partitions {options.shards} does not match {boundaries}, which gives"
                f" {len(points) + 1} shards; omit the option"
            )
        return points
    if not paths:
        raise UsageError("no CDX files found; check the paths")
    check_inputs_stay(split_files(boundaries), map(locate, paths))
    inventory = take_inventory(paths, formats=True)
    check_inputs(inventory, options)
    points = Maker(engine).split_points(inventory, options, failures)
    # else no line can be read, which is reported later: a rerun must sample again
    if points or options.shards == 1:
        _write_points(points, boundaries)
        if not options.quiet:
            say(f"{boundaries}: {len(points)} split points, from a sample")
    return points


def _read_points(path: str) -> list[bytes]:
    if path.lower().endswith(_SPLITS):
        return read_splits(path)
    try:
        return parse_boundaries(locate(path).read_bytes())
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None


def _write_points(points: Sequence[bytes], path: str) -> None:
    if path.lower().endswith(_SPLITS):
        write_splits(points, path, path[-4:].lower())
        return
    with locate(path).write_named() as file:
        file.write(format_boundaries(points))


def parse_options(kind: type[_Options], name: str, about: str, arguments: list[str]) -> _Options:
    """The options of a script. Raises UsageError."""
    parser = argparse.ArgumentParser(prog=name, description=about)
    add_options(kind, parser.add_argument)
    for ignored in _IGNORED:
        parser.add_argument(ignored, action="append", help=argparse.SUPPRESS)
    parser.add_argument("--spark-profiler", action="store_true", help=argparse.SUPPRESS)
    return read_options(kind, parser.parse_args(arguments))


def make_engine(options: ScriptOptions) -> Engine:
    """Spark as spark-submit has it, or on this machine. Raises UsageError."""
    check_pyspark()
    return Engine("", 0, options.num_input_partitions, quiet=options.quiet)


def plain_url(url: str) -> str:
    """A path or URL as cdxmill writes it.

    >>> plain_url("file:/data/x"), plain_url("hdfs:/x"), plain_url("s3n://b/x"), plain_url("/data/")
    ('file:///data/x', 'hdfs:///x', 's3://b/x', '/data/')
    """
    return _OLD_S3.sub("s3://", _WITHOUT_HOST.sub(r"\1:///", url))


def below(base: str, path: str) -> str:
    """A path below a base URL, unless it is absolute.

    >>> below("s3://b/", "x/*.gz"), below("s3://b", "/data/x"), below("s3://b", "hdfs:/x"), below("", "x")
    ('s3://b/x/*.gz', '/data/x', 'hdfs:///x', 'x')
    """
    path = plain_url(path)
    if not base or path.startswith("/") or "://" in path:
        return path
    return join(plain_url(base), path)


def run(main: Callable[[list[str]], int]) -> NoReturn:
    """Run a script as a command: print the reason of an error, and exit with the statuses of `cdxmill`."""
    exit_on_signals()
    sys.exit(_status(main))


def _status(main: Callable[[list[str]], int]) -> int:
    try:
        return main(sys.argv[1:])
    except CdxmillError as error:
        return fail(error, error.status)
    except OSError as error:
        return fail(error, STOPPED)
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED)
