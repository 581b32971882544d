#!/usr/bin/env python3
"""Two weeks of a collection: each day an archive is added, and pywb serves the cluster and is asked all the time.

    .venv/bin/python bin/two_weeks.py [DIRECTORY]

The records of a sample archive of pywb are the archives of 15 days. Day 0 builds the cluster, each further day adds its archive.
On days 5 and 10 a site is removed. In the end another cluster is merged, the result is added, and the cluster is compacted.

After each command, the lines of the cluster are compared with a rebuild of all archives. Each answer of pywb must have the
lines before or after one of the commands that ran during the question. In the end, the shards are those of the rebuild.
The exit status is 0 if all of that holds.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import cdxmill

COMMANDS = Path(sys.executable).parent
SAMPLES = Path(sys.prefix) / "sample_archive/warcs"
DAYS = 15
REMOVED = {5: "iana.org/domains/*", 10: "iana.org/_img/*"}
SITE = "iana.org"
START_SECONDS = 60
KEEP_OLD = "3"
"""Seconds for which removed lines stay for readers that have opened the cluster before: more than an answer takes."""


class Asked(NamedTuple):
    """An answer of pywb, and the number of commands that had ended before the question and after the answer."""

    body: bytes
    before: int
    after: int


class Asking(threading.Thread):
    """Asks pywb for the lines of the site again and again."""

    def __init__(self, site: str) -> None:
        super().__init__()
        self._url = f"{site}/web/cdx?url={SITE}&matchType=domain&pageSize=1000&nosource=true"
        self.answers: list[Asked] = []
        self.ended = 0
        self.is_over = threading.Event()

    def run(self) -> None:
        """Ask until it `is_over`. What is no answer gets a text that no cluster has."""
        while not self.is_over.wait(0.2):
            before = self.ended
            try:
                with urllib.request.urlopen(self._url, timeout=START_SECONDS) as answer:
                    body = answer.read()
            except (OSError, urllib.error.HTTPError) as error:
                body = f"error: {error}".encode()
            self.answers.append(Asked(body, before, self.ended))


def days_of(archive: Path, directory: Path) -> list[Path]:
    """Write the records of an archive to one archive for each day."""
    data, members = archive.read_bytes(), []
    while data:
        inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        inflate.decompress(data)
        members.append(data[: len(data) - len(inflate.unused_data)])
        data = inflate.unused_data
    directory.mkdir()
    days = []
    for day in range(DAYS):
        path = directory / f"day-{day:02d}.warc.gz"
        path.write_bytes(b"".join(members[day::DAYS]))
        days.append(path)
    return days


class Fortnight:
    """The cluster, and what it should have after each command."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.cluster = directory, directory / "cluster"
        self.archives: list[Path] = []
        self.states: list[bytes] = []
        self.is_right = True
        self.asking: Asking | None = None

    def run(self, *command: object) -> None:
        """Run a command of cdxmill. Compare the cluster with a rebuild."""
        words = [str(word) for word in command]
        shown = shlex.join(words).replace(f"{self.directory}/", "")
        done = subprocess.run([COMMANDS / "cdxmill", *words], stderr=subprocess.PIPE, text=True, check=False)
        print(f"$ cdxmill {shown}\n{done.stderr.replace(f'{self.directory}/', '')}", end="")
        self.check(done.returncode == 0, f"exit status {done.returncode}")
        self._compare()

    def check(self, is_right: bool, text: str) -> None:
        """Print what is wrong."""
        if not is_right:
            print(f"WRONG: {text}")
        self.is_right &= is_right

    def _compare(self) -> None:
        rebuilt = self.directory / "rebuilt"
        shutil.rmtree(rebuilt, ignore_errors=True)
        rebuilt.mkdir()
        for name in ("exclude.txt", "splits.txt"):
            if (self.cluster / name).exists():
                shutil.copy(self.cluster / name, self.directory / "rebuilt")
        splits = shutil.move(rebuilt / "splits.txt", self.directory / "splits.txt")
        cdxmill.build(self.archives, output=rebuilt, splits=splits, numlines=20, processes=1)
        self.check(lines_of(self.cluster) == lines_of(rebuilt), "other lines than a rebuild")
        self.states.append(
            b"".join(line + b"\n" for line in lines_of(rebuilt) if line.startswith(b"org,iana"))
        )
        if self.asking is not None:
            self.asking.ended = len(self.states)

    def judge(self, answers: list[Asked]) -> None:
        """Check that each answer has all lines of one of the states that it may have."""
        wrong = [one for one in answers if one.body not in self.states[one.before - 1 : one.after + 1]]
        for one in wrong[:3]:
            print(f"WRONG: an answer of {len(one.body)} bytes: {one.body[:200]!r}")
        states = {one.body for one in answers} & set(self.states)
        self.check(not wrong, f"{len(wrong)} answers")
        print(
            f"pywb: {len(answers)} answers while {len(self.states)} commands ran, {len(states)} different, {len(wrong)} wrong"
        )

    def compare_shards(self) -> None:
        """Check that the shards have the bytes of those of the rebuild."""
        pairs = zip(shards_of(self.cluster), shards_of(self.directory / "rebuilt"), strict=True)
        same = [one.read_bytes() == other.read_bytes() for one, other in pairs]
        self.check(all(same), "other shards than a rebuild")
        print(f"{sum(same)} of {len(same)} shards have the bytes of a rebuild")


