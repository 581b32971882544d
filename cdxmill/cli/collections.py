"""The commands that change a cluster, or make one of several: their help and the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdxmill.cli.command import open_engine, standard_output
from cdxmill.errors import UsageError
from cdxmill.options.collections import Adding, Compacting, Merging, Removing
from cdxmill.options.option import check_no_pipe

if TYPE_CHECKING:
    from cdxmill.commands.collections.summary import ChangeSummary
    from cdxmill.running.failures import Failures


def add(arguments: Adding, failures: Failures) -> str:
    """Add archives to a cluster while it is served.

    INPUT is an archive, WACZ, directory, glob or URL; with --cdx a CDX file or another cluster. Only blocks of CLUSTER whose range
    gets new lines are written again; the others are copied as they are, and shards that get none are not touched. Lines
    that the cluster has already are not added again. An archive that is in the cluster under another name, or another
    archive of the same name, is reported and not added. Captures in CLUSTER/exclude.txt are skipped.

    If most blocks of a cluster with 50 million lines would change, the new lines become an overlay: a file of their own in CLUSTER,
    which all commands read with the shards, and pywb by the configuration of cdxmill serve. --mode decides otherwise. With more than
    7 such overlays, CLUSTER is compacted.

    With --cdx, blocks of another cluster between whose lines CLUSTER has none are copied as they are, and archives.tsv gets
    its archives. With --engine spark, Apache Spark does this, one task for each shard that gets lines.

    Readers see all of the old lines or all of the new ones. If it is stopped, the cluster stays as it was.

    Examples:
        cdxmill add crawl warcs/
        cdxmill add crawl --cdx cdx/
    """
    from cdxmill.commands.collections.add import add as add_all

    check_no_pipe(arguments.inputs, "add cannot read from a pipe; save it to a file")
    if arguments.engine != "local" and not arguments.cdx:
        raise UsageError(
            "--engine spark adds clusters: run cdxmill build --engine spark, and add --cdx its cluster"
        )
    with open_engine(arguments) as spark:
        summary = add_all(arguments, failures, engine=spark and spark.tasks)
    return _told(summary, arguments.cluster, failures)


def remove(arguments: Removing, failures: Failures) -> str:
    """Remove captures from a cluster, while it is served.

    QUERY is a URL, as lookup takes it: example.com alone, example.com/* with all its pages, *.example.com with its
    subdomains. With --archives, --from or --to, only such captures are removed. --dry-run prints what would go.

    The lines are removed from CLUSTER and from the disk: at the end, shards that were kept for readers are deleted, and also the CDX files in
    CLUSTER/cdx that have removed lines. CLUSTER/changes.jsonl says what was removed, and when. The
    archives are not changed.

    Examples:
        cdxmill remove crawl 'example.com/private/*' --dry-run
        cdxmill remove crawl '*.example.org' --exclude --keep-old 0
    """
    from cdxmill.commands.collections.remove import remove as remove_all

    if not arguments.dry_run:
        return _told(remove_all(arguments, failures), arguments.cluster, failures)
    with standard_output() as out:
        summary = remove_all(arguments, failures, out.write)
    return f"{arguments.cluster}: {summary.counts.removed:,} lines would be removed"


def compact(arguments: Compacting, failures: Failures) -> str:
    """Write the changed shards of a cluster again, with full blocks.

    add and remove leave blocks of unequal length, and overlays, whose lines move to the shards. After compact, the shards of CLUSTER have the bytes that a build of the same lines
    with the same split points gives them. add says when it is worth it: when there are more than 5 blocks where 4 would do.

    Examples:
        cdxmill compact crawl
    """
    from cdxmill.commands.collections.compact import compact as compact_all

    return _told(compact_all(arguments, failures), arguments.cluster, failures)


def merge(arguments: Merging, failures: Failures) -> str:
    """Make one cluster of several.

    CLUSTER may be built by cdxmill or by another tool; its shards are sorted, so nothing is sorted again. Equal lines are
    taken once. If all clusters have the same split points, the new one has them, too. Blocks between whose lines no other
    cluster has any are copied, if all clusters have the lines per block and the compressor of the options. Run compact
    afterwards to get full blocks.

    Examples:
        cdxmill merge -o all crawl cluster
    """
    from cdxmill.commands.collections.merge import merge as merge_all

    return f"{arguments.output}: {merge_all(arguments, failures)}"


def _told(summary: ChangeSummary, cluster: object, failures: Failures) -> str:
    from cdxmill.commands.collections.summary import advice

    if text := advice(summary, cluster):
        failures.note(text)
    return f"{cluster}: {summary}"
