"""Which test files run a function of the package: each is run once with a mark in all functions.

A mutant is tried with the test files alone that run its function. The result is kept in `build`: a test file that has changed is
run again, and `--measure` runs all again, after functions have moved.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

MODULE = """import os
_known = set()
_open, _write, _close = os.open, os.write, os.close
def reached(name):
    if name not in _known:
        _known.add(name)
        try:
            file = _open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            _write(file, name.encode() + b"\\n")
            _close(file)
        except OSError:
            pass
"""
"""A mark writes the name of its function when a process comes to it first. It works in each child of a test, too."""
_OTHERS = 8
"""Test files besides those of tests.tsv: what a function does often shows in tests of something else first."""
_IMPORT = "from cdxmill._reached import reached as _reached\n"


class Reached(NamedTuple):
    """What was measured of a test file: the hash of its content, its seconds and the functions that it runs."""

    content: str
    seconds: float
    functions: frozenset[str]


def marked(path: str, source: bytes) -> bytes:
    """A file of the package with a mark in each function.

    >>> print(marked("a.py", b"def f():\\n    if x:\\n        pass\\n").decode(), end="")
    from cdxmill._reached import reached as _reached
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


class Reach:
    """What is known of the test files."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path, self._root = path, root
        self._known: dict[str, Reached] = {}
        if path.exists():
            for test, (content, seconds, functions) in json.loads(path.read_text()).items():
                self._known[test] = Reached(content, seconds, frozenset(functions))

    def content(self, test: str) -> str:
        """The hash of a test file."""
        return hashlib.sha256((self._root / test).read_bytes()).hexdigest()

    def unknown(self, tests: Iterable[str]) -> list[str]:
        """The test files that have to be measured."""
        return [
            one for one in tests if one not in self._known or self._known[one].content != self.content(one)
        ]

    def add(self, test: str, seconds: float, functions: frozenset[str]) -> None:
        """Keep what was measured."""
        self._known[test] = Reached(self.content(test), seconds, functions)
        self._path.parent.mkdir(exist_ok=True)
        kept = {
            name: (one.content, one.seconds, sorted(one.functions))
            for name, one in sorted(self._known.items())
        }
        self._path.write_text(json.dumps(kept))

    def seconds(self, test: str) -> float:
        """How long a test file takes; 0 if that is not known."""
        return self._known[test].seconds if test in self._known else 0.0

    def of(self, function: str, tests: Iterable[str]) -> tuple[str, ...]:
        """The tests for a function: those of `tests` that run it or may do so, and the shortest others that run it.

        All of `tests`, if none is known to run it: the function may be a new one.
        """
        tests = tuple(tests)
        runs = [one for one, known in self._known.items() if function in known.functions]
        others = sorted((one for one in runs if one not in tests and self.exists(one)), key=self.seconds)
        chosen = tuple(one for one in tests if one in runs or one not in self._known)
        return (*chosen, *others[:_OTHERS]) if runs else tests

    def exists(self, test: str) -> bool:
        """Whether a test file is still there."""
        return (self._root / test).exists()


def files_of(entries: Iterable[str], root: Path) -> tuple[str, ...]:
    """The test files of directories and files. Doctests stay as they are given: they take no time."""
    found: list[str] = []
    for entry in entries:
        path = root / entry
        if entry.startswith("tests") and path.is_dir():
            found += [str(one.relative_to(root)) for one in sorted(path.rglob("test_*.py"))]
        else:
            found.append(entry)
    return tuple(dict.fromkeys(found))
