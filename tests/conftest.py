"""Fixtures for every folder of tests: the sample archives, and clusters built by the command itself."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE_ENDINGS = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".wat.gz", ".wet.gz")
# The first two on purpose; in the third a request's Content-Length is a few bytes short.
PYWB_DAMAGED = ("bad.arc", "example-bad.warc.gz.bad", "example.warc")


def pytest_configure() -> None:
    """Who starts the tests by `nohup`, or behind a script's `&`, has these ignored, and all that they start would, too."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object) -> str | None:
    """A name that all workers find: gzip data hold the time, and xdist refuses tests whose names differ."""
    if isinstance(val, bytes) and (len(val) > 40 or b"\x08\0" in val):
        return f"{len(val)}-bytes"
    return None


class Cluster(NamedTuple):
    """A ZipNum cluster's folder, and how the command that built it ended."""

    folder: Path
    status: int
    stderr: str

    def lines(self) -> list[bytes]:
        """All lines, decompressed, in the order of the shards; without their line ends."""
        shards = sorted(self.folder.glob("cdx-*.gz"))
        return [line for shard in shards for line in gzip.decompress(shard.read_bytes()).splitlines()]

    def index_rows(self) -> list[list[bytes]]:
        """The columns of cluster.idx, a row a block: key, shard, offset, length, number."""
        return [line.split(b"\t") for line in (self.folder / "cluster.idx").read_bytes().splitlines()]


RunCdxmill = Callable[..., "subprocess.CompletedProcess[bytes]"]
BuildCluster = Callable[..., Cluster]


@pytest.fixture(scope="session", autouse=True)
def no_cache() -> Iterator[None]:
    """Servers of tests have the same URLs and ETags again and again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDXMILL_CACHE", "off")
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of sample archives; its absence is an error, for a skip would look like a pass."""
    folder = Path(os.environ.get("CDXMILL_SAMPLES") or ROOT / "../shared/samples").resolve()
    if not folder.is_dir():
        raise FileNotFoundError(f"no sample archives in {folder}: set CDXMILL_SAMPLES to their folder")
    return folder


@pytest.fixture(scope="session")
def pywb_warcs() -> Path:
    """The folder of archives that pywb's wheel installs."""
    folder = Path(sys.prefix) / "sample_archive/warcs"
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is absent: install cdxmill[test]")
    return folder


@pytest.fixture(scope="session")
def sample_archives(samples: Path) -> list[Path]:
    """Every file of the samples that is named like an archive, good or bad, in order."""
    found = [path for path in samples.rglob("*") if path.name.endswith(ARCHIVE_ENDINGS) and path.is_file()]
    if not found:
        raise FileNotFoundError(f"{samples} holds no archives")
    return sorted(found)


@pytest.fixture(scope="session")
def pywb_archives(pywb_warcs: Path) -> list[Path]:
    """pywb's archives without those that hold damage."""
    return sorted(path for path in pywb_warcs.iterdir() if path.name not in PYWB_DAMAGED)


@pytest.fixture(scope="session")
def run_cdxmill() -> RunCdxmill:
    """Runs the installed `cdxmill` with the arguments given; any exit status is a result."""
    command = Path(sys.executable).parent / "cdxmill"

    def run(*args: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [command, *args], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )

    return run


@pytest.fixture(scope="session")
def build_cluster(run_cdxmill: RunCdxmill) -> BuildCluster:
    """Builds a cluster by `cdxmill build`: folder, inputs, number of shards, further options."""

    def build(folder: Path, inputs: Iterable[Path], shards: int = 3, *options: str) -> Cluster:
        done = run_cdxmill("build", "-o", folder, "-s", str(shards), *options, *inputs)
        stderr = done.stderr.decode()
        if done.returncode not in (0, 1):
            raise RuntimeError(f"cdxmill build ended with {done.returncode}: {stderr}")
        return Cluster(folder, done.returncode, stderr)

    return build
