"""The nodes of a cluster in the small: they run a step's commands on what it says, from S3 to S3.

Only what Hadoop itself would do is done here: unpack archives, hand lines to mappers, sort and
partition, start the reducers with Hadoop's variables, keep their output. The commands are those
that were submitted, with this Python in place of the nodes'.
"""

from __future__ import annotations

import bisect
import fnmatch
import hashlib
import io
import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from cdxmill.formats.clusters.split_points import format_partition_file, parse_text
from cdxmill.stages.lines.line_chunks import Record, format_record, read_records

from .emr_server import BUCKET, KEYS, Emr, Submitted

# Does what `hadoop fs -put -f -d FILE... DIRECTORY/` and `hadoop fs -get URL... DIRECTORY` do, and nothing else. boto3 would
# take most of its time to start.
_HADOOP = f"""#!/bin/sh
exec {shlex.quote(sys.executable)} -I -S -c '
import os, pathlib, sys
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen
def ask(url, data=None):
    place = os.environ["AWS_ENDPOINT_URL"] + "/" + quote(url.partition("://")[2])
    # moto asks only whether there is a signature; with another type, it takes the content for a form
    header = {{"Authorization": "AWS testing:none", "Content-Type": "application/octet-stream"}}
    return urlopen(Request(place, data, header, method="GET" if data is None else "PUT")).read()
if sys.argv[1:3] == ["fs", "-get"]:
    *urls, folder = sys.argv[3:]
    for url in urls:
        pathlib.Path(folder.removeprefix("file://"), url.rpartition("/")[2]).write_bytes(ask(url))
else:
    *names, folder = sys.argv[5:]
    assert sys.argv[1:5] == ["fs", "-put", "-f", "-d"], sys.argv
    for name in names:
        path = pathlib.Path(unquote(name.removeprefix("file://")))
        ask(folder + path.name, path.read_bytes())
' "$@"
"""


class Nodes:
    """A place where the tasks of one step after the other run."""

    def __init__(self, emr: Emr, directory: Path) -> None:
        self._emr = emr
        self._directory = directory
        self._hadoop = directory / "hadoop-home"
        (self._hadoop / "bin").mkdir(parents=True)
        (self._hadoop / "bin/hadoop").write_text(_HADOOP)
        (self._hadoop / "bin/hadoop").chmod(0o755)

    def __call__(self, step: Submitted) -> None:
        """Run a step. Raises CalledProcessError where a task fails."""
        self._step = step
        sent = self._map(step.option("-mapper"))
        if "-reducer" in step.args:
            for number, part in enumerate(self._partitions(sent)):
                self._keep(number, self._run(step.option("-reducer"), number, part))
        else:
            self._keep(0, b"".join(sent))

    def _inputs(self) -> Iterable[bytes]:
        pattern = self._step.option("-input")
        for url, data in sorted(self._step.files.items()):
            if fnmatch.fnmatchcase(url, pattern):
                yield data

    def _map(self, mapper: str) -> list[bytes]:
        """Each line of a work list of CDX files is a mapper's. The archives of a manifest may be one mapper's."""
        settings = self._step.options("-D")
        is_list = settings["mapreduce.input.lineinputformat.linespermap"] == "1"
        pieces = (
            piece for data in self._inputs() for piece in (data.splitlines(True) if is_list else [data])
        )
        return [self._run(mapper, number, piece) for number, piece in enumerate(pieces)]

    def _partitions(self, sent: list[bytes]) -> list[bytes]:
        settings = self._step.options("-D")
        reducers = int(settings["mapreduce.job.reduces"])
        if settings.get("stream.map.output") != "rawbytes":
            assert reducers == 1
            return [b"".join(sorted(b"".join(sent).splitlines(keepends=True)))]
        points = self._split_points()
        assert len(points) == reducers - 1
        parts: list[list[Record]] = [[] for _ in range(reducers)]
        for record in sorted(record for output in sent for record in read_records(io.BytesIO(output))):
            parts[bisect.bisect_right(points, record[0])].append(record)
        return [b"".join(format_record(*record, bytes) for record in part) for part in parts]

    def _split_points(self) -> list[bytes]:
        """What the partitioner reads; the mappers' own file has the same."""
        if "-partitioner" not in self._step.args:
            return []
        assert self._step.option("-partitioner").endswith(".TotalOrderPartitioner")
        points = parse_text(self._sent_along("-files")["cdxmill_splits.txt"])
        path = self._step.options("-D")["mapreduce.totalorderpartitioner.path"]
        assert self._step.files[path] == format_partition_file(points)
        return points

    def _sent_along(self, option: str) -> dict[str, bytes]:
        """Files that are put into the working folder of a task, by name there."""
        if option not in self._step.args:
            return {}
        pairs = (each.partition("#") for each in self._step.option(option).split(","))
        return {name: self._step.files[url] for url, _, name in pairs}

    def _run(self, command: str, number: int, data: bytes) -> bytes:
        place = self._directory / f"task-{len(list(self._directory.iterdir()))}"
        place.mkdir()
        for name, packed in self._sent_along("-archives").items():
            (place / name).symlink_to(self._unpacked(packed))
        for name, content in self._sent_along("-files").items():
            (place / name).write_bytes(content)
        output = self._step.option("-output")
        hadoop = {
            "mapreduce_task_partition": str(number),
            "mapreduce_task_output_dir": output,
            "mapreduce_output_fileoutputformat_outputdir": output,
            "HADOOP_HOME": str(self._hadoop),
        }
        given = {"PATH": os.environ["PATH"], "AWS_ENDPOINT_URL": self._emr.url, **KEYS, **hadoop}
        # -I: of cdxmill only what has travelled
        words = [sys.executable, "-I", *shlex.split(command)[1:]]
        done = subprocess.run(words, cwd=place, env=given, input=data, stdout=subprocess.PIPE, check=True)
        return done.stdout

    def _unpacked(self, archive: bytes) -> Path:
        """The directory of an archive's files. As a node of Hadoop, it is unpacked once, and so compiled once."""
        directory = self._directory.parent / "unpacked" / hashlib.sha256(archive).hexdigest()
        if not directory.exists():
            zipfile.ZipFile(io.BytesIO(archive)).extractall(directory)
        return directory

    def _keep(self, number: int, output: bytes) -> None:
        if output:
            directory = self._step.option("-output").removeprefix(f"s3://{BUCKET}/").rstrip("/")
            self._emr.put(f"{directory}/part-{number:05d}", output)
