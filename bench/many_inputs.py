"""From many tiny archives to a cluster, in each engine: wall time, and the memory of the process that starts everything.

    python -m bench.many_inputs [--archives N] [local] [spark] [hadoop]

The archives have one capture each, and are in directories of 1,000. On Hadoop they are in a directory that all nodes
share, because to put 100,000 files into HDFS takes longer than the jobs. All engines write the same bytes, which is checked.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.hadoop_run import ENVIRONMENT, ROOT, dev, job, up
from bench.measure import POLL_SECONDS, children_of, resident

ENGINES = ("local", "spark", "hadoop")
_SHARDS = 4
_PER_DIRECTORY = 1000
_PER_MAP = 5000
_RECORD = (
    "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://host{host}.example.com/{page}\r\n"
    "WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{page:032x}>\r\n"
    "Content-Type: application/http; msgtype=response\r\nContent-Length: {length}\r\n\r\n{http}\r\n\r\n"
)
_HTTP = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>page {page}</p>"


class Run(NamedTuple):
    """What a step took: seconds, and the peaks of its first process and of the largest JVM below it, in MB."""

    step: str
    wall: float
    python: int
    java: int

    def __str__(self) -> str:
        java = f", Java {self.java} MB" if self.java else ""
        return f"{self.step:28} {self.wall:6.0f} s   {self.python} MB{java}"


class _Peaks(threading.Thread):
    """Watches the process that `bin/hadoop-dev` or `cdxmill` is, and the JVMs that it starts."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self.python, self.java, self._done = pid, 0, 0, threading.Event()

    def run(self) -> None:
        while not self._done.wait(POLL_SECONDS * 5):
            self.python = max(self.python, resident(self._pid))
            self.java = max(self.java, *map(resident, _java_below(self._pid)), 0)

    def end(self) -> None:
        self._done.set()
        self.join()


def _java_below(pid: int) -> Iterator[int]:
    for child in children_of(pid):
        try:
            if Path(f"/proc/{child}/comm").read_text() == "java\n":
                yield child
        except OSError:
            continue
        yield from _java_below(child)


def measured(step: str, command: Sequence[str]) -> Run:
    """Run a command. Raises CalledProcessError if it fails."""
    start = time.monotonic()
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as process:
        peaks = _Peaks(process.pid)
        peaks.start()
        status = process.wait()
        peaks.end()
    if status:
        raise subprocess.CalledProcessError(status, command)
    return Run(step, time.monotonic() - start, peaks.python >> 20, peaks.java >> 20)


def make_archives(directory: Path, number: int) -> None:
    """Write the archives, if they are not there."""
    for page in range(number):
        place = directory / f"{page // _PER_DIRECTORY:03d}"
        if page % _PER_DIRECTORY == 0:
            place.mkdir(parents=True, exist_ok=True)
        path = place / f"{page:06d}.warc.gz"
        if not path.exists():
            http = _HTTP.format(page=page)
            record = _RECORD.format(host=page % 997, page=page, length=len(http), http=http)
            path.write_bytes(gzip.compress(record.encode(), 1, mtime=0))


def digest(cluster: Path) -> str:
    """One digest of all shards of a cluster."""
    found = hashlib.sha256()
    for path in sorted(cluster.glob("cdx-*.gz")):
        found.update(path.read_bytes())
    return found.hexdigest()


def build(engine: str, archives: Path, work: Path) -> Iterator[Run]:
    """`cdxmill build` on this machine, or on Spark's local[2]."""
    command = [sys.executable, "-m", "cdxmill", "build", "-q", "-s", str(_SHARDS), "-o", str(work / engine)]
    options = {"local": ["-p", "2"], "spark": ["--engine", "spark", "--master", "local[2]"]}
    yield measured(f"{engine}: build", [*command, *options[engine], str(archives)])


def on_hadoop(archives: Path, work: Path) -> Iterator[Run]:
    """The three jobs, from and to directories that all nodes share."""
    manifest, splits, cdx = work / "warc.paths", work / "splits.seq", (work / "cdx").as_uri()
    paths = sorted(archives.rglob("*.warc.gz"))
    manifest.write_text("".join(f"{path.relative_to(archives)}\n" for path in paths))
    places = ["--warc_bucket", archives.as_uri(), "--cdx_bucket", cdx, "--no-cat-output"]
    steps = {
        "index": job("jobs/indexwarcsjob.py", *places, "--warcs-per-map", str(_PER_MAP), str(manifest)),
        "sample": job("jobs/dosample.py", "--shards", str(_SHARDS), "--replace", "--splitfile", str(splits), cdx),
        "zipnum": job(
            "jobs/zipnumclusterjob.py", "--splitfile", str(splits), "--zipnum-dir", (work / "hadoop").as_uri(), cdx
        ),
    }  # fmt: skip
    up()
    try:
        for name, command in steps.items():
            yield measured(f"hadoop: {name}", [str(ROOT / "bin/hadoop-dev"), "run", *command])
    finally:
        dev("down")


def main() -> None:
    """Make the archives, run the engines and print a table."""
    parser = argparse.ArgumentParser(prog="bench.many_inputs", description=__doc__)
    parser.add_argument("engines", nargs="*", choices=[[], *ENGINES], help="default: all")
    parser.add_argument("--archives", type=int, default=100_000)
    options = parser.parse_args()
    work = ROOT / f"build/bench-work/many-{options.archives}"
    archives = work / "archives"
    start = time.monotonic()
    make_archives(archives, options.archives)
    print(f"{options.archives} archives, made in {time.monotonic() - start:.0f} s", flush=True)
    for made in (*options.engines, "cdx") if options.engines else (*ENGINES, "cdx"):
        shutil.rmtree(work / made, ignore_errors=True)
    digests = set()
    for engine in options.engines or ENGINES:
        runs = on_hadoop(archives, work) if engine == "hadoop" else build(engine, archives, work)
        for run in runs:
            print(run, flush=True)
        digests.add(digest(work / engine))
    print("the bytes are the same" if len(digests) == 1 else f"the bytes differ: {digests}")


if __name__ == "__main__":
    main()
