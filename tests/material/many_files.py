"""100,000 CDX files of one line, as a directory of names: 1,000 files, each with 100 names.

Further names of a file (hard links) cost a tenth of further files. To an engine they are inputs as all others are, and the
number of duplicates shows that each was read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.reliability import peak

LINES, NAMES = 1000, 100
FILES = LINES * NAMES
SHARDS = 2
DUPLICATES = "99000 duplicate lines removed"
PEAK = (sys.executable, peak.__file__)
_LINE = b'com,example,host%03d)/ 20260101000000 {"url": "http://host%03d.example.com/", "status": "200"}\n'


def line(number: int) -> bytes:
    """The line of a file; the numbers are in the order of the lines."""
    return _LINE % (number, number)


@contextmanager
def many_files(directory: Path) -> Iterator[Path]:
    """Make them, and delete them: pytest would keep them for three runs."""
    many = directory / "many"
    try:
        for name in range(NAMES):
            place = many / f"{name:02d}"
            place.mkdir(parents=True)
            for number in range(LINES):
                path = place / f"{number:03d}.cdxj"
                if name:
                    os.link(many / "00" / path.name, path)
                else:
                    path.write_bytes(line(number))
        yield many
    finally:
        shutil.rmtree(many)


class Done(NamedTuple):
    """What a command printed, and the memory in MB of its process, or of one that it waited for if that has more."""

    stderr: str
    peak: float


def run_with_peak(words: Sequence[str | Path], env: dict[str, str] | None = None) -> Done:
    """Run a command, which must succeed."""
    done = subprocess.run(
        [*PEAK, *map(str, words)], env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return Done(done.stderr, int(done.stdout) / 1024)


def same_as_one_file(cluster: Path, directory: Path) -> bool:
    """Whether the cluster has the bytes of one that is built from a single file with all lines, at the same split points."""
    one = directory / "all.cdxj"
    one.write_bytes(b"".join(map(line, range(LINES))))
    options: list[str | Path] = [
        "--splits",
        cluster / "splits.txt",
        "--location",
        "/published",
        "-q",
        "-o",
        directory / "one",
    ]
    subprocess.run([command(), "zipnum", *options, one], check=True)
    return files_of(cluster) == files_of(directory / "one")


def files_of(cluster: Path) -> dict[str, bytes]:
    """The files of a cluster that do not name its inputs."""
    return {
        path.name: path.read_bytes()
        for path in cluster.iterdir()
        if path.name.startswith(("cdx-", "part-", "cluster.idx", "cluster.loc"))
    }


def command() -> Path:
    """The command `cdxmill` of this environment."""
    return Path(sys.executable).parent / "cdxmill"
