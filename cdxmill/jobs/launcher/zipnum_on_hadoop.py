"""What the launcher of zipnumclusterjob.py does on Hadoop: checks, where it builds, the step, the files beside the shards, the switch.

Under Hadoop's own file systems and keys, which cdxmill.storage does not have, nothing can be switched. There, the old
cluster is deleted before the job.
"""

from __future__ import annotations

import fnmatch
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cdxmill.cluster.output import check_replaceable, held, mend, put_in_place
from cdxmill.cluster.switch import MARK, entries, mark, new_place
from cdxmill.cluster.write import write_cluster_files
from cdxmill.commands.clusters.zipnum import ClusterSummary
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.split_points import format_partition_file, format_text
from cdxmill.formats.clusters.zipnum import INDEX, LOCATIONS, MANIFEST, SUMMARY, part_name
from cdxmill.jobs.launcher.hadoop_directory import RemoteDirectory, directory_of, hadoop_url, is_url
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.mrjob_parts import RunnerLike
from cdxmill.jobs.launcher.reports import read_reports
from cdxmill.jobs.nodes.run_task import SPLITS
from cdxmill.jobs.nodes.zipnum import REPORT, ReducerReport, report_name
from cdxmill.jobs.zipnum_options import ZipnumJobOptions
from cdxmill.messages import say
from cdxmill.storage.location import locate


def building_place(url: str, replace: bool) -> str:
    """The URL at which a job builds the cluster of `url`: beside a finished one that it replaces, else `url` itself.

    Completes a switch that was interrupted. Raises UsageError, StoppedError.
    """
    if not _can_switch(url):
        return url
    place = _place_of(url)
    mend(place, say)
    if not replace or MANIFEST not in entries(place):
        return url
    check_replaceable(place)
    new = new_place(place)
    return new if locate(new).is_remote else Path(new).as_uri()


def mark_place(place: str, url: str) -> None:
    """Mark the place where the job builds as cdxmill's, if it is not `url` itself."""
    if place != url:
        mark(_place_of(url))


def finish_switch(place: str, url: str) -> None:
    """Put the cluster that was built at `place` to `url`. Raises StoppedError."""
    if place == url:
        return
    cluster = _place_of(url)
    with held(cluster, say):
        try:  # again: the job has taken hours
            check_replaceable(cluster)
        except UsageError as error:
            raise StoppedError(f"{error}; the new cluster is complete, in {place}") from None
        put_in_place(cluster, say)


def _can_switch(url: str) -> bool:
    try:
        locate(url).check_writable()
        locate(url).entries()
    except (UsageError, InputError):
        return False
    return True


def _place_of(url: str) -> str:
    """The URL, or the path of a directory that all machines share; only if it is a link, where that leads."""
    place = locate(url).absolute()
    return place if locate(place).is_remote or not Path(place).is_symlink() else str(Path(place).resolve())


