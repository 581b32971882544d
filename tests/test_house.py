"""Limits of size, and rules for names and docstrings."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import cdxmill

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
    """A function or method with its location."""

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    is_public: bool


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[Function]:
    """All functions of a file. A function inside a function, or inside a private class, is not public."""

    def inside(node: ast.AST, is_public: bool) -> Iterator[Function]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                here = is_public and not child.name.startswith("_")
                yield Function(f"{label(path)}:{child.name}", child, here)
                yield from inside(child, False)
            elif isinstance(child, ast.ClassDef):
                yield from inside(child, is_public and not child.name.startswith("_"))
            else:
                yield from inside(child, is_public)

    return inside(ast.parse(path.read_bytes()), True)


def lines_of(function: Function) -> int:
    """Lines of a function without its docstring."""
    body = function.node.body
    docstring = body[0] if ast.get_docstring(function.node) is not None else None
    not_counted = (docstring.end_lineno or 0) - docstring.lineno + 1 if docstring is not None else 0
    return (function.node.end_lineno or 0) - function.node.lineno + 1 - not_counted


def parameters_of(function: Function) -> int:
    arguments = function.node.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def test_sources_are_found() -> None:
    assert len(LIBRARY) > 40
    assert len(SOURCES) > 100


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_files_and_functions_are_short(path: Path) -> None:
    assert len(path.read_bytes().splitlines()) <= MOST_LINES
    long = {function.name for function in functions(path) if lines_of(function) > MOST_STATEMENT_LINES}
    assert long == set()
    crowded = {function.name for function in functions(path) if parameters_of(function) > MOST_PARAMETERS}
    assert crowded == set()


def test_no_module_has_a_vague_name() -> None:
    assert [label(path) for path in SOURCES if path.stem in VAGUE or path.parent.name in VAGUE] == []


@pytest.mark.parametrize("path", LIBRARY, ids=label)
def test_public_modules_classes_and_functions_have_a_docstring(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    assert ast.get_docstring(tree)
    classes = [
        node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert [node.name for node in classes if not ast.get_docstring(node)] == []
    public = [function for function in functions(path) if function.is_public]
    assert [function.name for function in public if not ast.get_docstring(function.node)] == []


def test_no_class_name_stands_for_two_things() -> None:
    homes: dict[str, list[str]] = {}
    for path in LIBRARY:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(label(path))
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
