"""Which tests run a line of the package: all tests are run once under coverage.py, whose context is the name of the test.

What was measured is kept in `build/reach`, with a copy of the sources: lines that have moved since are found again.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from difflib import Match, SequenceMatcher
from functools import cache
from pathlib import Path
from typing import NamedTuple

_SETTINGS = """[run]
source = {root}/cdxmill
parallel = true
data_file = {directory}/data/of
patch = _exit, fork, execv
context = ${{PYTEST_CURRENT_TEST-}}
disable_warnings = no-data-collected, module-not-imported, module-not-measured, couldnt-parse
"""
_MOST, _LONGEST = 120, 90.0
"""Tests of a line that are tried, and their seconds in all: a fault that so many do not notice is hardly noticed by the rest."""
_ABOVE = 12
"""Lines above a part of a statement, at most, that are looked at to find the line that coverage.py gives the statement."""


class Reach(NamedTuple):
    """The tests that run each line, by path and line; the seconds of the tests; and the sources that were measured."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]
    sources: Path

    @classmethod
    def load(cls, directory: Path) -> Reach:
        """What `measure` left."""
        with gzip.open(directory / "lines.json.gz", "rt") as file:
            names, seconds, found = json.load(file)
        lines = {
            path: {int(line): [names[number] for number in numbers] for line, numbers in known.items()}
            for path, known in found.items()
        }
        return cls(lines, dict(zip(names, seconds, strict=True)), directory / "sources")

    def of(self, path: str, line: int, source: str) -> list[str]:
        """The tests for a line of a file whose text is `source` now: the short ones, and those with names like the file's, first."""
        old = _moved(self.sources / path, source)(line)
        known = self.lines.get(path, {})
        near = next((at for at in range(old, old - _ABOVE, -1) if at in known), 0)
        tests = sorted(known.get(near, ()), key=lambda test: rank(test, path, self.seconds))
        return list(_within(tests[:_MOST], self.seconds))


def rank(test: str, path: str, seconds: Mapping[str, float]) -> float:
    """The seconds of a test, less if its file is named like the one that has changed."""
    alike = len(_words(Path(path)) & _words(Path(test.partition("::")[0])))
    return (0.05 + seconds.get(test, 1.0)) / (1 + 9 * alike)


def _words(path: Path) -> set[str]:
    """The words in the name of a file, by their first letters: change and changed are alike."""
    return {word[:5] for word in path.stem.split("_")} - {"test"}


def _within(tests: Iterable[str], seconds: Mapping[str, float]) -> Iterator[str]:
    total = 0.0
    for test in tests:
        total += seconds.get(test, 1.0)
        if total > _LONGEST:
            return
        yield test


def _moved(measured: Path, source: str) -> Callable[[int], int]:
    """Where a line was when it was measured."""
    old = measured.read_text() if measured.exists() else ""
    if old == source:
        return lambda line: line
    blocks = _blocks(old, source)  # of equal lines
    return lambda line: next((a + line - b for a, b, size in blocks if b < line <= b + size), 0)


@cache
def _blocks(old: str, new: str) -> list[Match]:
    return SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False).get_matching_blocks()


def measure(root: Path, directory: Path, processes: int) -> None:
    """Run all tests under coverage.py. Takes two or three times as long as without."""
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "data").mkdir(parents=True)
    settings = directory / "coveragerc"
    settings.write_text(_SETTINGS.format(root=root, directory=directory))
    shutil.copytree(root / "cdxmill", directory / "sources/cdxmill")
    variables = {"COVERAGE_PROCESS_START": str(settings), "CDXMILL_TIMES": str(directory)}
    options = ["-n", str(processes), "--dist", "loadgroup", "--no-loadscope-reorder", "--doctest-modules"]
    command = [sys.executable, "-m", "pytest", "-p", "bench.code_mutants.contexts", *options]
    subprocess.run(
        [*command, "tests", "cdxmill"],
        cwd=root,
        env={**os.environ, **variables, "CDXMILL_TIMES": str(directory)},
    )
    collect(root, directory, processes)


def collect(root: Path, directory: Path, processes: int) -> None:
    """Put what all processes of the run left into one file."""
    files = sorted(str(path) for path in (directory / "data").iterdir())
    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    with ProcessPoolExecutor(processes) as pool:
        for found in pool.map(_lines_of, files, chunksize=64):
            for path, line, test in found:
                lines[path][line].add(test)
    seconds = _seconds(directory)
    names = sorted(
        {test for known in lines.values() for tests in known.values() for test in tests} & seconds.keys()
    )
    numbers = {name: number for number, name in enumerate(names)}
    kept = {
        os.path.relpath(path, root): {
            line: sorted(
                (numbers[test] for test in tests if test in numbers), key=lambda one: seconds[names[one]]
            )
            for line, tests in known.items()
        }
        for path, known in lines.items()
    }
    with gzip.open(directory / "lines.json.gz", "wt") as file:
        json.dump([names, [round(seconds[name], 3) for name in names], kept], file)
    shutil.rmtree(directory / "data")


def _lines_of(path: str) -> list[tuple[str, int, str]]:
    """The file, line and test of all that one process ran."""
    import coverage

    data = coverage.CoverageData(path)
    data.read()
    return [
        (name, line, test)
        for name in data.measured_files()
        for line, contexts in data.contexts_by_lineno(name).items()
        for test in {_test_in(context) for context in contexts} - {""}
    ]


def _test_in(context: str) -> str:
    """The name of a test. A server that was started for one test may work for another, which comes last."""
    last = context.rpartition("|")[2]
    return last.removesuffix(" (call)").removesuffix(" (setup)").removesuffix(" (teardown)").partition("@")[0]


def _seconds(directory: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for path in directory.glob("times.*.json"):
        found |= json.loads(path.read_text())
    return found
