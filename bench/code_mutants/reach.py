"""Which tests run a function of the package: all tests are run once, in a copy of the checkout with a mark in each function.

A mark notes the test that runs, when a process comes to its function first. What was found is kept in `build/reach.json.gz`.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from .changes import Mutant
from .lists import seen_by

MODULE = """import os
known = set()
_open, _write, _close = os.open, os.write, os.close
def reached(name):
    if name not in known:
        known.add(name)
        try:
            test = os.environ.get("PYTEST_CURRENT_TEST", "")
            if "CDXMILL_CDX_SERVER" in os.environ:
                test = os.path.dirname(test.partition("::")[0]) + "/"
            file = _open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            _write(file, f"{{name}}\\t{{test}}\\n".encode())
            _close(file)
        except OSError:
            pass
"""
"""A mark writes in each child of a test, too. A CDX server answers several tests, so what it runs counts for all tests of the folder."""
_IMPORT = """try:
    from cdxmill._reached import reached as _reached
except ImportError:
    _reached = id
"""
"""A node of Hadoop gets only the files that its task needs."""
_LEAST = 0.01
"""Seconds that a test takes at least, with what pytest does for it."""
_VARIANTS = 4
_GROUP = re.compile(r"@[\w.-]+$")


class Reach(NamedTuple):
    """The tests that run each function, by its path and name; and the seconds of the tests."""

    functions: dict[str, list[str]]
    seconds: dict[str, float]
    longest: float = 90.0
    """Seconds for the tests of a function that are tried at most."""

    @classmethod
    def load(cls, path: Path, longest: float = longest) -> Reach:
        """What `measure` left. Without it, nothing is known."""
        if not path.exists():
            return cls({}, {}, longest)
        with gzip.open(path, "rt") as file:
            names, seconds, functions = json.load(file)
        found = {name: [names[number] for number in numbers] for name, numbers in functions.items()}
        return cls(found, dict(zip(names, seconds, strict=True)), longest)

    def of(self, path: str, function: str) -> list[str]:
        """The tests for a function: the short ones, and those with names like that of the file, first."""
        known = self.functions.get(f"{path} {function}", [])
        tests = mixed(sorted(known, key=lambda test: rank(test, path, self.seconds)), path)
        return list(self._within(tests))

    def _within(self, tests: Iterable[str]) -> Iterator[str]:
        total = 0.0
        for test in tests:
            total += max(self.seconds.get(test, 1.0), _LEAST)
            if total > self.longest:
                return
            yield test

    def tests_for(self, mutant: Mutant, tests: Collection[str]) -> list[str]:
        """The tests to try, of those that were collected: what runs the function, and then what was not measured.

        If no test is known to run the function, they are all those that `tests.tsv` names for the file.
        """
        known = [test for test in self.of(mutant.path, mutant.function) if test in tests]
        unknown = [test for test in tests if not known or test not in self.seconds]
        paths = seen_by(mutant.path)
        others = [test for test in unknown if is_below(test, paths)]
        return [*known, *sorted(others, key=lambda test: rank(test, mutant.path, self.seconds))]

    def files_for(self, mutants: Iterable[Mutant]) -> set[str]:
        """The files and folders with the tests to try."""
        mutants = list(mutants)
        functions = {(one.path, one.function) for one in mutants}
        known = {test.partition("::")[0] for function in functions for test in self.of(*function)}
        return known.union(*(seen_by(path) for path in {one.path for one in mutants}))


def is_below(test: str, paths: Iterable[str]) -> bool:
    """Whether a test is in one of the files or folders.

    >>> is_below("tests/a/test_b.py::test_c", ["tests/b", "tests/a"])
    True
    """
    file = test.partition("::")[0]
    return any(file == path or file.startswith(f"{path}/") for path in paths)


def mixed(tests: Iterable[str], path: str) -> list[str]:
    """The tests, some variants of each before further ones: else one test with hundreds of them would be all of them.

    All variants of tests for the changed file are among the first ones.

    >>> mixed(["f[1]", "f[2]", "f[3]", "f[4]", "f[5]", "g"], "a.py")
    ['f[1]', 'f[2]', 'f[3]', 'f[4]', 'g', 'f[5]']
    """
    turns: Counter[str] = Counter()
    ordered = []
    for test in tests:
        name = test.partition("[")[0]
        ordered.append((turns[name] // _VARIANTS, test))
        turns[name] += not _alike(test, path)
    return [test for _, test in sorted(ordered, key=itemgetter(0))]


def rank(test: str, path: str, seconds: Mapping[str, float]) -> float:
    """The order of a test: by its seconds. A test with a name like that of the changed file comes earlier."""
    return (0.05 + seconds.get(test, 1.0)) / (1 + 9 * _alike(test, path))


def _alike(test: str, path: str) -> int:
    """How many words the names of the test and of its file have in common with that of the changed file."""
    file, _, name = test.partition("[")[0].partition("::")
    return len(_words(path) & (_words(file) | _words(name)))


@cache
def _words(path: str) -> set[str]:
    """The words in the name of a file, by their first letters: change and changed are alike."""
    return {word[:5] for word in Path(path).stem.split("_")} - {"test"}


def name_of(test: str) -> str:
    """The name of a test without the group that xdist adds. The name may have an @, too.

    >>> name_of("tests/a.py::test_a[x@y]@group-1"), name_of("tests/a.py::test_a[x@y]")
    ('tests/a.py::test_a[x@y]', 'tests/a.py::test_a[x@y]')
    """
    return _GROUP.sub("", test)


def measure(copy: Path, result: Path, processes: int, tests: Iterable[str] = ("tests", "cdxmill")) -> None:
    """Run the tests of a copy of the checkout, which is changed. Takes a little longer than the tests do."""
    marks, times = copy / "marks", copy / "times"
    times.mkdir()
    for path in sorted((copy / "cdxmill").rglob("*.py")):
        path.write_bytes(marked(path.relative_to(copy).as_posix(), path.read_bytes()))
    (copy / "cdxmill/_reached.py").write_text(MODULE.format(path=str(marks)))
    options = ["-n", str(processes), "--dist", "loadgroup", "--no-loadscope-reorder", "--doctest-modules"]
    command = [sys.executable, "-m", "pytest", "-p", "bench.code_mutants.times", *options, *tests]
    places = os.pathsep.join((str(copy), os.environ.get("PYTHONPATH", "")))
    variables = {"PYTHONPATH": places, "CDXMILL_TIMES": str(times)}
    subprocess.run(command, cwd=copy, env=os.environ | variables, check=False)
    _collect(marks, times, result)


def _collect(marks: Path, times: Path, result: Path) -> None:
    seconds: dict[str, float] = {}
    for path in times.iterdir():
        seconds |= json.loads(path.read_text())
    names = sorted(seconds)
    numbers = {name: number for number, name in enumerate(names)}
    functions: dict[str, set[int]] = defaultdict(set)
    with marks.open(errors="replace") as file:
        for line in file:
            name, _, test = line.rstrip("\n").partition("\t")
            if test.endswith("/"):
                functions[name] |= {number for one, number in numbers.items() if one.startswith(test)}
            elif (number := numbers.get(name_of(test.rpartition(" (")[0]))) is not None:
                functions[name].add(number)
    result.parent.mkdir(exist_ok=True)
    with gzip.open(result, "wt") as out:
        found = {name: sorted(tests) for name, tests in sorted(functions.items())}
        json.dump([names, [round(seconds[name], 3) for name in names], found], out)


def marked(path: str, source: bytes) -> bytes:
    """A file of the package with a mark in each function.

    >>> print(marked("a.py", b"def f():\\n    if x:\\n        pass\\n").decode(), end="")
    try:
        from cdxmill._reached import reached as _reached
    except ImportError:
        _reached = id
    def f():
        _reached('a.py f')
        if x:
            pass
    """
    tree = ast.parse(source)
    lines = source.decode().splitlines(keepends=True)
    marks = sorted(_marks(path, tree.body, ()), reverse=True)
    for line, column, name in marks:
        text = lines[line - 1].encode()
        mark = f"_reached({name!r})".encode()
        between = b"; " if text[:column].strip() else b"\n" + b" " * column
        lines[line - 1] = (text[:column] + mark + between + text[column:]).decode()
    lines.insert(_after_future(tree), _IMPORT)
    return "".join(lines).encode()


def _after_future(tree: ast.Module) -> int:
    """The number of lines up to the imports of __future__ or the docstring."""
    kept = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    if not kept and ast.get_docstring(tree) is not None:
        return tree.body[0].end_lineno or 0
    return (kept[-1].end_lineno or 0) if kept else 0


def _marks(path: str, body: Iterable[ast.AST], within: tuple[str, ...]) -> Iterable[tuple[int, int, str]]:
    """The places of marks: line, column and the name of the function as a mutant has it."""
    for node in body:
        inner = within
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = (*within, node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found = node.body[ast.get_docstring(node) is not None :]
            if found:
                first = found[0]
                decorators = getattr(first, "decorator_list", [])
                line = min([first.lineno, *(one.lineno for one in decorators)])
                yield line, first.col_offset, f"{path} {'.'.join(inner)}"
        yield from _marks(path, ast.iter_child_nodes(node), inner)
