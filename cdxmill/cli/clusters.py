"""The commands that make, copy, check and serve clusters: their help and the calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cdxmill.cli.command import open_engine
from cdxmill.errors import OK, UsageError
from cdxmill.messages import say
from cdxmill.options.clusters import (
    SPLITS_OUTPUT,
    Building,
    Publishing,
    Sampling,
    Serving,
    Verifying,
    Zipnum,
)
from cdxmill.options.option import REPLACE, Quiet, check_no_pipe, option, path_list

if TYPE_CHECKING:
    from cdxmill.commands.collections.watch import WatchedDirectory
    from cdxmill.running.failures import Failures


def build(arguments: Building, failures: Failures) -> str:
    """Index archives and build a ZipNum cluster.

    This is `cdxmill index` followed by `cdxmill zipnum`. INPUT is an archive, WACZ, directory, glob or URL (http,
    https, s3, hdfs). The index of each archive is kept in CLUSTER/cdx. If it was stopped, run it again:
    only archives without an index are indexed. If CLUSTER is already the cluster of these archives, nothing is done.
    If it is another cluster, --replace builds the new one beside it and switches at the end.

    With --engine spark, the work is done by Apache Spark.

    Examples:
        cdxmill build -o crawl warcs/
    """
    from cdxmill.commands.clusters.build import build as build_all
    from cdxmill.commands.clusters.zipnum import output_place, zipnum_options
    from cdxmill.commands.per_archive.index import index_options
    from cdxmill.inputs.archives import find_archives, open_here
    from cdxmill.outputs.existing import Rule

    check_no_pipe(
        arguments.inputs,
        "build cannot read an archive from a pipe; save it to a file, so that it can be replayed",
    )
    indexing = index_options(arguments, Rule.RENEW)
    place = output_place(arguments, is_local=arguments.engine == "local")
    options = zipnum_options(arguments)
    with open_engine(arguments) as spark:
        archives = find_archives(arguments, failures, open_all=open_here if spark is None else spark.open_all)
        if spark is not None:
            indexing, options = (
                replace(indexing, run=spark.run),
                replace(options, make=spark.make, is_far=True),
            )
        return build_all(archives, place, indexing, options, failures).report(failures, place)


def zipnum(arguments: Zipnum, failures: Failures) -> str:
    """Build a ZipNum cluster from CDX files.

    CDX is a file, directory, glob or URL. Files may be gzipped or plain, sorted or not. All files must have the
    same format: CDXJ, or CDX with the same number of fields. The cluster contains every distinct line once, in
    sorted order, in shards of gzip blocks with a secondary index. A corrupt file adds no lines, is reported,
    and does not affect other files.

    If CLUSTER is already the cluster of these files, nothing is done. If it is another cluster, --replace builds
    the new one beside it and switches at the end.

    Examples:
        cdxmill zipnum -o cluster cdx/
        cdxmill zipnum -o cluster-4 --splits splits.txt cdx/
        zcat cdx/*.gz | cdxmill zipnum -o cluster-1 -s 1 -
    """
    from cdxmill.commands.clusters.next_step import next_lookup
    from cdxmill.commands.clusters.zipnum import build_cluster, output_place, zipnum_options
    from cdxmill.inputs.cdx_files import find_cdx_files
    from cdxmill.inputs.pipes import Pipes

    place = output_place(arguments, is_local=arguments.engine == "local")
    options = zipnum_options(arguments, convert=arguments.convert)
    with Pipes(failures, quiet=arguments.quiet) as pipes:
        paths = find_cdx_files(path_list(arguments.cdx), failures, pipes)
        with open_engine(arguments) as spark:
            options = replace(options, make=spark and spark.make, is_far=spark is not None)
            summary = build_cluster(paths, place, options, failures)
    step = next_lookup(str(place)) if summary.new and not arguments.quiet else ""
    return f"{place}: {summary}\n{step}".rstrip("\n")


class SampleArguments(Sampling):
    """The command line of `sample`."""

    output: str = option(*SPLITS_OUTPUT)


def sample(arguments: SampleArguments, failures: Failures) -> str:
    """Find split points in a random sample of CDX lines.

    CDX is a file, directory, glob or URL. Files may be gzipped or plain, sorted or not. The sample is taken in
    one pass. Every line has the same chance to be picked, in small and large files. The split points divide the
    lines into shards of about the same size. They are written twice: as text, one `<urlkey> <timestamp>` per
    line, and as a Hadoop SequenceFile, whose name ends in .seq.

    --fraction skips whole files. Use it if each file contains URLs of all kinds, as the index of an archive
    does. Do not use it if each file contains a range of keys, as a shard does.

    Examples:
        cdxmill sample -s 4 -o splits.txt cdx/
    """
    from cdxmill.commands.sample import sample as sample_lines
    from cdxmill.inputs.pipes import Pipes

    with Pipes(failures, quiet=arguments.quiet) as pipes:
        sample_lines(arguments, failures, pipes)
    return ""


class SplitPointsArguments(Quiet):
    """The command line of `split-points`."""

    from_cluster: str = option(
        "--from-cluster CLUSTER", "ZipNum cluster: directory or URL. Only its secondary index is read."
    )
    output: str = option(*SPLITS_OUTPUT)
    shards: int = option("--shards -s", "Number of shards.", min=1)
    replace: bool = REPLACE


def split_points(arguments: SplitPointsArguments, failures: Failures) -> str:
    """Find split points in the index of a cluster.

    Use the cluster of an earlier crawl to divide the next one. Blocks are weighted by their number of lines, so
    the shards get about the same size. No CDX file is read. It writes the same two files as cdxmill
    sample.

    Examples:
        cdxmill split-points --from-cluster cluster -s 4 -o next-splits.txt
    """
    from cdxmill.commands.clusters.split_points import split_cluster

    return str(
        split_cluster(
            arguments.from_cluster, arguments.shards, arguments.output, ".txt", replace=arguments.replace
        )
    )


def publish(arguments: Publishing, failures: Failures) -> str:
    """Check a cluster and copy it to where it is served from.

    CLUSTER is the output of zipnum, build or a Hadoop job. Shards and parts must match cluster.json and must be
    sorted; otherwise publish stops, and DEST gets no index. cdxmill copies shards and parts to DEST and writes cluster.idx with line
    numbers, cluster.summary, cluster.loc, archives.tsv (if CLUSTER has it), metadata.yaml and, last, cluster.json. If the directory DEST is named
    indexes, metadata.yaml goes to its parent directory.

    If you run it again, only missing or changed shards are copied. If DEST has another cluster, nothing is done
    without --replace. The new cluster is written beside the old one, and takes its place when it is complete.
    On S3, there is no cluster at DEST while its files are moved there.

    Examples:
        cdxmill publish cluster collections/web/indexes
    """
    from cdxmill.commands.clusters.publish import publish as publish_cluster

    return f"{arguments.destination}: {publish_cluster(arguments)}"


def verify(arguments: Verifying, failures: Failures) -> str:
    """Check a cluster for errors, or compare archives.

    CLUSTER may be built by cdxmill or by another tool. With its cluster.json, every changed byte is
    detected. Without it, corrupt blocks, wrong offsets and a wrong order are detected, but missing shards or
    blocks may not be: nothing proves that the cluster is complete. Errors are reported on stderr, one per
    line. With --against CDX the cluster must contain exactly the lines of these files.

    NEW is an archive that recompress made of CLUSTER, which is then an archive, too; or both are directories of them.
    cdxmill reads both and compares them record by record, and checks the digests in the records. If the proof that
    recompress wrote is beside the new archive, both files must also have the SHA-256 that it names.

    Examples:
        cdxmill verify cluster
        cdxmill verify cluster --against cdx/
    """
    from cdxmill.commands.clusters.verify import verify as verify_cluster

    if len(arguments.more) == 1 and arguments.against is None:
        return _verify_archives(arguments, failures)
    if arguments.more and arguments.against is None:
        raise UsageError(
            f"{arguments.more[1]}: unexpected argument; verify takes one cluster (see --against) or two archives"
        )
    if arguments.against is not None:
        arguments.against = [*path_list(arguments.against), *arguments.more]
    return f"{arguments.cluster}: {verify_cluster(arguments, failures)}"


def _verify_archives(arguments: Verifying, failures: Failures) -> str:
    from cdxmill.commands.per_archive.verify_archives import verify_archives
    from cdxmill.options.packing import Comparing

    (new,) = arguments.more
    asked = Comparing(
        arguments.cluster,
        new,
        any_digest=arguments.any_digest,
        dictionary=arguments.dictionary,
        processes=arguments.processes,
    )
    asked.quiet = arguments.quiet
    return f"{new}: {verify_archives(asked, failures)}"


def serve(arguments: Serving) -> int:
    """Show the archived pages of CLUSTER in a browser, with pywb.

    cdxmill writes the configuration of pywb to a temporary directory and starts pywb's command wayback. It prints
    the address of a page to open. Ctrl-C stops the server. pywb must be installed: pip install './cdxmill[serve]', with a checkout in ./cdxmill.

    With --watch, archives that appear in DIR are indexed and added to CLUSTER while it is served. A file is added when its
    size and time have not changed for some seconds. Damaged archives are reported once, and again after they change.

    Examples:
        cdxmill serve crawl
        cdxmill serve crawl --watch warcs/
        cdxmill serve crawl --config-only pywb
    """
    from cdxmill.commands.clusters.serve import serve as serve_cluster
    from cdxmill.commands.clusters.serve import write_config

    if arguments.config_only is None:
        return serve_cluster(arguments, _watch(arguments))
    path = write_config(arguments, arguments.config_only)
    say(f"{path}: written; start pywb: wayback -d {path.parent} -b {arguments.bind} -p {arguments.port}")
    return OK


def _watch(asked: Serving) -> WatchedDirectory | None:
    if asked.watch is None:
        return None
    from cdxmill.commands.collections.watch import WatchedDirectory

    return WatchedDirectory(asked.cluster, asked.watch, asked.settle, asked.processes)