def lines_of(cluster: Path) -> list[bytes]:
    """All lines of a cluster."""
    with cdxmill.Cluster(cluster) as opened:
        return [line for lines in opened.lines("*") for line in lines]


def shards_of(cluster: Path) -> list[Path]:
    """The shards, in order."""
    names = re.findall(rb'"name": "(cdx-[^"]+)"', (cluster / "cluster.json").read_bytes())
    return [cluster / name.decode() for name in names]


@contextmanager
def served(fortnight: Fortnight) -> Iterator[Asking]:
    """Serve the cluster with pywb, and ask it."""
    log = fortnight.directory / "pywb.log"
    with log.open("wb") as file:
        command = [str(COMMANDS / "cdxmill"), "serve", str(fortnight.cluster), "--port", "0"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=file)
    try:
        give_up = time.monotonic() + START_SECONDS
        while (found := re.search(r"^open (http://[^/]+)", log.read_text(), re.M)) is None:
            if process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"pywb did not start: {log.read_text()}")
            time.sleep(0.1)
        asking = fortnight.asking = Asking(found[1])
        asking.ended = len(fortnight.states)
        asking.start()
        try:
            yield asking
        finally:
            asking.is_over.set()
            asking.join()
    finally:
        process.terminate()
        process.wait()


def main() -> int:
    """Run all days. Returns the exit status."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "two-weeks").absolute()
    directory.mkdir()
    fortnight = Fortnight(directory)
    cluster, days = fortnight.cluster, days_of(SAMPLES / "iana.warc.gz", directory / "warcs")
    fortnight.archives.append(days[0])
    fortnight.run("build", "-q", "-s", 3, "--numlines", 20, "-o", cluster, days[0])
    with served(fortnight) as asking:
        for day, archive in enumerate(days[1:], 1):
            fortnight.archives.append(archive)
            fortnight.run("add", cluster, archive)
            if day in REMOVED:
                fortnight.run("remove", "--exclude", "--keep-old", KEEP_OLD, cluster, REMOVED[day])
        other = directory / "other"
        fortnight.archives.append(SAMPLES / "dupes.warc.gz")
        cdxmill.build(SAMPLES / "dupes.warc.gz", output=other, shards=1)
        subprocess.run(
            [COMMANDS / "cdxmill", "merge", "-q", "-o", directory / "merged", cluster, other], check=True
        )
        fortnight.run("add", cluster, "--cdx", directory / "merged")
        fortnight.run("compact", cluster)
    fortnight.judge(asking.answers)
    fortnight.compare_shards()
    return 0 if fortnight.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
