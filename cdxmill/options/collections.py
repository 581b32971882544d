"""Options of commands that change a cluster."""

from collections.abc import Iterable
from typing import Any

from cdxmill.options.archives import LineOptions
from cdxmill.options.clusters import ClusterOptions, ClusterOutput
from cdxmill.options.option import (
    AnyPath,
    EngineOptions,
    Excludes,
    Needs,
    Options,
    Paths,
    Running,
    argument,
    option,
)
from cdxmill.options.queries import MATCH_TYPES

_LINES = ("queries", "keys", "archives", "from_ts", "to")
OVERLAY, REWRITE = "overlay", "rewrite"
KEEP_OLD: Any = option(
    "--keep-old N",
    "Seconds for which shards that were replaced stay for readers that have opened the cluster before.",
    default=60,
    min=0,
)

AGAIN: Any = option(
    "--again",
    "Also add an archive whose records the cluster has already from an archive of another name.",
    default=False,
)


class ChangedCluster(Options):
    """Which cluster is changed."""

    cluster: AnyPath = argument("CLUSTER", "ZipNum cluster: directory, s3 or hdfs URL.", kw_only=False)


class Adding(LineOptions, EngineOptions, ChangedCluster):
    """The arguments of `add`."""

    cdx: bool = option(
        "--cdx", "INPUT is a CDX file, a directory with CDX files, or a cluster.", default=False
    )
    again: bool = AGAIN
    mode: str | None = option(
        "--mode MODE",
        "overlay: write the new lines to a file of their own in CLUSTER, which is fast. rewrite: write the shards that change."
        " Default: rewrite, unless CLUSTER has 50 million lines and more than half of its blocks would change.",
        default=None,
        choices=(OVERLAY, REWRITE),
    )
    keep_old: int = KEEP_OLD


class Removing(Running, ChangedCluster):
    """The arguments of `remove`."""

    queries: str | Iterable[str] = argument(
        "QUERY...",
        "URLs whose captures are removed. URL* matches all URLs that start with URL, *.HOST a domain with its subdomains.",
        default=(),
        kw_only=False,
    )
    match_type: str | None = option(
        "--match-type --matchType TYPE",
        "exact, prefix, host, domain or range, for all of QUERY. Default: exact, unless QUERY contains a *.",
        Needs("queries"),
        default=None,
        choices=MATCH_TYPES,
    )
    keys: AnyPath | None = option(
        "--keys FILE",
        "Also remove the captures with the keys in this file or URL, one per line: com,example)/page, which may be"
        " followed by a space and a timestamp.",
        default=None,
    )
    archives: AnyPath | None = option(
        "--archives FILE",
        "Remove only captures of the archives in this file or URL, one file name per line, as index lines have them."
        " Without QUERY and --keys: all of them.",
        default=None,
    )
    from_ts: str | None = option(
        "--from TIME", "Remove only captures from TIME on, 1 to 14 digits, such as 2014.", default=None
    )
    to: str | None = option(
        "--to TIME", "Remove only captures up to TIME. 2014 includes all of that year.", default=None
    )
    exclude: bool = option(
        "--exclude",
        "Also write QUERY to CLUSTER/exclude.txt: add and build skip these captures from now on.",
        Needs("queries"),
        Excludes("keys", "archives", "from_ts", "to", "dry_run"),
        default=False,
    )
    dry_run: bool = option(
        "--dry-run -n", "Change nothing. Print the lines that would be removed.", default=False
    )
    keep_old: int = KEEP_OLD


class Compacting(Running, ChangedCluster):
    """The arguments of `compact`."""

    keep_old: int = KEEP_OLD


class Merging(ClusterOptions, ClusterOutput):
    """The arguments of `merge`."""

    clusters: Paths = argument("CLUSTER...", "ZipNum clusters: directories or URLs.", kw_only=False)
