"""What the launcher of zipnumclusterjob.py does on Hadoop: checks, the step, and the files beside the shards."""

from __future__ import annotations

import fnmatch
import json
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from mrjob.hadoop import fully_qualify_hdfs_path

from cdxmill.cluster.write import write_cluster_files
from cdxmill.commands.summaries import tell_cluster
from cdxmill.commands.zipnum import ClusterSummary, ZipnumOptions
from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.cluster_manifest import ShardEntry
from cdxmill.formats.split_points import format_partition_file, format_text
from cdxmill.formats.zipnum_index import INDEX, LOCATIONS, MANIFEST, SUMMARY, part_name, shard_name
from cdxmill.jobs.node_tasks import REPORT, SPLITS, ReducedShard
from cdxmill.jobs.on_hadoop import HadoopStep, is_url
from cdxmill.jobs.remote_folder import RemoteFolder, folder_of

_OURS = (
    "cdx-*.gz",
    "part-*",
    f"{REPORT}*",
    ".cdx-*.tmp",
    ".part-*.tmp",
    "_temporary",
    "_SUCCESS",
    "splits.*",
)
_OURS_TOO = (INDEX, SUMMARY, LOCATIONS)
_SETTINGS = {
    "stream.map.input.ignoreKey": "true",
    "stream.map.output": "rawbytes",
    "stream.reduce.input": "rawbytes",
    "textinputformat.record.delimiter": "\n",  # a CR ends no line
    "mapreduce.input.fileinputformat.input.dir.recursive": "true",
}
_DEFAULTS = {
    "mapreduce.input.fileinputformat.split.maxsize": str(128 << 20),
    "mapreduce.job.reduce.slowstart.completedmaps": "0.9",
}
_PARTITIONER = "org.apache.hadoop.mapred.lib.TotalOrderPartitioner"


def cluster_url(options: Namespace, runner: Any) -> str:
    """Where the cluster goes; a path is one of Hadoop's own file system."""
    named: str = options.zipnum_dir or options.output_dir
    if not is_url(named) and runner.alias == "emr":
        raise UsageError(f"--zipnum-dir {named}: on EMR the cluster goes to s3://BUCKET/FOLDER")
    return (named if is_url(named) else str(fully_qualify_hdfs_path(named))).rstrip("/")


def clear(folder: RemoteFolder) -> None:
    """Delete what a failed run left in `folder`. Raises UsageError where something else is in it."""
    names = folder.names()
    if MANIFEST in names:
        raise UsageError(f"{folder.url} holds a finished cluster: name another folder, or delete it")
    other = [name for name in names if not _is_ours(name)]
    if other:
        raise UsageError(f"{folder.url} holds other files ({other[0]}): name an empty folder, or a new one")
    folder.empty(names)


def _is_ours(name: str) -> bool:
    return name in _OURS_TOO or any(fnmatch.fnmatchcase(name, pattern) for pattern in _OURS)


def make_step(
    options: Namespace, how: ZipnumOptions, url: str, folder: Path, inputs: list[str]
) -> HadoopStep:
    """The step that sorts lines to `how.shards` reducers; `folder` is for files of the launcher."""
    splits, partitions = folder / SPLITS, folder / "partitions.seq"
    splits.write_bytes(format_text(how.points or ()))
    partitions.write_bytes(format_partition_file(how.points or ()))
    packer = ["--compressor", how.compressor.library, "--level", str(how.compressor.level)]
    task = ["shard", "--cluster", url, "--numlines", str(how.block_lines), *packer]
    return HadoopStep(
        inputs=inputs,
        mapper=["chunks", "--compressor", how.compressor.library],
        reducer=task + (["--convert"] if how.convert else []),
        settings={**_SETTINGS, "mapreduce.job.reduces": str(how.shards)},
        defaults=_DEFAULTS,
        input_format="org.apache.hadoop.mapred.lib.CombineTextInputFormat",
        output_format="org.apache.hadoop.mapred.lib.NullOutputFormat",
        partitioner=_PARTITIONER if how.shards > 1 else None,
        output_dir=None if url.startswith("file:") else url,
        files={SPLITS: splits},
        shared={"mapreduce.totalorderpartitioner.path": partitions},
    )


def finish(options: Namespace, how: ZipnumOptions, url: str, runner: Any) -> None:
    """Write the files beside the shards, the manifest last."""
    cluster = folder_of(url, runner)
    with tempfile.TemporaryDirectory(prefix="cdxmill-") as name:
        folder = Path(name)
        cluster.get(["part-*", f"{REPORT}*"], folder)
        reports = sorted(_reports(folder))
        _check(reports, how, url)
        entries = [report.entry for report in reports]
        write_cluster_files(
            folder, entries, how.points or (), how.compressor, how.block_lines, how.location or url
        )
        parts = [folder / part_name(number) for number in range(how.shards)]
        beside = [folder / name for name in (INDEX, SUMMARY, LOCATIONS, "splits.txt", "splits.seq")]
        cluster.put(beside)
        if options.zipnum_dir and options.output_dir and not is_same(options, runner):
            output = folder_of(output_url(options, runner), runner)
            output.make()
            output.put(parts)
        cluster.remove([*(f"{REPORT}{number:05d}" for number in range(how.shards)), *_left_behind(cluster)])
        cluster.put([folder / MANIFEST])
    lines, blocks = sum(entry.lines for entry in entries), sum(entry.blocks for entry in entries)
    doubles, size = sum(report.duplicates for report in reports), sum(entry.bytes for entry in entries)
    tell_cluster(ClusterSummary(len(entries), lines, blocks, doubles, size, 0), url, options.quiet)


def _left_behind(cluster: RemoteFolder) -> list[str]:
    """What attempts that were killed left in a folder that machines share; Hadoop clears its own."""
    return (
        [name for name in cluster.names() if name.endswith(".tmp")] if cluster.url.startswith("file:") else []
    )


def output_url(options: Namespace, runner: Any) -> str:
    """Where the parts go besides."""
    named: str = options.output_dir
    return (named if is_url(named) else str(fully_qualify_hdfs_path(named))).rstrip("/")


def is_same(options: Namespace, runner: Any) -> bool:
    """Whether parts and shards go to one folder."""
    return output_url(options, runner) == cluster_url(options, runner)


def _reports(folder: Path) -> list[ReducedShard]:
    rows = [json.loads(path.read_bytes()) for path in folder.glob(f"{REPORT}*")]
    return [ReducedShard(**{**row, "entry": ShardEntry(**row["entry"])}) for row in rows]


def _check(reports: list[ReducedShard], how: ZipnumOptions, url: str) -> None:
    names = [report.entry.name for report in reports]
    if names != [shard_name(number) for number in range(how.shards)]:
        raise StoppedError(f"{url}: {len(reports)} of {how.shards} shards came out; run it again")
    versions = {report.compressor for report in reports}
    if versions != {how.compressor.version()}:
        raise StoppedError(
            f"{url}: shards were packed by {', '.join(sorted(versions))}, not by {how.compressor.version()} as here; "
            f"run it with --compressor libdeflate, or with the same library on all machines"
        )
