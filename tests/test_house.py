"""Limits of size, and rules for names and docstrings."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import cdxmill

from .material.statements import inside, statements

ROOT = Path(__file__).resolve().parents[1]
DIRECTORIES = ("cdxmill", "jobs", "bin", "bench", "tests")
SOURCES = sorted(
    path
    for directory in DIRECTORIES
    for path in (ROOT / directory).rglob("*.py")
    if "corpora" not in path.parts
)
LIBRARY = [
    path for path in SOURCES if path.is_relative_to(ROOT / "cdxmill") or path.is_relative_to(ROOT / "jobs")
]

MOST_LINES, MOST_STATEMENT_LINES, MOST_PARAMETERS = 400, 40, 7
VAGUE = {"utils", "util", "common", "helpers", "helper", "core", "others", "misc", "tools", "base"}


class Function(NamedTuple):
    """A function or method with its location. Lines are without its docstring."""

    name: str
    lines: int
    parameters: int
    has_docstring: bool
    is_public: bool


class Source(NamedTuple):
    """What the rules ask of a file. Its tree is not kept: all trees would take more than a gigabyte."""

    has_docstring: bool
    functions: list[Function]
    classes: list[tuple[str, bool]]
    """Their names, and whether they have a docstring."""


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def read(path: Path) -> Source:
    tree = ast.parse(path.read_bytes())
    classes = [node for node in statements(tree) if isinstance(node, ast.ClassDef)]
    return Source(
        has_docstring(tree),
        list(functions(path, tree)),
        [(node.name, has_docstring(node)) for node in classes],
    )


def has_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return bool(ast.get_docstring(node))


def functions(path: Path, node: ast.AST, is_public: bool = True) -> Iterator[Function]:
    """All functions of a file. A function inside a function, or inside a private class, is not public."""
    for child in inside(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            here = is_public and not child.name.startswith("_")
            name = f"{label(path)}:{child.name}"
            yield Function(name, lines_of(child), parameters_of(child), has_docstring(child), here)
            yield from functions(path, child, False)
        else:
            is_hidden = isinstance(child, ast.ClassDef) and child.name.startswith("_")
            yield from functions(path, child, is_public and not is_hidden)


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    docstring = function.body[0] if ast.get_docstring(function) is not None else None
    not_counted = (docstring.end_lineno or 0) - docstring.lineno + 1 if docstring is not None else 0
    return (function.end_lineno or 0) - function.lineno + 1 - not_counted


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = function.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def test_sources_are_found() -> None:
    assert len(LIBRARY) > 40
    assert len(SOURCES) > 100


def test_files_and_functions_are_short() -> None:
    """One test for all files: as many tests as files cost more than what they check."""
    assert [label(path) for path in SOURCES if len(path.read_bytes().splitlines()) > MOST_LINES] == []
    found = [function for path in SOURCES for function in read(path).functions]
    assert len(found) > 5000
    assert [one.name for one in found if one.lines > MOST_STATEMENT_LINES] == []
    assert [one.name for one in found if one.parameters > MOST_PARAMETERS] == []


def test_no_module_has_a_vague_name() -> None:
    assert [label(path) for path in SOURCES if path.stem in VAGUE or path.parent.name in VAGUE] == []


def test_public_modules_classes_and_functions_have_a_docstring() -> None:
    assert [label(path) for path in LIBRARY if not read(path).has_docstring] == []
    classes = [(label(path), *one) for path in LIBRARY for one in read(path).classes]
    assert [one for one in classes if not one[1].startswith("_") and not one[2]] == []
    found = [function for path in LIBRARY for function in read(path).functions]
    assert [one.name for one in found if one.is_public and not one.has_docstring] == []


def test_no_class_name_stands_for_two_things() -> None:
    homes: dict[str, list[str]] = {}
    for path in LIBRARY:
        for name, _ in read(path).classes:
            homes.setdefault(name, []).append(label(path))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_code_says_directory() -> None:
    assert [label(path) for path in LIBRARY if re.search("folder", path.read_text(), re.I)] == []


def test_there_are_no_todo_marks() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    assert [label(path) for path in LIBRARY if marks.search(path.read_text())] == []


def test_no_file_has_two_sides_of_a_merge() -> None:
    mark = re.compile(rb"^(<{7}|>{7}) ", re.M)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout
    paths = [ROOT / name for name in os.fsdecode(listed).split("\0") if name]
    assert [path for path in paths if path.is_file() and mark.search(path.read_bytes())] == []


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert newest[1] == cdxmill.__version__


def test_mypy_checks_all_directories() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    skipped = [name for override in settings["mypy"]["overrides"] for name in override["module"]]
    assert [name for name in skipped if name.startswith("cdxmill")] == []
    assert settings["mypy"]["strict"] is True
    assert set(settings["mypy"]["files"]) >= {"cdxmill", "jobs", "bench", "tests"}
