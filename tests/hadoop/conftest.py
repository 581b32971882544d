"""Hadoops of the tests' own by bin/hadoop-dev, with S3. The tests are in groups: each runs in one process, and has one cluster.

Jobs mostly wait, for one Java after another, so that two clusters at once take little longer than one.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import pytest

from bench.command_server import CommandServer
from cdxmill.jobs.launcher.node_archive import DEFLATE, URLLIB3, ZLIB_NG, pack_archive

from .archives import Indexed, index_all
from .fs_shell import FsShell
from .job_runs import Jobs

collect_ignore = ["secured.py"]  # it needs bin/ on the path
DIRECTORY = Path(__file__).parent
GROUPS = {
    "test_kerberos.py": "kerberos",
    **dict.fromkeys(
        (
            "test_faults.py",
            "test_refused_jobs.py",
            "test_sample_on_hadoop.py",
            "test_sick_nodes.py",
            "test_twin_reducers.py",
            "test_zipnum_failures.py",
            "test_zipnum_on_hadoop.py",
        ),
        "hadoop-zipnum",
    ),
}
"""Those that do not need the indexes of the index job, and take half of the time."""
HADOOP_DEV = DIRECTORY.parents[1] / "bin/hadoop-dev"


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == DIRECTORY:
            item.add_marker(pytest.mark.xdist_group(GROUPS.get(item.path.name, "hadoop")))


class Hadoop:
    """What bin/hadoop-dev keeps in a folder: a cluster that runs, or none."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.home = directory, directory / "home"
        self._settings = {"CDXMILL_HADOOP_DEV": str(directory)}
        self._shell = FsShell(HADOOP_DEV, directory)
        self._commands: CommandServer | None = None

    @property
    def environ(self) -> dict[str, str]:
        """The variables that commands find in the cluster: HADOOP_HOME, JAVA_HOME, AWS_ENDPOINT_URL and so on."""
        printed = self.dev("env").stdout.decode().splitlines()
        pairs = (shlex.split(line)[1].partition("=") for line in printed)
        return {name: value for name, _, value in pairs}

    def start_dev(self, *verb: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Starts bin/hadoop-dev in a process group of its own; `env` is added to the tests' own environment."""
        return subprocess.Popen(
            [HADOOP_DEV, *verb],
            env={**os.environ, **(env or {}), **self._settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def dev(
        self, *verb: str, env: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """What bin/hadoop-dev did; with `check` a status but 0 is an AssertionError with all that it said."""
        with self.start_dev(*verb, env=env) as process:
            stdout, stderr = process.communicate()
        if check and process.returncode:
            said = (stdout + stderr).decode(errors="replace")
            raise AssertionError(f"{shlex.join(verb)} ended with {process.returncode}: {said}")
        return subprocess.CompletedProcess(verb, process.returncode, stdout, stderr)

    def start(self, *argv: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Starts a command in the cluster."""
        return self.start_dev("run", *map(str, argv), env=env)

    def run(
        self, *argv: str | Path, env: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """What a command did in the cluster; `env` and `check` as above."""
        return self.dev("run", *map(str, argv), env=env, check=check)

    def cdxmill(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """What the command itself did in the cluster; `check` as above."""
        if self._commands is None:
            self._commands = CommandServer(HADOOP_DEV, "run", **self._settings)
        done = self._commands.run(*words, env=self._variables)
        assert done.returncode == 0 or not check, done
        return done

    @cached_property
    def _variables(self) -> dict[str, str]:
        printed = self.run("env", "-0").stdout.decode().split("\0")
        return {name: value for name, _, value in (row.partition("=") for row in printed if row)}

    def fs(self, *words: str | Path) -> bytes:
        """What `hadoop fs` prints; a status but 0 is an error."""
        return self._shell.run(*words)

    def close(self) -> None:
        """End what `fs` and `cdxmill` have started."""
        self._shell.close()
        if self._commands is not None:
            self._commands.__exit__()


@contextmanager
def ended_with_the_tests(cluster: Hadoop) -> Iterator[Hadoop]:
    """However the tests end, by kill -9 too, the pipe closes, and by that the cluster ends."""
    env = {**os.environ, "CDXMILL_HADOOP_DEV": str(cluster.directory)}
    script = 'read -r; exec "$0" down'
    with subprocess.Popen(
        ["bash", "-c", script, HADOOP_DEV], stdin=subprocess.PIPE, env=env, start_new_session=True
    ):
        yield cluster


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    """A whole cluster with S3, for all tests of the process; logs are in `hadoop.home / "logs"`."""
    with ended_with_the_tests(Hadoop(tmp_path_factory.mktemp("hadoop"))) as cluster:
        cluster.dev("up", "s3")
        yield cluster
        cluster.close()


@pytest.fixture(scope="session")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What travels with jobs is fetched first, for the network of a cluster is closed."""
    pack_archive(tmp_path_factory.mktemp("archive"), [ZLIB_NG, DEFLATE, URLLIB3])


@pytest.fixture(scope="session")
def jobs(hadoop: Hadoop, fetched: None) -> Jobs:
    """Starts jobs."""
    return Jobs(hadoop)


@pytest.fixture(scope="session")
def indexed(jobs: Jobs, pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    """The index job, run once for its own tests and for those of the whole pipeline."""
    return index_all(jobs, pywb_warcs, tmp_path_factory.mktemp("indexed"))
