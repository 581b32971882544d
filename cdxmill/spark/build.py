"""`build` and `zipnum` on Spark: to a directory that all nodes share, or to an s3 or hdfs URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdxmill.cluster.locations import local_directory
from cdxmill.commands.clusters.build import BuildSummary, build
from cdxmill.commands.clusters.zipnum import ClusterSummary, ZipnumOptions, build_cluster
from cdxmill.commands.per_archive.index_one import IndexOptions
from cdxmill.inputs.named import Input
from cdxmill.running.failures import Failures
from cdxmill.spark.engine import Engine
from cdxmill.spark.index import IndexRunner
from cdxmill.spark.zipnum import Maker
from cdxmill.storage.location import PathOrUrl, locate


def build_on_spark(
    engine: Engine,
    archives: Sequence[Input],
    place: PathOrUrl,
    index_options: IndexOptions,
    zipnum_options: ZipnumOptions,
    failures: Failures,
) -> BuildSummary:
    """Build the cluster of archives in a directory or at a URL: see `commands.build.build`."""
    index_options = replace(index_options, run=IndexRunner(engine))
    zipnum_options = replace(zipnum_options, make=Maker(engine))
    return build(archives, _directory(place), index_options, zipnum_options, failures)


def zipnum_on_spark(
    engine: Engine,
    paths: Sequence[str],
    place: PathOrUrl,
    options: ZipnumOptions,
    failures: Failures,
    scratch: str = "",
) -> ClusterSummary:
    """Build the cluster of CDX files in a directory or at a URL: see `commands.zipnum.build_cluster`.

    `scratch` is a directory of the nodes for temporary files.
    """
    options = replace(options, make=Maker(engine, scratch))
    return build_cluster(paths, _directory(place), options, failures)


def _directory(place: PathOrUrl) -> PathOrUrl:
    return place if locate(place).is_remote else local_directory(str(place))
