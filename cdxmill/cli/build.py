"""`cdxmill build`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass

from cdxmill.cli.arguments import ArchiveArguments, ClusterArguments, LineArguments
from cdxmill.cli.command import command
from cdxmill.cli.output import FAILED, OK, print_summary


@dataclass(frozen=True, kw_only=True)
class BuildArguments(LineArguments, ClusterArguments, ArchiveArguments):
    """The command line of `build`."""


@command
def build(arguments: BuildArguments) -> int:
    """Index archives and build a ZipNum cluster.

    This is `cdxmill index` followed by `cdxmill zipnum`. INPUT is an archive, directory, glob or URL (http,
    https, s3, hdfs). The index of each archive is kept in CLUSTER/cdx. If you run it again,
    only archives without an index are indexed.
    """
    from cdxmill.commands.build import build as build_all
    from cdxmill.running.failures import Failures

    failures = Failures()
    summary = build_all(
        arguments.archives(failures),
        arguments.output,
        arguments.index_options(skip_existing=False),
        arguments.zipnum_options(convert=False),
        failures,
    )
    print_summary(summary.report(failures, arguments.output), quiet=arguments.quiet)
    return FAILED if failures.count else OK
