"""The commands also work where the system has nothing of what only Linux has: macOS. Here, those functions are hidden."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..material.processes import outliving

HIDE = """
import ctypes, os, pathlib, sys
del os.sched_getaffinity
for name in ("copy_file_range", "posix_fadvise", "posix_fallocate", "pidfd_open", "memfd_create", "eventfd"):
    vars(os).pop(name, None)
sys.platform = "darwin"

class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name in ("prctl", "renameat2"):
            raise AttributeError(name)
        return super().__getattr__(name)

ctypes.CDLL = Library

def absent(path):
    if str(path).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", str(path))

def hiding(function):
    def call(path, *args, **options):
        absent(path)
        return function(path, *args, **options)
    return call

import io
io.open, os.open, os.stat = hiding(io.open), hiding(os.open), hiding(os.stat)
"""
COMMAND = HIDE + "from cdxmill.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
SLEEPERS = (
    HIDE
    + """
import time
from cdxmill.running.processes import run_tasks

def work(number):
    os.write(1, b"%d\\n" % os.getpid())  # one write, as two processes write
    time.sleep(0.05)

for done in run_tasks(work, range(100_000), 2, lambda: None):
    pass
"""
)

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", COMMAND, *args]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_all_commands_work(run: Run, pywb_warcs: Path, tmp_path: Path) -> None:
    warcs = [pywb_warcs / "iana.warc.gz", pywb_warcs / "dupes.warc.gz"]
    run("index", "-o", "cdx", *warcs)
    run("sample", "-s", "3", "-o", "splits.txt", "cdx")
    run("zipnum", "--splits", "splits.txt", "-o", "one", "cdx")
    run("build", "-p", "2", "-s", "3", "-o", "two", *warcs)
    run("verify", "two")
    run("publish", "two", "three")
    lines = run("lookup", "three", "http://www.iana.org/*").stdout
    assert lines.count("\n") > 5
    assert "HTTP/1" in run("get", "--archives", pywb_warcs, "--headers", "two", "http://www.iana.org/").stdout
    assert (tmp_path / "one/cluster.json").is_file()


def test_a_cluster_is_replaced(run: Run, pywb_warcs: Path, tmp_path: Path) -> None:
    run("build", "-s", "2", "-o", "cluster", pywb_warcs / "iana.warc.gz")
    shutil.copy(tmp_path / "cluster/cluster.idx", tmp_path / "cluster/own")
    run("build", "-s", "2", "-o", "cluster", "--replace", pywb_warcs / "dupes.warc.gz")
    assert "com,example)/" in run("lookup", "cluster", "http://example.com/*").stdout
    assert (tmp_path / "cluster/own").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster"]


def test_workers_end_when_the_command_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", SLEEPERS], stdout=subprocess.PIPE)
    assert process.stdout is not None
    workers = set[int]()
    while len(workers) < 2:
        workers.add(int(process.stdout.readline()))
    process.kill()
    process.wait()
    process.stdout.close()
    assert outliving(workers) == []
