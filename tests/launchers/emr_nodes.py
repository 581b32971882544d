"""The nodes of a cluster in the small: they run a step's commands on what it says, from S3 to S3.

Only what Hadoop itself would do is done here: unpack archives, hand lines to mappers, sort and
partition, start the reducers with Hadoop's variables, keep their output. The commands are those
that were submitted, with this Python in place of the nodes'.
"""

from __future__ import annotations

import bisect
import fnmatch
import gzip
import io
import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from cdxmill.formats.split_points import parse_sequence_file

from .emr_server import BUCKET, KEYS, Emr, Submitted

# Puts files into S3 as `hadoop fs -put -f -d FILE... FOLDER/` does, and nothing else.
_HADOOP = f"""#!{sys.executable}
import boto3, sys
*names, folder = sys.argv[5:]
assert sys.argv[1:5] == ["fs", "-put", "-f", "-d"], sys.argv
for name in names:
    bucket, _, prefix = folder.partition("://")[2].partition("/")
    boto3.client("s3").upload_file(name, bucket, prefix + name)
"""


class Nodes:
    """A place where the tasks of one step after the other run."""

    def __init__(self, emr: Emr, folder: Path) -> None:
        self._emr = emr
        self._folder = folder
        self._hadoop = folder / "hadoop-home"
        (self._hadoop / "bin").mkdir(parents=True)
        (self._hadoop / "bin/hadoop").write_text(_HADOOP)
        (self._hadoop / "bin/hadoop").chmod(0o755)

    def __call__(self, step: Submitted) -> None:
        """Run a step. Raises CalledProcessError where a task fails."""
        self._step = step
        mapper = step.option("-mapper")
        is_java = mapper.startswith("org.apache.hadoop.")
        lines = [*self._lines()] if is_java else self._map(mapper)
        if "-reducer" in step.args:
            for number, part in enumerate(self._partitions(lines)):
                self._keep(number, self._run(step.option("-reducer"), number, part))
        else:
            self._keep(0, b"".join(line + b"\n" for line in lines))

    def _inputs(self) -> Iterable[bytes]:
        pattern = self._step.option("-input")
        for url, data in sorted(self._step.files.items()):
            if fnmatch.fnmatchcase(url, pattern):
                yield gzip.decompress(data) if url.endswith(".gz") else data

    def _lines(self) -> Iterable[bytes]:
        for data in self._inputs():
            yield from data.removesuffix(b"\n").split(b"\n")

    def _map(self, mapper: str) -> list[bytes]:
        """Each input is a mapper's, as with NLineInputFormat and CombineTextInputFormat it may be."""
        outputs = (self._run(mapper, number, data) for number, data in enumerate(self._inputs()))
        return [line for output in outputs for line in output.splitlines()]

    def _partitions(self, lines: list[bytes]) -> list[bytes]:
        reducers = int(self._step.options("-D")["mapreduce.job.reduces"])
        points = self._split_points()
        assert len(points) in (0, reducers - 1)
        parts: list[list[bytes]] = [[] for _ in range(reducers)]
        for line in sorted(lines):
            parts[bisect.bisect_right(points, line)].append(line)
        return [b"".join(line + b"\n" for line in part) for part in parts]

    def _split_points(self) -> list[bytes]:
        if "-partitioner" not in self._step.args:
            return []
        assert self._step.option("-partitioner").endswith(".TotalOrderPartitioner")
        path = self._step.options("-D")["mapreduce.totalorderpartitioner.path"]
        return list(parse_sequence_file(self._step.files[path]))

    def _run(self, command: str, number: int, data: bytes) -> bytes:
        place = self._folder / f"task-{len(list(self._folder.iterdir()))}"
        url, _, name = self._step.option("-archives").partition("#")
        zipfile.ZipFile(io.BytesIO(self._step.files[url])).extractall(place / name)
        hadoop = {"mapreduce_task_partition": str(number), "HADOOP_HOME": str(self._hadoop)}
        given = {"PATH": os.environ["PATH"], "AWS_ENDPOINT_URL": self._emr.url, **KEYS, **hadoop}
        # -I: of cdxmill only what has travelled
        words = [sys.executable, "-I", *shlex.split(command)[1:]]
        done = subprocess.run(words, cwd=place, env=given, input=data, stdout=subprocess.PIPE, check=True)
        return done.stdout

    def _keep(self, number: int, output: bytes) -> None:
        if output:
            folder = self._step.option("-output").removeprefix(f"s3://{BUCKET}/").rstrip("/")
            self._emr.put(f"{folder}/part-{number:05d}", output)
