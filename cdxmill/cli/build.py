"""`cdxmill build`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass

from cdxmill.cli.arguments import ArchiveArguments, ClusterArguments, LineArguments
from cdxmill.cli.command import command
from cdxmill.cli.output import print_summary
from cdxmill.errors import FAILED, OK, UsageError


@dataclass(frozen=True, kw_only=True)
class BuildArguments(LineArguments, ClusterArguments, ArchiveArguments):
    """The command line of `build`."""


@command
def build(arguments: BuildArguments) -> int:
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
    from cdxmill.outputs.existing import Rule
    from cdxmill.running.failures import Failures

    if "-" in (arguments.inputs or []):
        raise UsageError(
            "build cannot read an archive from a pipe; save it to a file, so that it can be replayed"
        )
    failures = Failures()
    archives = arguments.archives(failures)
    index_options = arguments.index_options(Rule.RENEW)
    options = arguments.zipnum_options(convert=False)
    with arguments.open_engine() as engine:
        if engine is None:
            summary = build_all(archives, arguments.local_output(), index_options, options, failures)
        else:
            from cdxmill.spark.build import build_on_spark

            place = arguments.output
            summary = build_on_spark(engine, archives, place, index_options, options, failures)
    print_summary(summary.report(failures, arguments.output), quiet=arguments.quiet)
    return FAILED if failures.count else OK
