"""`cdxmill build`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass

from cdxmill.cli.command import EngineOptions, Printing, check_no_pipe, command, print_summary
from cdxmill.errors import FAILED, OK
from cdxmill.options.clusters import Building
from cdxmill.options.option import path_list


@dataclass(kw_only=True, repr=False, eq=False)
class BuildArguments(Printing, Building, EngineOptions):
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
    from dataclasses import replace

    from cdxmill.commands.clusters.build import build as build_all
    from cdxmill.commands.clusters.zipnum import output_place, zipnum_options
    from cdxmill.commands.per_archive.index import index_options
    from cdxmill.inputs.archives import find_archives
    from cdxmill.outputs.existing import Rule
    from cdxmill.running.failures import Failures

    check_no_pipe(
        path_list(arguments.inputs),
        "build cannot read an archive from a pipe; save it to a file, so that it can be replayed",
    )
    failures = Failures()
    archives = find_archives(arguments, failures)
    indexing = index_options(arguments, Rule.RENEW)
    place = output_place(arguments, is_local=arguments.engine == "local")
    options = zipnum_options(arguments)
    with arguments.open_engine(arguments.processes, quiet=arguments.quiet) as engine:
        if engine is not None:
            from cdxmill.spark.jobs import IndexRunner, Maker

            indexing, options = (
                replace(indexing, run=IndexRunner(engine)),
                replace(options, make=Maker(engine)),
            )
        summary = build_all(archives, place, indexing, options, failures)
    print_summary(summary.report(failures, place), quiet=arguments.quiet)
    return FAILED if failures.count else OK
