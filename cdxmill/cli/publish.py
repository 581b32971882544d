"""`cdxmill publish`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass

from cdxmill.cli.command import Printing, command, print_summary
from cdxmill.errors import OK
from cdxmill.options.clusters import Publishing


@dataclass(kw_only=True, repr=False, eq=False)
class PublishArguments(Printing, Publishing):
    """The command line of `publish`."""


@command
def publish(arguments: PublishArguments) -> int:
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

    summary = publish_cluster(str(arguments.cluster), str(arguments.destination), arguments)
    print_summary(f"{arguments.destination}: {summary}", quiet=arguments.quiet)
    return OK
