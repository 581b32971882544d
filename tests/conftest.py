"""Fixtures for all tests: the sample archives, and clusters that the command builds."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest

from bench.command_server import CommandServer, read_services_once

from .material.advice import advice_checked

ROOT = Path(__file__).resolve().parents[1]
MEMORY, ENOUGH = Path("/dev/shm"), 6 << 30
ARCHIVE_ENDINGS = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".wat.gz", ".wet.gz")
# The first two are damaged on purpose. In the third, the Content-Length of a request is too small.
PYWB_DAMAGED = ("bad.arc", "example-bad.warc.gz.bad", "example.warc")


def pytest_configure() -> None:
    """Reset signals that `nohup`, or `&` in a script, makes the tests and all their processes ignore.

    With PYTHONUNBUFFERED, as build servers and containers set it, nothing is left in a buffer when a process ends.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONUNBUFFERED", None)
    hypothesis.settings.register_profile(
        "gate", max_examples=30, deadline=None
    )  # a loaded machine is no failure
    hypothesis.settings.load_profile("gate")
    read_services_once()
    keep_files_in_memory()


def keep_files_in_memory() -> None:
    """Let pytest make its directories in memory, if there is room: to create a file on a disk takes many times longer.

    PYTEST_DEBUG_TEMPROOT or --basetemp name another place.
    """
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(tryfirst=True)  # after those of the directories, and before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a file run in one process, which builds once what they share. Groups come first: they take longest."""
    alone = [item for item in items if "xdist_group" not in item.keywords]
    items[:] = [*(item for item in items if "xdist_group" in item.keywords), *alone]
    for path, tests in groupby(alone, lambda item: item.path):
        mark = pytest.mark.xdist_group(f"{path.parent.name}.{path.stem}")
        for item in tests:
            item.add_marker(mark)


def pytest_make_parametrize_id(val: object) -> str | None:
    """A name that is the same in all workers, as xdist requires. Gzip data contain the time."""
    if isinstance(val, bytes) and (len(val) > 40 or b"\x08\0" in val):
        return f"{len(val)}-bytes"
    return None


class Cluster(NamedTuple):
    """The folder of a ZipNum cluster, with the exit status and messages of its build."""

    directory: Path
    status: int
    stderr: str

    def lines(self) -> list[bytes]:
        """All decompressed lines, in the order of the shards, without line ends."""
        shards = sorted(self.directory.glob("cdx-*.gz"))
        return [line for shard in shards for line in gzip.decompress(shard.read_bytes()).splitlines()]

    def index_rows(self) -> list[list[bytes]]:
        """The columns of cluster.idx, one row per block: key, shard, offset, length, number."""
        return [line.split(b"\t") for line in (self.directory / "cluster.idx").read_bytes().splitlines()]


RunCdxmill = Callable[..., "subprocess.CompletedProcess[bytes]"]
BuildCluster = Callable[..., Cluster]


@pytest.fixture(scope="session", autouse=True)
def memory_is_freed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Delete the files in memory at the end. After a failure they stay until the next run has ended."""
    yield
    directory = tmp_path_factory.getbasetemp()
    if directory.is_relative_to(MEMORY) and not request.session.testsfailed:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def no_cache() -> Iterator[None]:
    """Turn the cache off: servers of different tests have the same URLs and ETags."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDXMILL_CACHE", "off")
        yield


@pytest.fixture(scope="session", autouse=True)
def strange_advice() -> Iterator[list[str]]:
    """What is wrong with the advice in messages of commands that ran in this process."""
    with advice_checked() as wrong:
        yield wrong


@pytest.fixture(autouse=True)
def good_advice(strange_advice: list[str]) -> Iterator[None]:
    """Each command advises only options that it has."""
    strange_advice.clear()
    yield
    assert strange_advice == []


@pytest.fixture(autouse=True)
def same_directory() -> Iterator[None]:
    """Each test leaves the current directory as it was, or the tests after it fail somewhere else."""
    before = Path.cwd()
    yield
    after = Path.cwd()
    os.chdir(before)
    assert after == before


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of sample archives. Without it, its tests are skipped, which the build server does not allow."""
    named = os.environ.get("CDXMILL_SAMPLES")
    directory = Path(named or ROOT / "../shared/samples").resolve()
    if named and not directory.is_dir():
        raise FileNotFoundError(f"no sample archives in {directory}: set CDXMILL_SAMPLES to their folder")
    if not directory.is_dir():
        pytest.skip("needs the sample archives, see CONTRIBUTING.md")
    return directory


@pytest.fixture(scope="session")
def pywb_warcs() -> Path:
    """The folder of archives that pywb's wheel installs."""
    directory = Path(sys.prefix) / "sample_archive/warcs"
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} is absent: install cdxmill[test]")
    return directory


@pytest.fixture(scope="session")
def sample_archives(samples: Path) -> list[Path]:
    """Every file of the samples that has the name of an archive, good or bad, in order."""
    found = [path for path in samples.rglob("*") if path.name.endswith(ARCHIVE_ENDINGS) and path.is_file()]
    if not found:
        raise FileNotFoundError(f"{samples} holds no archives")
    return sorted(found)


@pytest.fixture(scope="session")
def pywb_archives(pywb_warcs: Path) -> list[Path]:
    """pywb's archives, without the damaged ones."""
    return sorted(path for path in pywb_warcs.iterdir() if path.name not in PYWB_DAMAGED)


@pytest.fixture(scope="session")
def run_cdxmill() -> Iterator[RunCdxmill]:
    """A function that runs `cdxmill` with the given arguments in a process of its own. It accepts any exit status."""
    with CommandServer() as server:
        yield server.run


@pytest.fixture(scope="session")
def build_cluster(run_cdxmill: RunCdxmill) -> BuildCluster:
    """A function that builds a cluster with `cdxmill build`: folder, inputs, number of shards, options."""

    def build(directory: Path, inputs: Iterable[Path], shards: int = 3, *options: str) -> Cluster:
        done = run_cdxmill("build", "-o", directory, "-s", str(shards), *options, *inputs)
        stderr = done.stderr.decode()
        if done.returncode not in (0, 1):
            raise RuntimeError(f"cdxmill build ended with {done.returncode}: {stderr}")
        return Cluster(directory, done.returncode, stderr)

    return build
