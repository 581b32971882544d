"""Imports point down only, from a room to a lower floor of FLOORS.

`formats/` and `stages/` get bytes and return bytes. They never open paths, print, log or exit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from cdxmill.jobs.launcher.node_archive import LEFT_OUT

from .material.statements import inside, statements

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "cdxmill"

# The rooms from the bottom up. A room imports itself and lower floors, but not the other rooms of its floor.
FLOORS = (
    ("regex",),
    ("errors", "messages", "version"),
    ("capture", "options"),
    ("formats",),
    ("stages", "storage"),
    ("running",),
    ("inputs",),
    ("outputs", "tasks"),
    ("cluster",),
    ("search", "checks"),
    ("commands",),
    ("spark", "server"),
    ("jobs", "cli", "api"),
    ("__main__", "face"),
)
BELOW = {
    room: {below for floor in FLOORS[:number] for below in floor}
    for number, rooms in enumerate(FLOORS)
    for room in rooms
}
STAGES = (
    ("native", "window"),
    ("inflate",),
    ("records", "lines"),
    ("captures", "zipnum", "prefix_tree", "pages"),
    ("scan", "counting", "report"),
)
"""The same for the folders and modules of stages/."""
LOADER = "cdxmill.stages.native"
"""May open files: it compares the compiled module with its sources, and opens nothing of a user."""
FORBIDDEN_CALLS = {"open", "print", "input", "exit", "quit", "breakpoint"}
FORBIDDEN_MODULES = {
    "os",
    "sys",
    "pathlib",
    "shutil",
    "tempfile",
    "glob",
    "logging",
    "subprocess",
    "socket",
    "warnings",
}
FORBIDDEN_METHODS = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "unlink", "mkdir"}


def modules() -> dict[str, Path]:
    """All modules of the package by name."""
    found = {}
    for path in (ROOT / PACKAGE).rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_bytes())


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "face"


def imported(tree: ast.AST) -> Iterator[str]:
    """All imported modules, also those imported in functions or only for types."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            base = node.module or ""
            for name in node.names:
                inner = f"{base}.{name.name}"
                yield inner if inner in MODULES else base


def without_types(tree: ast.Module) -> ast.Module:
    """The module without imports that are only for types. They never run."""
    for node in statements(tree):
        for child in inside(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                child.body = []
    return tree


def own_imports(tree: ast.AST) -> set[str]:
    return {name for name in imported(tree) if name.split(".")[0] == PACKAGE}


def test_the_modules_are_found() -> None:
    assert {layer_of(module) for module in MODULES} == set(BELOW)
    assert len(MODULES) > 40


def wrong_imports(module: str) -> set[str]:
    layer = layer_of(module)
    allowed = BELOW[layer] | {layer}
    return {name for name in own_imports(parsed(module)) if layer_of(name) not in allowed}


def wrong_rooms(module: str) -> set[str]:
    """The rooms of stages/ that a module of it must not import."""
    floor = {room: number for number, rooms in enumerate(STAGES) for room in rooms}
    own = module.split(".")[2]
    rooms = {name.split(".")[2] for name in own_imports(parsed(module)) if name.startswith("cdxmill.stages.")}
    return {room for room in rooms - {own, "_native"} if floor[room] >= floor[own]}


def test_imports_point_down_only() -> None:
    assert {module: wrong for module in MODULES if (wrong := wrong_imports(module))} == {}


def test_imports_in_stages_point_down_only() -> None:
    found = [module for module in MODULES if module.startswith("cdxmill.stages.")]
    assert found
    assert {module: wrong for module in found if (wrong := wrong_rooms(module))} == {}


def test_there_are_no_import_cycles() -> None:
    trees = {module: without_types(ast.parse(path.read_bytes())) for module, path in MODULES.items()}
    graph = {module: own_imports(tree) - {module} for module, tree in trees.items()}
    assert list(TopologicalSorter(graph).static_order())


def test_no_task_of_a_node_imports_what_is_not_sent_to_it() -> None:
    known, left = set[str](), {name for name in MODULES if name.startswith(f"{PACKAGE}.jobs.nodes")}
    while left:
        known |= left
        left = {
            one for name in left for one in own_imports(without_types(parsed(name))) & MODULES.keys()
        } - known
    sent = {
        name for name in known for part in LEFT_OUT if MODULES[name].is_relative_to(ROOT / PACKAGE / part)
    }
    assert not sent
    assert all((ROOT / PACKAGE / part).exists() for part in LEFT_OUT)


def forbidden_in(tree: ast.AST) -> Iterator[str]:
    """The calls and imports of a module that only commands and storage may have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] in FORBIDDEN_MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
            yield str(node.module)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS
        ):
            yield f"{node.func.id}()"
        elif isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_METHODS:
            yield f".{node.attr}()"
        elif isinstance(node, ast.Raise) and "SystemExit" in ast.dump(node):
            yield "raise SystemExit"


def test_formats_and_stages_never_open_print_log_or_exit() -> None:
    found = [name for name in MODULES if layer_of(name) in ("formats", "stages") and name != LOADER]
    assert len(found) > 40
    assert {module: wrong for module in found if (wrong := list(forbidden_in(parsed(module))))} == {}


@pytest.mark.parametrize(
    "source",
    [
        "open('a')",
        "print(1)",
        "import logging",
        "from pathlib import Path",
        "import os.path",
        "raise SystemExit(1)",
        "x.read_bytes()",
    ],
)
def test_forbidden_code_is_found(source: str) -> None:
    assert len(list(forbidden_in(ast.parse(source)))) == 1
