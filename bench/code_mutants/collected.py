"""Tests that are collected once: a process that forks for each trial, so that a trial takes as long as its tests do."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import NamedTuple, NoReturn

import pytest

from .changes import Mutant
from .reach import Reach
from .swap import function_of, functions_below, swap

_SECONDS = 60
"""CPU time that one test may take: with a mutant, a loop may have no end."""
_LARGEST = 8 << 30
"""Bytes of a file: with a mutant, a loop may write without end."""
_PATIENCE = 240.0
"""Seconds for one test: a mutant may wait for ever."""
_CANNOT_SWAP = 98
_ROOTS = ("bench", "cdxmill", "tests")


class Trial(NamedTuple):
    """What is to be run: the tests that can see a mutant, or one test."""

    mutant: Mutant
    is_swapped: bool
    """Functions that are imported get the code of the changed file."""
    test: str = ""
    without: frozenset[str] = frozenset()
    """Tests that fail without a fault."""


class Outcome(NamedTuple):
    """How a trial ended: its exit status, and the test that ran last."""

    status: int
    test: str

    @property
    def is_known(self) -> bool:
        """Whether the tests ran with the fault: False if an imported function could not be changed."""
        return self.status != _CANNOT_SWAP


class Collected:
    """A process that has collected tests of a checkout. It ends with `close`, or with its parent."""

    def __init__(self, checkout: Path, paths: Iterable[str], reach: Reach) -> None:
        self._here, there = multiprocessing.Pipe()
        self._output = checkout / "output"
        sys.stdout.flush()
        self._process = os.fork()
        if not self._process:
            self._here.close()
            _become(checkout, paths, _Trials(there, checkout, reach))
        there.close()
        self.is_ready = False
        with suppress(EOFError):
            self.is_ready = self._here.recv()

    def run(self, trial: Trial) -> Outcome:
        """Run a trial. If the tests could not be collected, that is its outcome. Raises RuntimeError if it ends before its first test."""
        if not self.is_ready:
            return Outcome(99, "")
        self._here.send(trial)
        outcome = Outcome(*self._here.recv())
        if outcome.status and outcome.is_known and not outcome.test:
            raise RuntimeError(self.output())
        return outcome

    def output(self) -> str:
        """What the last trial has printed."""
        return self._output.read_text(errors="replace")[-4000:]

    def close(self) -> None:
        """End the process."""
        self._here.close()
        os.waitpid(self._process, 0)


def _become(checkout: Path, paths: Iterable[str], trials: _Trials) -> NoReturn:
    os.chdir(checkout)
    os.environ |= {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    own = [path for path in sys.path if path and path != str(Path(__file__).parents[2])]
    sys.path[:] = [str(checkout), *own]
    for name in [name for name in sys.modules if name.split(".")[0] in _ROOTS]:
        del sys.modules[name]
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    for number in (1, 2):
        os.dup2(output, number)
    given = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={checkout}/tmp"]
    given += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the libraries are imported
    given += ["--doctest-modules", "--rootdir", str(checkout)]
    status = 99
    try:
        sys.setprofile(trials.note_call)
        # pytest 9.1 loses fixtures if the files of a folder are not one after the other
        status = int(pytest.main([*given, *sorted(paths)], [trials]))
    finally:
        os._exit(status)


class _Trials:
    """A plug-in of pytest that waits for trials in place of running the tests. A child runs each."""

    def __init__(self, requests: Connection, checkout: Path, reach: Reach) -> None:
        self._requests, self._checkout, self._reach = requests, checkout, reach
        self._running = checkout / "running"
        self._called: set[CodeType] = set()
        self._functions: list[FunctionType] = []

    def note_call(self, frame: FrameType, event: str, _: object) -> None:
        """Note what runs while the tests are collected: a change after that may come too late."""
        if event == "call":
            self._called.add(frame.f_code)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run trials until there are no more. The child of a trial leaves here, too, and ends as pytest does."""
        sys.setprofile(None)
        self._functions = functions_below(self._checkout)
        gc.freeze()  # else each child copies what it looks through for garbage
        self._requests.send(True)
        with suppress(EOFError):
            while True:
                trial = self._requests.recv()
                chosen = self._chosen(session.items, trial)
                self._running.write_text("")
                if not (child := os.fork()):
                    os.setsid()
                    os.ftruncate(1, 0)
                    self._begin(trial)
                    _run(chosen, session)
                    break
                self._requests.send(tuple(self._outcome(child)))  # modules were imported anew
        return True

    def _begin(self, trial: Trial) -> None:
        if trial.is_swapped:
            file = self._checkout / trial.mutant.path
            try:
                function = function_of(file.read_bytes(), str(file), trial.mutant)
                swap(function, self._functions, self._called)
            except ValueError:
                os._exit(_CANNOT_SWAP)

    def _chosen(self, items: Collection[pytest.Item], trial: Trial) -> list[pytest.Item]:
        known = {item.nodeid: item for item in items}
        names = [trial.test] if trial.test else self._reach.tests_for(trial.mutant, known)
        return [known[name] for name in names if name not in trial.without]

    def _outcome(self, child: int) -> Outcome:
        try:
            while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
                if time.time() - self._running.stat().st_mtime > _PATIENCE:
                    break
                time.sleep(0.01)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        status = ended[1] if ended[0] else os.waitpid(child, 0)[1]
        return Outcome(os.waitstatus_to_exitcode(status), self._running.read_text())

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note the test."""
        self._running.write_text(nodeid)
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = round(used.ru_utime + used.ru_stime) + _SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST, resource.RLIM_INFINITY))


def _run(items: list[pytest.Item], session: pytest.Session) -> None:
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            break
