"""`cdxmill publish`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cdxmill.cli.arguments import Replace, RunArguments
from cdxmill.cli.command import Argument, Option, command
from cdxmill.cli.output import print_summary
from cdxmill.errors import OK


@dataclass(frozen=True, kw_only=True)
class PublishArguments(RunArguments):
    """The command line of `publish`."""

    cluster: Annotated[str, Argument(metavar="CLUSTER", help="ZipNum cluster: directory, s3 or hdfs URL.")]
    dest: Annotated[
        str,
        Argument(
            metavar="DEST",
            help="Directory, s3 or hdfs URL to copy to. If it is CLUSTER, only the files beside the shards are written.",
        ),
    ]
    location: Annotated[
        str | None,
        Option(
            "--location",
            metavar="BASE",
            help="Directory or URL of the shards to write to cluster.loc. Default: DEST; with --index-only,"
            " CLUSTER.",
        ),
    ] = None
    archives: Annotated[
        str | None,
        Option(
            "--archives",
            metavar="LOCATION",
            help="Write these places of the archives to archives.tsv: a directory, a URL prefix, or a path index."
            " Default: those in CLUSTER; if DEST is a URL, only those that are URLs.",
        ),
    ] = None
    title: Annotated[
        str | None,
        Option(
            metavar="TEXT",
            help="Title of the collection in metadata.yaml. Default: the existing title, or the name of the"
            " directory.",
        ),
    ] = None
    index_only: Annotated[
        bool, Option("--index-only", help="Copy everything except the shards, which stay in CLUSTER.")
    ] = False
    unfinished: Annotated[
        bool,
        Option("--unfinished", help="Accept a cluster without cluster.json; use every shard found."),
    ] = False
    replace: Replace = False


@command
def publish(arguments: PublishArguments) -> int:
    """Check a cluster and copy it to where it is served from.

    CLUSTER is the output of zipnum, build or a Hadoop job. Shards and parts must match cluster.json and must be
    sorted; otherwise nothing is copied. cdxmill copies shards and parts to DEST and writes cluster.idx with line
    numbers, cluster.summary, cluster.loc, archives.tsv (if CLUSTER has it), metadata.yaml and, last, cluster.json. If the directory DEST is named
    indexes, metadata.yaml goes to its parent directory.

    If you run it again, only missing or changed shards are copied. If DEST has another cluster, nothing is done
    without --replace. The new cluster is written beside the old one, and takes its place when it is complete.
    On S3, there is no cluster at DEST while its files are moved there.

    Examples:
        cdxmill publish cluster collections/web/indexes
    """
    from cdxmill.commands.clusters.publish import PublishOptions
    from cdxmill.commands.clusters.publish import publish as publish_cluster

    options = PublishOptions(
        location=arguments.location,
        archives=arguments.archives,
        title=arguments.title,
        index_only=arguments.index_only,
        unfinished=arguments.unfinished,
        replace=arguments.replace,
        processes=arguments.process_count(),
        quiet=arguments.quiet,
    )
    summary = publish_cluster(arguments.cluster, arguments.dest, options)
    print_summary(f"{arguments.dest}: {summary}", quiet=arguments.quiet)
    return OK
