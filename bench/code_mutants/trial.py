"""Run the tests on a mutant, in a copy of the checkout."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from bench.compiled import assembly_of, compile_module

from .changes import C_ENDINGS, Mutant
from .collected import Collected, Outcome, Trial
from .reach import Reach

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("bench", "bin", "cdxmill", "conf", "docs", "jobs", "tests")
_LIBRARIES = ("hypothesis", "boto3", "warcio", "zstandard", "urllib3", "moto.server")
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
    """A copy of the checkout, whose files are changed one at a time, with its tests."""

    def __init__(self, directory: Path, mutants: Sequence[Mutant], reach: Reach) -> None:
        self._directory, self._reach = directory, reach
        copy_checkout(directory)
        for name in _LIBRARIES:
            with suppress(ImportError):
                import_module(name)
        self._collected = self._collect(mutants)
        if not self._collected.is_ready:
            raise RuntimeError(self._collected.output())
        self._sound: set[str] = set()
        self.unsound: set[str] = set()

    def is_noticed(self, mutant: Mutant) -> bool:
        """Whether a test fails that does not fail without the fault. Those that do are in `unsound`."""
        while failed := self._failed(mutant):
            if self._is_sound(mutant, failed):
                return True
            self.unsound.add(failed)
        return failed is not None

    def _is_sound(self, mutant: Mutant, test: str) -> bool:
        if test not in self._sound and self._collected.run(Trial(mutant, False, test)).status == 0:
            self._sound.add(test)
        return test in self._sound

    def _failed(self, mutant: Mutant) -> str | None:
        """The test that failed; it has no name if the tests could not be collected."""
        with self._changed(mutant):
            outcome = self._outcome(mutant)
        return outcome.test if outcome.status else None

    def _outcome(self, mutant: Mutant) -> Outcome:
        without = frozenset(self.unsound)
        if not mutant.path.endswith(C_ENDINGS):
            outcome = self._collected.run(Trial(mutant, True, without=without))
            if outcome.is_known:
                return outcome
        with closing(self._collect([mutant])) as collected:
            return collected.run(Trial(mutant, False, without=without))

    def _collect(self, mutants: Sequence[Mutant]) -> Collected:
        return Collected(self._directory, self._reach.files_for(mutants), self._reach)

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
