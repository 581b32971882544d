"""What the launcher of zipnumclusterjob.py does on Hadoop: checks, the step, the files beside the shards, and the switch.

A job builds its cluster in a directory of its own (cluster/own_run), and then switches (cluster/switch). Under Hadoop's own
file systems and keys, which cdxmill.storage does not have, nothing can be switched. There, the old cluster is deleted before
the job, and the new one is built in its place.
"""

from __future__ import annotations

import fnmatch
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from cdxmill.cluster.output import check_replaceable, mend, put_in_place
from cdxmill.cluster.own_run import RUN, left_runs, remove_runs, run_place, start_run
from cdxmill.cluster.switch import MARK, entries
from cdxmill.cluster.write import NUMBERED, write_cluster_files
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.clusters.split_points import format_partition_file, format_text
from cdxmill.formats.clusters.zipnum import INDEX, LOCATIONS, MANIFEST, SUMMARY, part_name
from cdxmill.jobs.launcher.earlier_runs import check_ended
from cdxmill.jobs.launcher.hadoop_directory import (
    RemoteDirectory,
    directory_of,
    hadoop_url,
    held,
    is_reached,
    is_url,
)
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.mrjob_parts import RunnerLike
from cdxmill.jobs.nodes.run_task import SPLITS
from cdxmill.jobs.nodes.zipnum import REPORT, ReducerReport, read_reports, report_name
from cdxmill.messages import say
from cdxmill.running.lock import LOCK, hold, run_id
from cdxmill.storage.location import Location, locate

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
_WRITTEN_DIRECTLY = ("file:", "s3:", "s3a:")
"""The URLs to which reducers write themselves. Hadoop and mrjob need not know such a place, which has the lock already."""
_PARTITIONER = "org.apache.hadoop.mapred.lib.TotalOrderPartitioner"


class ClusterOnHadoop:
    """The cluster of a job in `directory`, a path or URL. A path is one of Hadoop's default file system.

    `parts` is a further directory for its parts. The first one is held until `holding` is closed. Raises UsageError if the
    cluster may not be built, StoppedError if one of the two cannot be written.
    """

    def __init__(
        self, directory: str, parts: str | None, build: ZipnumOptions, runner: RunnerLike, holding: ExitStack
    ) -> None:
        if not is_url(directory) and runner.alias == "emr":
            raise UsageError(f"{directory}: not a URL; on EMR give --zipnum-dir s3://BUCKET/DIR")
        self.url = hadoop_url(directory).rstrip("/")
        self._build, self._points = build, build.points or ()
        directory_of(self.url, runner).check_writable()
        holding.enter_context(held(str(_place_of(self.url))))
        self._place = building_place(self.url, build.replace, runner)
        self._cluster, self._parts = directory_of(self._place, runner), None
        if parts is not None and hadoop_url(parts).rstrip("/") != self.url:
            self._parts = directory_of(hadoop_url(parts), runner)
            self._parts.check_writable()

    def step(self, inputs: WorkList, directory: Path) -> HadoopStep:
        """The step that sends the lines to one reducer per shard; `directory` is for files of the launcher."""
        build, place = self._build, self._place
        begin(place, self.url)
        splits, partitions = directory / SPLITS, directory / "partitions.seq"
        splits.write_bytes(format_text(self._points))
        partitions.write_bytes(format_partition_file(self._points))
        library, level, section_lines = build.compressor
        packer = ["--compressor", library, "--level", str(level), "--section-lines", str(section_lines)]
        shard = ["shard", "--cluster", place, "--numlines", str(build.block_lines), *packer]
        return HadoopStep(
            inputs=inputs,
            mapper=["chunks", *packer[:2], *(["--convert"] if build.convert else [])],
            reducer=shard,
            settings={**_SETTINGS, "mapreduce.job.reduces": str(build.shards)},
            defaults=_DEFAULTS,
            output_format="org.apache.hadoop.mapred.lib.NullOutputFormat",
            partitioner=_PARTITIONER if build.shards > 1 else None,
            output_dir=None if place.startswith(_WRITTEN_DIRECTLY) else place,
            files={SPLITS: splits},
            shared={"mapreduce.totalorderpartitioner.path": partitions},
        )

    def write_files(self) -> list[ReducerReport]:
        """Write the files beside the shards, the manifest last. Returns the reports of the reducers.

        Raises StoppedError if a shard is missing.
        """
        build, cluster = self._build, self._cluster
        with tempfile.TemporaryDirectory(prefix="cdxmill-") as name:
            directory = Path(name)
            cluster.get(["part-*", f"{REPORT}*"], directory)
            reports = read_reports(directory, build.shards, build.compressor, self.url)
            entries = [report.shard for report in reports]
            there, location = locate(directory), locate(build.location or self.url)
            write_cluster_files(there, entries, self._points, build.compressor, build.block_lines, location)
            cluster.put(
                [directory / name for name in (INDEX, SUMMARY, LOCATIONS, "splits.txt", "splits.seq")]
            )
            if self._parts is not None:
                self._parts.make()
                self._parts.put([directory / part_name(number) for number in range(build.shards)])
            cluster.put([directory / MANIFEST])
            cluster.remove([*map(report_name, range(build.shards)), *_left_behind(cluster)])
        return reports

    def switch(self) -> None:
        """Put the cluster in its place, if it was built elsewhere. Raises StoppedError."""
        finish_switch(self._place, self.url)


