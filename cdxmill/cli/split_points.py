"""`cdxmill split-points`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cdxmill.cli.command import Printing, command, print_summary
from cdxmill.errors import OK
from cdxmill.options.clusters import ShardCount, SplitsOutput
from cdxmill.options.option import Option, Replace


@dataclass(kw_only=True, repr=False, eq=False)
class SplitPointsArguments(Printing):
    """The command line of `split-points`."""

    from_cluster: Annotated[
        str,
        Option(metavar="CLUSTER", help="ZipNum cluster: directory or URL. Only its secondary index is read."),
    ]
    output: Annotated[str, SplitsOutput]
    shards: ShardCount
    replace: Replace = False


@command
def split_points(arguments: SplitPointsArguments) -> int:
    """Find split points in the index of a cluster.

    Use the cluster of an earlier crawl to divide the next one. Blocks are weighted by their number of lines, so
    the shards get about the same size. No CDX file is read. It writes the same two files as cdxmill
    sample.

    Examples:
        cdxmill split-points --from-cluster cluster -s 4 -o next-splits.txt
    """
    from cdxmill.cluster.split_files import check_splits_absent, write_splits
    from cdxmill.commands.clusters.split_points import points_of_cluster

    if not arguments.replace:
        check_splits_absent(arguments.output)
    found = points_of_cluster(arguments.from_cluster, arguments.shards)
    write_splits(found.points, arguments.output)
    print_summary(found, quiet=arguments.quiet)
    return OK
