"""`build` and `zipnum` on Spark: to a directory that all nodes share, or to an s3 or hdfs URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cdxmill.cluster.locations import local_directory
from cdxmill.commands.clusters.build import BuildSummary, build
from cdxmill.commands.clusters.zipnum import ClusterSummary, ZipnumOptions, build_cluster
from cdxmill.commands.per_archive.index_one import IndexOptions
from cdxmill.inputs.named import Input
from cdxmill.running.failures import Failures
from cdxmill.spark.engine import Engine
from cdxmill.spark.index import IndexRunner
from cdxmill.spark.remote import build_at, build_cluster_at
from cdxmill.spark.zipnum import Maker
from cdxmill.storage.choose import PathOrUrl, is_remote


def build_on_spark(
    engine: Engine,
    archives: Sequence[Input],
    place: PathOrUrl,
    index_options: IndexOptions,
    zipnum_options: ZipnumOptions,
    failures: Failures,
) -> BuildSummary:
    """Build the cluster of archives in a folder or at a URL: see `commands.build.build`."""
    index_options = replace(index_options, run=IndexRunner(engine))
    zipnum_options = replace(zipnum_options, make=Maker(engine))
    if is_remote(str(place)):
        return build_at(archives, str(place), index_options, zipnum_options, failures)
    return build(archives, local_directory(str(place)), index_options, zipnum_options, failures)


def zipnum_on_spark(
    engine: Engine,
    paths: Sequence[str],
    place: PathOrUrl,
    options: ZipnumOptions,
    failures: Failures,
    scratch: str = "",
) -> ClusterSummary:
    """Build the cluster of CDX files in a folder or at a URL: see `commands.zipnum.build_cluster`.

    `scratch` is a folder of the nodes for temporary files.
    """
    options = replace(options, make=Maker(engine, scratch))
    if is_remote(str(place)):
        return build_cluster_at(paths, str(place), options, failures)
    return build_cluster(paths, Path(local_directory(str(place))), options, failures)