def check_shards_stay(directory: str, inputs: Iterable[str]) -> None:
    """Raise UsageError if an input is a shard of the cluster in `directory`, which the new one would replace.

    The name of the server is not compared: HDFS has several for one.
    """
    place = urlsplit(hadoop_url(directory)).path.rstrip("/")
    for path in inputs:
        above, _, name = urlsplit(hadoop_url(path)).path.rpartition("/")
        if above == place and NUMBERED.fullmatch(name) and is_url(path):
            raise UsageError(f"{path}: is an input; choose another output")


def clear(directory: RemoteDirectory, replace: bool) -> None:
    """Delete what a failed job has left in `directory`, with `replace` also a finished cluster. Raises UsageError if it holds anything else."""
    names = _names_in(directory)
    _check_own(directory.url, names, replace)
    if MANIFEST in names:
        directory.remove([MANIFEST])  # first: what is left is not a finished cluster
        names = _names_in(directory)
    directory.empty(names)


def _names_in(directory: RemoteDirectory) -> list[str]:
    return [name for name in directory.names() if name != LOCK and not name.startswith(RUN)]


def _check_own(url: str, names: Sequence[str], replace: bool) -> None:
    """Raise UsageError if these names in a directory are not of a job that failed or, with `replace`, of a finished cluster."""
    is_cluster = MANIFEST in names
    if is_cluster and not replace:
        raise UsageError(
            f"{url}: holds a finished cluster; use --replace to replace it, or choose another directory"
        )
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


def _left_behind(cluster: RemoteDirectory) -> list[str]:
    """Temporary files of killed attempts in a shared directory. Elsewhere Hadoop deletes its own."""
    if not cluster.url.startswith("file:"):
        return []
    return [name for name in cluster.names() if name.endswith(".tmp")]


def building_place(url: str, replace: bool, runner: RunnerLike) -> str:
    """The URL at which a job builds the cluster of `url`: a directory of its own below it, or `url` itself.

    Deletes what failed jobs have left, and completes a switch that was interrupted. Raises UsageError if the directory
    holds anything else, or if a job of a run that was killed still runs; StoppedError.
    """
    if not is_reached(url):
        clear(directory_of(url, runner), replace)
        return url
    place = _place_of(url)
    mend(place, say)
    if left := left_runs(place):
        check_ended(left, url, runner)
    if replace and MANIFEST in entries(place):
        check_replaceable(place)
    else:
        clear(directory_of(url, runner), replace=False)
    remove_runs(place)
    own = run_place(place, run_id())
    return str(own) if own.is_remote else Path(own.local).as_uri()


def begin(place: str, url: str) -> None:
    """Create and mark the directory in which the job builds, if it is not `url` itself."""
    if place != url:
        start_run(_place_of(url), run_id())


def finish_switch(place: str, url: str) -> None:
    """Put the cluster that was built at `place` to `url`. Raises StoppedError."""
    if place == url:
        return
    cluster = _place_of(url)
    with hold(cluster):
        try:  # again: the job has taken hours
            if MANIFEST in entries(cluster):
                check_replaceable(cluster)
        except UsageError as error:
            raise StoppedError(f"{error}; the new cluster is complete, in {place}") from None
        put_in_place(cluster, say, built=locate(locate(place).absolute()))


def _place_of(url: str) -> Location:
    """The URL, or the path of a directory that all machines share; only if it is a link, where that leads."""
    place = locate(locate(url).absolute())
    is_link = place.directory is not None and place.directory.is_symlink()
    return locate(Path(place.local).resolve()) if is_link else place
