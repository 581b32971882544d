"""A `hadoop jar` in place of the real one, which takes half a minute for each job: it runs the tasks of a streaming step one by one.

HDFS is the name node at CDXMILL_WEBHDFS. The real one runs the same jobs in tests/hadoop.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

COUNTER = re.compile(rb"^reporter:counter:cdxmill,([^,]*),(\d+)$", re.M)
LENGTH = struct.Struct(">i")
HEAD = "26/01/01 00:00:00"
"""Begins each line of a log."""
COUNTED: Counter[str] = Counter()
Records = list[tuple[bytes, bytes]]


def ask(url: str, op: str, data: bytes | None = None) -> bytes:
    place = f"{os.environ['CDXMILL_WEBHDFS']}/data/webhdfs/v1{urlsplit(url).path}"
    asked = urllib.request.Request(
        f"{place}?op={op}&offset=0&length={1 << 30}", data, method="GET" if data is None else "PUT"
    )
    with urllib.request.urlopen(asked) as answer:
        found: bytes = answer.read()
    return found


class Step:
    """The words of the command."""

    def __init__(self, words: list[str]) -> None:
        self.words: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.directory = Path()
        for name, value in zip(words[::2], words[1::2], strict=True):
            if name in ("-D", "-jobconf"):
                key, _, text = value.partition("=")
                self.settings[key] = text
            else:
                self.words[name] = value

    def files(self, kind: str) -> list[tuple[str, bytes]]:
        named = [word.split("#") for word in filter(None, self.words.get(kind, "").split(","))]
        return [(name, ask(url, "OPEN")) for url, name in named]

    def fetch(self, directory: Path) -> None:
        """What each task has in its working directory, once for all."""
        self.directory = directory
        for name, content in self.files("-files"):
            (directory / name).write_bytes(content)
        for name, content in self.files("-archives"):
            zipfile.ZipFile(io.BytesIO(content)).extractall(directory / name)

    def run(self, kind: str, number: int, data: bytes) -> bytes:
        """The output of a task."""
        given = {name.replace(".", "_"): value for name, value in self.settings.items()}
        own = {"partition": f"{number}", "output_dir": self.words["-output"]}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        environ = {**kept, **given, **{f"mapreduce_task_{name}": text for name, text in own.items()}}
        environ["mapreduce_output_fileoutputformat_outputdir"] = self.words["-output"]
        with tempfile.TemporaryDirectory() as directory:
            for path in self.directory.iterdir():
                Path(directory, path.name).symlink_to(path)
            command = shlex.split(self.words[kind])
            done = subprocess.run(
                command, input=data, cwd=directory, env=environ, capture_output=True, check=False
            )
        for name, amount in COUNTER.findall(done.stderr):
            COUNTED[name.decode()] += int(amount)
        if done.returncode:
            sys.stderr.write(f"{HEAD} ERROR streaming.StreamJob: {done.stderr.decode()}\n")
            sys.exit(f"{HEAD} ERROR streaming.StreamJob: subprocess failed with code {done.returncode}")
        return done.stdout

    def write(self, number: int, data: bytes) -> None:
        if "NullOutputFormat" not in self.words.get("-outputformat", ""):
            ask(f"{self.words['-output']}/part-{number:05d}", "CREATE", data)


def records_of(data: bytes) -> Records:
    """Raw bytes: a length and a key, a length and a value."""
    found: list[bytes] = []
    while data:
        end = LENGTH.size + LENGTH.unpack_from(data)[0]
        found.append(data[LENGTH.size : end])
        data = data[end:]
    return list(zip(found[::2], found[1::2], strict=True))


def raw(records: Records) -> bytes:
    return b"".join(LENGTH.pack(len(part)) + part for record in records for part in record)


def run(step: Step) -> None:
    lines = ask(step.words["-input"], "OPEN").splitlines(keepends=True)
    size = int(step.settings["mapreduce.input.lineinputformat.linespermap"])
    groups = [b"".join(lines[begin : begin + size]) for begin in range(0, len(lines), size)]
    step.settings["mapreduce.job.maps"] = str(len(groups))
    mapped = [step.run("-mapper", number, group) for number, group in enumerate(groups)]
    if "-reducer" not in step.words:
        for number, data in enumerate(mapped):
            step.write(number, data)
        return
    count = int(step.settings["mapreduce.job.reduces"])
    if step.settings.get("stream.map.output") != "rawbytes":
        assert count == 1
        rows = sorted((row for data in mapped for row in data.splitlines(keepends=True)), key=key_of)
        step.write(0, step.run("-reducer", 0, b"".join(rows)))
        return
    records = sorted(record for data in mapped for record in records_of(data))
    points = split_points(step) if count > 1 else []
    for number in range(count):
        own = [record for record in records if bisect_right(points, record[0]) == number]
        step.write(number, step.run("-reducer", number, raw(own)))


def key_of(row: bytes) -> bytes:
    return row.partition(b"\t")[0]


def split_points(step: Step) -> list[bytes]:
    """The keys of a SequenceFile<BytesWritable, NullWritable>."""
    assert step.words["-partitioner"] == "org.apache.hadoop.mapred.lib.TotalOrderPartitioner"
    data = ask(step.settings["mapreduce.totalorderpartitioner.path"], "OPEN")
    begin, found = 4, []
    for _ in ("key class", "value class"):
        begin += 1 + data[begin]
    begin += 6 + 16  # no compression, no metadata, the sync marker
    while begin < len(data):
        end = begin + 8 + LENGTH.unpack_from(data, begin)[0]
        found.append(data[begin + 12 : end])
        begin = end
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asked = Step(sys.argv[3:])
        asked.fetch(Path(place))
        run(asked)
    shown = "".join(f"\n\t\t{name}={number}" for name, number in COUNTED.items())
    sys.stderr.write(f"{HEAD} INFO mapreduce.Job: Counters: {len(COUNTED)}\n\tcdxmill{shown}\n")
