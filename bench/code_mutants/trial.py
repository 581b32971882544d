"""Run the tests on a mutant: in a copy of the checkout, in a process that begins with the libraries imported."""

from __future__ import annotations

import difflib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pytest

from .changes import Mutant

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("bench", "bin", "cdxmill", "conf", "docs", "jobs", "tests")
_LIBRARIES = ("hypothesis", "boto3", "warcio", "zstandard", "urllib3", "moto.server")
_LEAST_SECONDS, _FACTOR = 20, 5
"""A mutant may take this much CPU time, and this many times what the tests take without a fault."""
_PATIENCE = 600.0
"""Seconds, for a mutant that waits for ever, besides those that the tests take without a fault."""


class Lab:
    """A copy of the checkout, whose files are changed one at a time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        skipped = shutil.ignore_patterns("__pycache__", "corpora", "measured")
        for name in _COPIED:
            shutil.copytree(ROOT / name, directory / name, ignore=skipped, symlinks=True)
        for path in ROOT.iterdir():
            if path.is_file() and not path.name.startswith("."):
                shutil.copy2(path, directory)
        for name in _LIBRARIES:
            with suppress(ImportError):
                import_module(name)
        self._seconds: dict[tuple[str, ...], float] = {}
        self._patience: dict[tuple[str, ...], float] = {}
        self._failing: set[tuple[str, ...]] = set()

    def is_noticed(self, mutant: Mutant, tests: tuple[str, ...]) -> bool:
        """Whether a test fails. Raises ValueError if one fails without the fault."""
        if tests in self._failing:
            raise ValueError(f"{' '.join(tests)}: fails without a fault, see above")
        if tests not in self._seconds:
            before, start = _cpu_seconds(), time.monotonic()
            if self._status(tests, 3600, 3600):
                self._failing.add(tests)
                output = (self._directory / "output").read_text(errors="replace")
                raise ValueError(f"{' '.join(tests)}: fails without a fault:\n{output[-2000:]}")
            self._seconds[tests] = _cpu_seconds() - before
            self._patience[tests] = _PATIENCE + time.monotonic() - start
        path = self._directory / mutant.path
        source, times = path.read_bytes(), path.stat()
        path.write_bytes(mutant.apply(source))
        os.utime(path, (times.st_atime, times.st_mtime + 1000))  # what is compiled of the file is out of date
        try:
            most = _LEAST_SECONDS + round(_FACTOR * self._seconds[tests])
            return self._status(tests, most, self._patience[tests]) != 0
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _status(self, tests: tuple[str, ...], seconds: int, patience: float) -> int:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            self._become_tests(tests, seconds)
        end = time.monotonic() + patience
        try:
            while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
                time.sleep(0.05)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        return ended[1] if ended[0] else os.waitpid(child, 0)[1]

    def _become_tests(self, tests: tuple[str, ...], seconds: int) -> NoReturn:
        os.setsid()
        os.chdir(self._directory)
        os.environ |= {"PYTHONPATH": str(self._directory), "PYTHONDONTWRITEBYTECODE": "1"}
        os.environ.setdefault("CDXMILL_SAMPLES", str((ROOT / "../shared/samples").resolve()))
        sys.dont_write_bytecode = bool(self._seconds)  # the first run compiles the copy
        sys.path[:] = [str(self._directory), *(path for path in sys.path if path not in ("", str(ROOT)))]
        for name in [name for name in sys.modules if name.split(".")[0] in ("bench", "cdxmill", "tests")]:
            del sys.modules[name]
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(output, number)
        given = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={self._directory}/tmp"]
        given += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the libraries are imported
        given += ["--doctest-modules", "--rootdir", str(self._directory)]
        status = 99
        try:
            status = int(pytest.main([*given, *tests]))
        finally:
            os._exit(status)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def diff_of(mutant: Mutant) -> str:
    """The change as a diff."""
    source = (ROOT / mutant.path).read_bytes()
    old, new = (text.decode().splitlines(keepends=True) for text in (source, mutant.apply(source)))
    return "".join(difflib.unified_diff(old, new, mutant.path, mutant.path, n=1))


def changed_since(revision: str) -> list[str]:
    """The files of the package that have changed since a commit."""
    command = ["git", "diff", "--name-only", "--diff-filter=d", revision, "--", "cdxmill"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return [name for name in names if name.endswith(".py")]
