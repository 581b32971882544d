"""bin/hadoop-dev: a whole Hadoop that starts, tells the truth, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import HADOOP_DEV, Hadoop, ended_with_the_tests

DAEMONS = ["namenode", "datanode", "resourcemanager", "nodemanager", "historyserver", "s3"]
CHMOD = Path(__file__).with_name("Chmod.java")
BUCKET = """
import sys, boto3
s3 = boto3.client("s3")
s3.create_bucket(Bucket="words")
s3.put_object(Bucket="words", Key="in/a b.txt", Body=b"by boto3")
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Hadoop]:
    """A cluster that is not up, beside the one of all tests."""
    with ended_with_the_tests(Hadoop(tmp_path / "other")) as cluster:
        yield cluster


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder to be all of PATH: no Java, no Maven, no apt-get."""
    directory = tmp_path / "path"
    directory.mkdir()
    for tool in ("bash", "chmod", "dirname", "mkdir", "nsenter", "true", "unshare"):
        (directory / tool).symlink_to(shutil.which(tool) or f"no {tool}")
    return directory


def add_program(directory: Path, name: str, script: str) -> None:
    (directory / name).write_text(f"#!/usr/bin/env bash\n{script}")
    (directory / name).chmod(0o755)


def pids(cluster: Hadoop) -> dict[str, int]:
    """The daemons that run, by the status."""
    printed = cluster.dev("status", check=False).stdout.decode()
    return {name: int(pid) for name, pid in re.findall(r"^(\S+) +pid (\d+)$", printed, re.M)}


def processes_in(directory: Path) -> list[str]:
    """All processes of this machine that name the folder in their arguments or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if f"{directory}/home".encode() in text:
            found.append(process.name)
    return found


def wait_for(log: Path, up: subprocess.Popen[bytes]) -> None:
    """Returns when a daemon began its log."""
    while not (log.exists() and log.stat().st_size):
        assert up.poll() is None
        time.sleep(0.05)


def sleeping_in(cluster: Hadoop) -> subprocess.Popen[bytes]:
    """A command that has begun in the cluster, and does not end by itself."""
    process = cluster.start("bash", "-c", "echo here; exec sleep 600")
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    return process


def last_line(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode().splitlines()[-1]


def test_a_cluster_that_is_up_says_so_and_stays_as_it_is(hadoop: Hadoop) -> None:
    before = pids(hadoop)
    assert list(before) == DAEMONS
    assert hadoop.dev("status").stdout.endswith(b"a job can run\n")
    again = hadoop.dev("up")
    assert again.stdout == b""
    said = again.stderr.decode()
    assert ": runs already, 6 processes; data and logs are in " in said
    assert "bin/hadoop-dev down stops it" in said
    hadoop.dev("up", "s3")
    assert pids(hadoop) == before


def test_what_daemons_leave_in_tmp_is_in_the_directory_so_that_clusters_do_not_meet(hadoop: Hadoop) -> None:
    names = [path.name for path in (hadoop.directory / "tmp").iterdir()]
    assert "node-attribute" in names  # of the ResourceManager, at one place for all that a user starts
    assert [name for name in names if name.startswith("jetty-")]


def test_commands_run_with_the_variables_in_a_network_with_nothing_but_loopback(hadoop: Hadoop) -> None:
    assert hadoop.environ["HADOOP_HOME"] == str(hadoop.home)
    assert hadoop.environ["AWS_ENDPOINT_URL"] == "http://127.0.0.1:9878"
    printed = hadoop.run("env", env={"HTTPS_PROXY": "http://outside", "OF_THE_TEST": "a b"}).stdout.decode()
    found = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    assert {name: found.get(name) for name in hadoop.environ} == hadoop.environ
    assert found["OF_THE_TEST"] == "a b"
    assert "HTTPS_PROXY" not in found
    devices = hadoop.run("cat", "/proc/net/dev").stdout.decode().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]
    assert hadoop.run("hadoop", "version").stdout.startswith(b"Hadoop 3.4.2\n")


def test_the_status_of_a_command_is_that_of_run(hadoop: Hadoop) -> None:
    assert hadoop.run("bash", "-c", "exit 7", check=False).returncode == 7
    with sleeping_in(hadoop) as process:
        process.terminate()
        assert process.wait() == -signal.SIGTERM
    within = hadoop.run(HADOOP_DEV, "down", check=False)
    assert (within.returncode, within.stderr.count(b"\n")) == (1, 1)
    assert b"run bin/hadoop-dev outside of it" in within.stderr


