"""Functions that make, copy and check ZipNum clusters, and find split points for them."""

from __future__ import annotations

import os
from typing import TypedDict, Unpack

from cdxmill.api.archives import IndexArguments, find_inputs, index_options
from cdxmill.api.arguments import Path, Paths, check_names, optional_path, process_count, required_paths
from cdxmill.api.results import ClusterResult, SampleResult, VerifyResult
from cdxmill.cluster.locations import local_directory
from cdxmill.commands.clusters import build as build_command
from cdxmill.commands.clusters import publish as publish_command
from cdxmill.commands.clusters import verify as verify_command
from cdxmill.commands.clusters.zipnum import ClusterSummary, ZipnumOptions, build_cluster
from cdxmill.commands.sample import sample_files
from cdxmill.errors import UsageError
from cdxmill.formats.clusters.zipnum_block import DEFAULT_LEVEL, checked_compressor
from cdxmill.inputs.cdx_files import find_cdx_files
from cdxmill.inputs.split_files import check_splits_absent, read_splits, write_splits
from cdxmill.running.failures import Failures


class ClusterArguments(TypedDict, total=False):
    """How a cluster is written: the options of `cdxmill zipnum` with these names.

    Without `shards` and `splits`, the size of the CDX files decides the number of shards.
    """

    shards: int
    splits: Path
    seed: int
    numlines: int
    compressor: str
    level: int
    location: str
    replace: bool
    processes: int


class BuildArguments(ClusterArguments, IndexArguments):
    """The keyword arguments of `build`."""


def sample(
    cdx: Paths,
    *,
    shards: int,
    output: Path | None = None,
    seed: int = 0,
    fraction: float = 1.0,
    replace: bool = False,
    processes: int = 0,
) -> SampleResult:
    """Find the split points that divide the lines of CDX files into `shards` shards of about the same size.

    With `output`, for example "splits.txt", they are also written there, and as a SequenceFile beside it. Raises
    UsageError if one of the two exists and `replace` is not given.
    """
    if output is not None and not replace:
        check_splits_absent(os.fspath(output))
    failures = Failures(printed=False)
    paths = find_cdx_files(required_paths(cdx), failures)
    points = sample_files(paths, shards, seed, process_count(processes), failures, True, fraction)
    if output is not None:
        write_splits(points, os.fspath(output))
    return SampleResult(points, failures.items)


def zipnum(
    cdx: Paths, *, output: Path, convert: bool = False, **options: Unpack[ClusterArguments]
) -> ClusterResult:
    """Build a ZipNum cluster in the directory `output` from CDX files: files, directories, globs or URLs.

    A corrupt file adds no lines and is in the failures of the result. Raises UsageError for invalid arguments,
    StoppedError if the cluster cannot be written. If `output` has another cluster, `replace` is needed.
    """
    check_names(options, ClusterArguments)
    failures = Failures(printed=False)
    how = _zipnum_options(options, convert)
    folder = local_directory(os.fspath(output))
    done = build_cluster(find_cdx_files(required_paths(cdx), failures), folder, how, failures)
    return _cluster_result(done, failures)


def build(
    inputs: Paths = (), *, output: Path, line_format: str = "cdxj", **options: Unpack[BuildArguments]
) -> ClusterResult:
    """Index archives and build a ZipNum cluster from the indexes, in the directory `output`.

    `inputs` are archives, directories, globs or URLs. The index of each archive is kept in `output`/cdx; the same call
    indexes only what is missing there. Raises as `zipnum` does.
    """
    check_names(options, BuildArguments)
    failures = Failures(printed=False)
    indexing = index_options(line_format, options.get("processes", 0), options)
    how = _zipnum_options(options, convert=False)
    folder = local_directory(os.fspath(output))
    done = build_command.build(find_inputs(inputs, options, failures), folder, indexing, how, failures)
    return _cluster_result(done.cluster, failures)


class PublishArguments(TypedDict, total=False):
    """The options of `cdxmill publish` with these names."""

    location: str | None
    archives: str | None
    title: str | None
    index_only: bool
    unfinished: bool
    replace: bool
    processes: int


def publish(cluster: Path, destination: Path, **options: Unpack[PublishArguments]) -> int:
    """Check `cluster`, copy it to the directory or URL `destination`, and write its index there.

    Returns the number of shards that were copied. The arguments are the options of `cdxmill publish`. Raises
    UsageError if the cluster is not finished, or if the destination has another cluster and `replace` is not given,
    InputError if it is corrupt, StoppedError if it cannot be written.
    """
    check_names(options, PublishArguments)
    how = publish_command.PublishOptions(
        location=options.get("location"),
        archives=options.get("archives"),
        title=options.get("title"),
        index_only=options.get("index_only", False),
        unfinished=options.get("unfinished", False),
        replace=options.get("replace", False),
        processes=process_count(options.get("processes", 0)),
        quiet=True,
    )
    return publish_command.publish(os.fspath(cluster), os.fspath(destination), how).copied


def verify(
    cluster: Path,
    *,
    against: Paths | None = None,
    convert: bool = False,
    archives: Path | None = None,
    sample: int | None = None,
    location: str | None = None,
    processes: int = 0,
) -> VerifyResult:
    """Check that the cluster at a path or URL is complete and that its files match.

    With `against`, its lines must be exactly those of these CDX files. With `archives`, the record of each line is read, or
    of `sample` lines. Everything that is wrong is in the failures of the result. Raises UsageError if there is no cluster.
    """
    if sample is not None and sample < 1:
        raise UsageError("sample must be at least 1 line")
    if convert and against is None:
        raise UsageError("convert needs against")
    failures = Failures(printed=False)
    options = verify_command.VerifyOptions(
        against=None if against is None else find_cdx_files(required_paths(against), failures),
        convert=convert,
        archives=optional_path(archives),
        sample=sample,
        location=location,
        processes=process_count(processes),
        quiet=True,
    )
    done = verify_command.verify(os.fspath(cluster), options, failures)
    return VerifyResult(
        shards=done.shards,
        blocks=done.blocks,
        lines=done.lines,
        bytes=done.size,
        exact=done.exact,
        records=done.records,
        failures=failures.items,
    )


def _zipnum_options(options: ClusterArguments, convert: bool) -> ZipnumOptions:
    """Raises UsageError."""
    points = tuple(read_splits(os.fspath(options["splits"]))) if "splits" in options else None
    shards = options.get("shards", 1) if points is None else len(points) + 1
    if shards < 1 or options.get("shards", shards) != shards:
        raise UsageError("`shards` must be at least 1, and match `splits`")
    defaults = ZipnumOptions()
    try:
        compressor = checked_compressor(
            options.get("compressor", "libdeflate"), options.get("level", DEFAULT_LEVEL)
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    return ZipnumOptions(
        shards=shards if points is not None or "shards" in options else 0,
        points=points,
        block_lines=options.get("numlines", defaults.block_lines),
        compressor=compressor,
        convert=convert,
        seed=options.get("seed", 0),
        processes=process_count(options.get("processes", 0)),
        location=options.get("location"),
        replace=options.get("replace", False),
        quiet=True,
    )


def _cluster_result(done: ClusterSummary, failures: Failures) -> ClusterResult:
    return ClusterResult(
        shards=done.shards,
        blocks=done.blocks,
        lines=done.lines,
        duplicates=done.duplicates,
        bytes=done.bytes,
        failures=failures.items,
    )
