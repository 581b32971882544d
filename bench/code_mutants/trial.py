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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pytest

from bench.compiled import assembly_of, compile_module

from .changes import C_ENDINGS, Mutant
from .reach import rank

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("bench", "bin", "cdxmill", "conf", "docs", "jobs", "tests")
_LIBRARIES = ("hypothesis", "boto3", "warcio", "zstandard", "urllib3", "moto.server")
_SECONDS = 90
"""CPU time that one test may take: with a mutant, a loop may have no end."""
_LARGEST = 8 << 30
"""Bytes of a file: with a mutant, a loop may write without end."""
_FIRST = 12
"""Tests that are tried before all others: they need a few files only, and mostly notice."""
_PATIENCE = 300.0
"""Seconds for one test: a mutant may wait for ever."""
_ENDINGS = (".py", *C_ENDINGS)


def copy_checkout(directory: Path) -> None:
    """Copy what the tests need."""
    skipped = shutil.ignore_patterns("corpora", "measured")
    for name in _COPIED:
        shutil.copytree(ROOT / name, directory / name, ignore=skipped, symlinks=True)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy2(path, directory)


class Lab:
    """A copy of the checkout, whose files are changed one at a time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        copy_checkout(directory)
        for name in _LIBRARIES:
            with suppress(ImportError):
                import_module(name)
        self._running = directory / "running"
        self._sound: set[str] = set()

    def is_noticed(self, mutant: Mutant, tests: Sequence[str], seconds: Mapping[str, float]) -> bool:
        """Whether a test fails. Raises ValueError if it fails without the fault, too."""
        watch = _Watch(self._running, mutant.path, seconds)
        with self._changed(mutant):
            if not any(self._status(some, watch) for some in (tests[:_FIRST], tests[_FIRST:]) if some):
                return False
        failed = self._running.read_text()
        if failed not in self._sound:
            alone = (failed.partition("::")[0],) if failed else (*tests, "--collect-only")
            if self._status(alone, _Watch(self._running, mutant.path, seconds, failed)):
                output = (self._directory / "output").read_text(errors="replace")
                raise ValueError(f"{failed or tests}: fails without a fault:\n{output[-2000:]}")
            self._sound.add(failed)
        return True

    @contextmanager
    def _changed(self, mutant: Mutant) -> Iterator[None]:
        path = self._directory / mutant.path
        source, times = path.read_bytes(), path.stat()
        path.write_bytes(mutant.apply(source))
        os.utime(path, (times.st_atime, times.st_mtime + 1000))  # what is compiled of the file is out of date
        try:
            with self._compiled() if mutant.path.endswith(C_ENDINGS) else nullcontext():
                yield
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    @contextmanager
    def _compiled(self) -> Iterator[None]:
        """With the module of the changed sources. `is_program` has seen the warnings."""
        module = self._directory / "cdxmill/stages/_native.abi3.so"
        kept = module.rename(module.with_suffix(".kept"))
        try:
            compile_module(self._directory / "cdxmill/native", module, "-O1", "-w")
            yield
        finally:
            kept.replace(module)

    def _status(self, tests: Sequence[str], watch: _Watch) -> int:
        sys.stdout.flush()
        self._running.write_text("")
        child = os.fork()
        if not child:
            self._become_tests(("-x", *tests), watch)
        try:
            while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
                if time.time() - self._running.stat().st_mtime > _PATIENCE:
                    break
                time.sleep(0.05)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        return ended[1] if ended[0] else os.waitpid(child, 0)[1]

    def _become_tests(self, tests: tuple[str, ...], watch: _Watch) -> NoReturn:
        os.setsid()
        os.chdir(self._directory)
        os.environ |= {"PYTHONPATH": str(self._directory), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        sys.path[:] = [str(self._directory), *(path for path in sys.path if path not in ("", str(ROOT)))]
        for name in [name for name in sys.modules if name.split(".")[0] in ("bench", "cdxmill", "tests")]:
            del sys.modules[name]
        output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(output, number)
        given = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={self._directory}/tmp"]
        given += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the libraries are imported
        given += ["--doctest-modules", "--rootdir", str(self._directory)]
        status = 99
        try:
            status = int(pytest.main([*given, *tests], [watch]))
        finally:
            os._exit(status)


class _Watch:
    """Tells which test is running, and limits its CPU time. Short tests come first, and those whose names are like that of a file."""

    def __init__(self, running: Path, path: str, seconds: Mapping[str, float], alone: str = "") -> None:
        self._running, self._path, self._alone = running, path, alone
        self._seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the tests in order; with `alone`, leave that one only."""
        items.sort(key=lambda item: rank(item.nodeid, self._path, self._seconds))
        if self._alone:
            items[:] = [item for item in items if item.nodeid == self._alone]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note the test."""
        self._running.write_text(nodeid)
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = round(used.ru_utime + used.ru_stime) + _SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST, resource.RLIM_INFINITY))


def is_program(mutant: Mutant) -> bool:
    """Whether a change of a C file compiles without a warning, and to something else than the file. In Python, all changes count."""
    if not mutant.path.endswith(C_ENDINGS):
        return True
    path = ROOT / mutant.path
    return assembly_of(mutant.apply(path.read_bytes()), path.parent) not in (None, _assembly(path))


@cache
def _assembly(path: Path) -> bytes | None:
    return assembly_of(path.read_bytes(), path.parent)


def diff_of(mutant: Mutant) -> str:
    """The change as a diff."""
    source = (ROOT / mutant.path).read_bytes()
    old, new = (text.decode().splitlines(keepends=True) for text in (source, mutant.apply(source)))
    return "".join(difflib.unified_diff(old, new, mutant.path, mutant.path, n=1))


def changed_since(revision: str) -> list[str]:
    """The files of the package that have changed since a commit."""
    command = ["git", "diff", "--name-only", "--diff-filter=d", revision, "--", "cdxmill"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return [name for name in names if name.endswith(_ENDINGS)]
