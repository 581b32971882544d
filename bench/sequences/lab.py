"""The directory of a sequence: what is in it, what a command does there, and what the command does to a fresh output."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from bench.sequences.steps import Change, Run, Step
from cdxmill.cli.main import main

Files = dict[str, bytes]
"""The files below a directory by their relative path, and empty or hidden directories, with a / at the end of their path."""

KILLED = -signal.SIGKILL
_CHANGES = ("os.rename", "os.remove", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate")
"""Audit events. So is `open`."""
_MOST_FRESH = 5000


class Done(NamedTuple):
    """How a command ended, and the files after it."""

    status: int
    stdout: bytes
    stderr: str
    files: Files


def files_in(directory: str) -> Files:
    """The files of a directory."""
    found: Files = {}
    start = len(directory) + 1
    for parent, directories, names in os.walk(directory):
        if parent != directory and (not (directories or names) or Path(parent).name.startswith(".")):
            found[f"{parent}/"[start:]] = b""
        for name in names:
            with open(f"{parent}/{name}", "rb") as file:  # noqa: PTH123 - half of the time of Path
                found[f"{parent}/{name}"[start:]] = file.read()
    return found


def _write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    directory.mkdir()
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(data)


def call(words: list[str]) -> tuple[int, bytes, str]:
    """Run `cdxmill` with these arguments in this process: exit status, stdout, stderr."""
    written, stderr = io.BytesIO(), io.StringIO()
    stdout = io.TextIOWrapper(written, "utf-8")
    before, sys.argv = sys.argv, ["cdxmill", *words]
    try:
        with redirect_stdout(stdout), redirect_stderr(stderr):
            status = main()
    finally:
        sys.argv = before
    stdout.flush()
    return status, written.getvalue(), stderr.getvalue()


def call_and_kill(words: list[str], number: int) -> int:
    """Run `cdxmill` in a child that is killed before its change of files with this number. Returns its exit status."""
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        _die_before_change(number)
        os._exit(call(words)[0])
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    while True:  # its processes end by themselves
        try:
            os.killpg(child, 0)
        except OSError:
            return status
        time.sleep(0.001)


def _die_before_change(number: int) -> None:
    """Kill this process before it changes a file below the working directory for the `number`th time."""
    below, me, count = f"{Path.cwd()}/", os.getpid(), 0

    def is_change(event: str, args: tuple[object, ...]) -> bool:
        if event == "open":
            return isinstance(args[2], int) and bool(args[2] & (os.O_WRONLY | os.O_RDWR))
        return event in _CHANGES

    def seen(event: str, args: tuple[object, ...]) -> None:
        nonlocal count
        if not is_change(event, args) or not isinstance(args[0], str):
            return
        count += not args[0].startswith("/") or args[0].startswith(below)
        if count == number and os.getpid() == me:
            os.kill(me, signal.SIGKILL)

    sys.addaudithook(seen)


class Lab:
    """A directory for sequences, `world`, which begins as `start` each time. The working directory is there."""

    def __init__(self, base: Path, start: Path) -> None:
        self.world = base / "w"
        self._base, self._start = base, start
        self._fresh: dict[tuple[tuple[str, ...], int], Done] = {}

    def reset(self) -> Files:
        """Begin again."""
        os.chdir(self._base)
        shutil.rmtree(self.world, ignore_errors=True)
        shutil.copytree(self._start, self.world)
        os.chdir(self.world)
        return files_in(str(self.world))

    def do(self, step: Step) -> Done:
        """Do a step. A change has status 0."""
        status, stdout, stderr = 0, b"", ""
        if isinstance(step, Change):
            step.do()
        elif step.kill:
            status = call_and_kill(step.words, step.kill)
        else:
            status, stdout, stderr = call(step.words)
        return Done(status, stdout, stderr, files_in(str(self.world)))

    def fresh(self, run: Run, files: Files) -> Done:
        """What a command does where only these files are."""
        key = tuple(run.words), hash(frozenset(files.items()))
        if key not in self._fresh:
            if len(self._fresh) == _MOST_FRESH:
                self._fresh.clear()
            with self._other_world(files):
                self._fresh[key] = self.do(run._replace(kill=0))
        return self._fresh[key]

    @contextmanager
    def _other_world(self, files: Files) -> Iterator[None]:
        """At the same path, because some outputs contain it."""
        aside = self._base / "aside"
        os.chdir(self._base)
        self.world.rename(aside)
        try:
            _write_files(self.world, files)
            os.chdir(self.world)
            yield
        finally:
            os.chdir(self._base)
            shutil.rmtree(self.world)
            aside.rename(self.world)
            os.chdir(self.world)