def test_run_joins_the_network_of_a_daemon_for_a_task_may_end_at_any_moment() -> None:
    script = """
import os, sys
sys.path.insert(0, sys.argv[1])
import hadoop_dev
from own_network import Process
ended = Process(2**22 + 1, b"YarnChild")
hadoop_dev.members = lambda: [ended, Process(os.getpid(), b"java\\0-Dproc_namenode\\0")]
hadoop_dev.variables = dict
os.execvpe = lambda _, argv, env: print(*argv)
hadoop_dev.run(["true"])
"""
    argv = [sys.executable, "-c", script, str(HADOOP_DEV.parent)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("nsenter --net=/proc/") and ended.stdout.endswith(" -- true\n")


def test_files_go_to_hdfs_and_to_s3_and_come_back_as_they_were(hadoop: Hadoop, tmp_path: Path) -> None:
    content = bytes(range(256)) * 4096
    (tmp_path / "file").write_bytes(content)
    hadoop.run("hadoop", "fs", "-put", tmp_path / "file", "/file")
    assert hadoop.run("hdfs", "dfs", "-cat", "/file").stdout == content
    hadoop.run(sys.executable, "-c", BUCKET)
    hadoop.run("hadoop", "fs", "-put", tmp_path / "file", "s3a://words/file")
    assert hadoop.run("hadoop", "fs", "-cat", "s3a://words/in/a b.txt", "s3://words/file").stdout == (
        b"by boto3" + content
    )


def test_a_broken_cluster_is_seen_and_cleaned_while_another_runs_beside_it(
    hadoop: Hadoop, other: Hadoop
) -> None:
    with other.start_dev("up") as up:
        wait_for(other.home / "logs/resourcemanager.log", up)
        os.killpg(up.pid, signal.SIGKILL)
    half = other.dev("status", check=False)
    assert half.returncode == 1
    assert "is not running; run `bin/hadoop-dev up` to restart the cluster" in last_line(half)
    other.dev("up")
    whole = pids(other)
    assert list(whole) == DAEMONS[:-1]
    other.dev("up", "s3")
    assert {**whole, "s3": 0} == {**pids(other), "s3": 0}
    assert set(whole.values()).isdisjoint(pids(hadoop).values())

    os.kill(whole["nodemanager"], signal.SIGKILL)
    broken = other.dev("status", check=False)
    assert broken.returncode == 1
    assert b"nodemanager     not running\n" in broken.stdout
    assert last_line(broken).startswith("hadoop-dev: nodemanager is not running; ")

    with sleeping_in(other) as left:
        other.dev("down")
        assert left.wait() == -signal.SIGKILL
    assert processes_in(other.directory) == []
    assert not (other.directory / "hdfs").exists()
    assert list(pids(hadoop)) == DAEMONS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_up_leaves_nothing_behind(other: Hadoop, number: signal.Signals) -> None:
    with other.start_dev("up") as up:
        wait_for(other.home / "logs/datanode.log", up)
        if number == signal.SIGINT:
            os.killpg(up.pid, number)  # as a terminal does
        else:
            up.terminate()
        stderr = up.communicate()[1]
    assert (up.returncode, stderr) == (128 + number, b"")
    assert processes_in(other.directory) == []
    assert not (other.directory / "hdfs").exists()


def test_a_daemon_that_ends_is_one_line(other: Hadoop, tmp_path: Path) -> None:
    java = tmp_path / "java"
    (java / "bin").mkdir(parents=True)
    (java / "release").write_text('JAVA_VERSION="17.0.1"\n')
    add_program(java / "bin", "java", "echo its reason; exit 3")
    done = other.dev("up", env={"JAVA_HOME": str(java)}, check=False)
    log = other.home / "logs/format.log"
    assert (done.returncode, log.read_text()) == (1, "its reason\n")
    assert last_line(done) == f"hadoop-dev: HDFS could not be formatted; see {log}"
    assert processes_in(other.directory) == []


def test_daemons_start_with_the_archive_of_classes(hadoop: Hadoop) -> None:
    rows = (hadoop.home / "etc/hadoop/classes.sh").read_text().splitlines()[-3:]
    found = dict(row.split("=", 1) for row in rows)
    for name in ("namenode", "nodemanager"):
        assert found["archive"] in Path(f"/proc/{pids(hadoop)[name]}/maps").read_text()
    assert Path(found["jars"]).is_file()


def test_the_node_manager_starts_no_chmod_for_the_files_of_a_job(hadoop: Hadoop) -> None:
    """The settings of all are in its own, too. Its class gives the rights that Hadoop's gives."""
    command = Path(f"/proc/{pids(hadoop)['nodemanager']}/cmdline").read_text().split("\0")
    classes = command[command.index("-cp") + 1]
    done = hadoop.run("java", "-cp", classes, CHMOD, hadoop.directory / "rights")
    assert done.stdout.decode().splitlines() == ["hdfs://127.0.0.1:9000 QuickLocalFs", "r-xr-x---"]


def test_a_cluster_that_is_not_up_says_how_it_is_started(other: Hadoop) -> None:
    for verb in (["run", "true"], ["env"]):
        done = other.dev(*verb, check=False)
        assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
        assert b"start one with `bin/hadoop-dev up`" in done.stderr
    assert other.dev("status", check=False).returncode == 1
    assert other.dev("down").stderr == b""


def test_a_wrong_verb_is_a_usage_error(other: Hadoop) -> None:
    for verb in ([], ["up", "s4"], ["run"], ["status", "x"]):
        done = other.dev(*verb, check=False)
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"up [s3]" in other.dev("--help").stdout


def test_a_directory_that_hadoop_cannot_have_is_refused(tmp_path: Path) -> None:
    done = Hadoop(tmp_path / "a folder").dev("up", check=False)
    assert done.returncode == 1
    assert "Hadoop allows no space or comma in a path" in last_line(done)


def test_a_download_that_fails_is_one_line(tmp_path: Path) -> None:
    env = {
        "CDXMILL_HADOOP_DEV": str(tmp_path / "other"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "MAVEN_OPTS": f"-Dmaven.repo.local={tmp_path / 'repository'}",
    }
    unreachable = ["unshare", "--net", "--map-root-user", str(HADOOP_DEV), "up"]
    done = subprocess.run(unreachable, env={**os.environ, **env}, capture_output=True, check=False)
    assert done.returncode == 1
    assert last_line(done).startswith(
        "hadoop-dev: Maven could not download the jars; check the network: [ERROR] "
    )


def test_a_jar_that_was_changed_is_named(hadoop: Hadoop, other: Hadoop, tmp_path: Path) -> None:
    jars = (hadoop.home / "share/hadoop/common/lib/hadoop-common-3.4.2.jar").resolve().parent
    copy = tmp_path / "cache/cdxmill" / jars.name
    copy.mkdir(parents=True)
    for jar in jars.iterdir():
        (copy / jar.name).symlink_to(jar)
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    changed = copy / "hadoop-hdfs-3.4.2.jar"

    def reason() -> str:
        done = other.dev("up", env=env, check=False)
        assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
        return done.stderr.decode()

    changed.unlink()
    assert f"{changed}: missing; delete {copy} and try again" in reason()
    changed.write_bytes(b"not what it was")
    assert f"{changed}: SHA-256 differs from " in reason()
    changed.rename(copy / "additional.jar")
    changed.symlink_to(jars / changed.name)
    assert f"{copy}/additional.jar: not listed in " in reason()


def test_what_is_not_there_is_installed_or_named(other: Hadoop, path: Path, tmp_path: Path) -> None:
    env = {
        "PATH": str(path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "JAVA_HOME": str(Path(shutil.which("java") or "no java").resolve().parents[1]),
        "CDXMILL_VENV": sys.prefix,
    }

    def reason() -> str:
        done = other.dev("up", env=env, check=False)
        assert done.returncode == 1
        return last_line(done)

    advice = "hadoop-dev: no Maven found; install it (Debian: apt-get install maven)"
    assert reason() == advice
    add_program(path, "apt-get", "echo E: no such package; exit 100")
    assert reason() == f"{advice}; apt-get: E: no such package"
    maven = 'for last; do :; done; echo x >"${last#*=}/hadoop-hdfs-3.4.2.jar"'
    add_program(path, "apt-get", f"printf '%s' '#!/bin/bash\n{maven}' >{path}/mvn; chmod +x {path}/mvn")
    assert "delete it from Maven's repository, ~/.m2, and try again" in reason()
    assert [found.name for found in (tmp_path / "cache/cdxmill").iterdir()] == ["lock"]