_ALWAYS_OWN = (f"{REPORT}*", ".cdx-*.tmp", ".part-*.tmp", "_temporary", "_SUCCESS", MARK)
_OWN_BESIDE_REPORTS = ("splits.*", INDEX, SUMMARY, LOCATIONS)
"""Patterns of the names that a job which failed may leave, besides the shards and parts that have a report."""
_OF_A_CLUSTER = (MANIFEST, "cdx-*.gz", "part-*")
"""Patterns of the further names in a finished cluster."""
_SETTINGS = {
    "stream.map.output": "rawbytes",
    "stream.reduce.input": "rawbytes",
    # _SUCCESS says that the tasks are done. The cluster is when it has cluster.json.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
_DEFAULTS = {
    # what was fetched to memory stays there: the JVM of a reducer only passes it on, so nothing else needs the memory
    "mapreduce.reduce.input.buffer.percent": "0.6",
    "mapreduce.job.reduce.slowstart.completedmaps": "0.9",
}
_PARTITIONER = "org.apache.hadoop.mapred.lib.TotalOrderPartitioner"


def cluster_url(options: ZipnumJobOptions, runner: RunnerLike) -> str:
    """The URL of the cluster's directory. A path is one of Hadoop's default file system. Raises UsageError."""
    if not is_url(options.directory) and runner.alias == "emr":
        raise UsageError(f"{options.directory}: not a URL; on EMR give --zipnum-dir s3://BUCKET/DIR")
    return hadoop_url(options.directory).rstrip("/")


def check_outputs(options: ZipnumJobOptions, url: str, runner: RunnerLike) -> None:
    """Raise StoppedError if the cluster's directory or that of the parts cannot be written."""
    directory_of(url, runner).check_writable()
    if options.parts_directory is not None and hadoop_url(options.parts_directory).rstrip("/") != url:
        directory_of(hadoop_url(options.parts_directory), runner).check_writable()


def clear(directory: RemoteDirectory, replace: bool) -> None:
    """Delete what a failed job has left in `directory`, with `replace` also a finished cluster. Raises UsageError if it holds anything else."""
    names = directory.names()
    check_own(directory.url, names, replace)
    if MANIFEST in names:
        directory.remove([MANIFEST])  # first: what is left is not a finished cluster
        names = directory.names()
    directory.empty(names)


def check_own(url: str, names: Sequence[str], replace: bool) -> None:
    """Raise UsageError if these names in a directory are not of a job that failed or, with `replace`, of a finished cluster."""
    if MANIFEST in names and not replace:
        raise UsageError(
            f"{url}: holds a finished cluster; use --replace to replace it, or choose another directory"
        )
    is_cluster = MANIFEST in names
    reports = [name.removeprefix(REPORT) for name in names if name.startswith(REPORT)]
    own = (
        *_ALWAYS_OWN,
        *(_OWN_BESIDE_REPORTS if reports or is_cluster else ()),
        *(_OF_A_CLUSTER if is_cluster else ()),
    )
    shards = {name for number in reports for name in (f"cdx-{number}.gz", f"part-{number}")}
    other = [
        name
        for name in names
        if name not in shards and not any(fnmatch.fnmatchcase(name, pattern) for pattern in own)
    ]
    if other:
        raise UsageError(f"{url}: holds other files ({other[0]}); choose an empty or new directory")


def make_step(options: ZipnumJobOptions, url: str, directory: Path, inputs: WorkList) -> HadoopStep:
    """The step that sends the lines to one reducer per shard; `directory` is for files of the launcher."""
    build = options.build
    splits, partitions = directory / SPLITS, directory / "partitions.seq"
    splits.write_bytes(format_text(options.points))
    partitions.write_bytes(format_partition_file(options.points))
    packer = ["--compressor", build.compressor.library, "--level", str(build.compressor.level)]
    shard = ["shard", "--cluster", url, "--numlines", str(build.block_lines), *packer]
    return HadoopStep(
        inputs=inputs,
        mapper=["chunks", "--compressor", build.compressor.library],
        reducer=shard + (["--convert"] if build.convert else []),
        settings={**_SETTINGS, "mapreduce.job.reduces": str(build.shards)},
        defaults=_DEFAULTS,
        output_format="org.apache.hadoop.mapred.lib.NullOutputFormat",
        partitioner=_PARTITIONER if build.shards > 1 else None,
        output_dir=None if url.startswith("file:") else url,
        files={SPLITS: splits},
        shared={"mapreduce.totalorderpartitioner.path": partitions},
    )


def finish(options: ZipnumJobOptions, url: str, place: str, runner: RunnerLike) -> int:
    """Write the files beside the shards at `place`, the manifest last. Returns the number of inputs that failed.

    `url` is where the cluster will be. Raises StoppedError if a shard is missing.
    """
    build, cluster = options.build, directory_of(place, runner)
    with tempfile.TemporaryDirectory(prefix="cdxmill-") as name:
        directory = Path(name)
        cluster.get(["part-*", f"{REPORT}*"], directory)
        reports = read_reports(directory, build, url)
        entries = [report.shard for report in reports]
        location = build.location or url
        write_cluster_files(directory, entries, options.points, build.compressor, build.block_lines, location)
        cluster.put([directory / name for name in (INDEX, SUMMARY, LOCATIONS, "splits.txt", "splits.seq")])
        _copy_parts(options, url, directory, runner)
        cluster.put([directory / MANIFEST])
        cluster.remove([*map(report_name, range(build.shards)), *_left_behind(cluster)])
    failures = [failure for report in reports for failure in report.failures]
    for failure in failures:
        say(str(failure))
    if not options.quiet:
        say(f"{url}: {_summary(reports)}")
    return len(failures)


def _copy_parts(options: ZipnumJobOptions, url: str, directory: Path, runner: RunnerLike) -> None:
    """Copy the parts in `directory` to --output-dir too, if it is not the cluster's own directory."""
    if options.parts_directory is None:
        return
    parts_url = hadoop_url(options.parts_directory).rstrip("/")
    if parts_url != url:
        output = directory_of(parts_url, runner)
        output.make()
        output.put([directory / part_name(number) for number in range(options.build.shards)])


def _summary(reports: list[ReducerReport]) -> ClusterSummary:
    shards = [report.shard for report in reports]
    return ClusterSummary(
        shards=len(shards),
        lines=sum(shard.lines for shard in shards),
        blocks=sum(shard.blocks for shard in shards),
        duplicates=sum(report.duplicate_lines for report in reports),
        bytes=sum(shard.bytes for shard in shards),
    )


def _left_behind(cluster: RemoteDirectory) -> list[str]:
    """Temporary files of killed attempts in a shared directory. Elsewhere Hadoop deletes its own."""
    if not cluster.url.startswith("file:"):
        return []
    return [name for name in cluster.names() if name.endswith(".tmp")]
