"""Imports point down only: cli -> options -> commands, jobs -> stages, storage -> formats -> capture -> errors.

`formats/` and `stages/` are given bytes and give bytes: they never open paths, print, log or exit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "cdxmill"

# What each layer may import besides itself; `version` is the package's own __init__.
BELOW = {
    "errors": set[str](),
    "version": set[str](),
    "capture": {"errors"},
    "formats": {"capture", "errors"},
    "stages": {"formats", "capture", "errors"},
    "storage": {"formats", "capture", "errors"},
    "commands": {"stages", "storage", "formats", "capture", "errors", "version"},
    "jobs": {"commands", "stages", "storage", "formats", "capture", "errors", "version"},
    "lookup_options": {"commands", "stages", "storage", "formats", "capture", "errors"},
    "options": {"commands", "stages", "storage", "formats", "capture", "errors"},
    "command_output": set[str](),
    "cluster_cli": {
        "command_output",
        "lookup_options",
        "options",
        "commands",
        "stages",
        "storage",
        "formats",
        "capture",
        "errors",
    },
    "cli": {
        "options",
        "lookup_options",
        "cluster_cli",
        "command_output",
        "commands",
        "stages",
        "storage",
        "formats",
        "capture",
        "errors",
        "version",
    },
    "__main__": {"cli"},
}
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
    """Every module of the package by name; jobs/ is installed as cdxmill.jobs."""
    found = {}
    for folder, prefix in ((ROOT / PACKAGE, PACKAGE), (ROOT / "jobs", f"{PACKAGE}.jobs")):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            names = [prefix, *(parts[:-1] if parts[-1] == "__init__" else parts)]
            found[".".join(names)] = path
    return found


MODULES = modules()


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "version"


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules that are imported anywhere, also in functions and for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            base = node.module or ""
            for name in node.names:
                inner = f"{base}.{name.name}"
                yield inner if inner in MODULES else base


class WithoutTypes(ast.NodeTransformer):
    """Leaves out what is imported for types alone, which never happens."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else node


def own_imports(tree: ast.AST) -> set[str]:
    return {name for name in imported(tree) if name.split(".")[0] == PACKAGE}


def test_the_modules_are_found() -> None:
    assert {layer_of(module) for module in MODULES} == set(BELOW)
    assert len(MODULES) > 40


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down_only(module: str) -> None:
    layer = layer_of(module)
    allowed = BELOW[layer] | {layer}
    found = own_imports(ast.parse(MODULES[module].read_bytes()))
    assert {name for name in found if layer_of(name) not in allowed} == set()


def test_there_are_no_circles() -> None:
    trees = {module: WithoutTypes().visit(ast.parse(path.read_bytes())) for module, path in MODULES.items()}
    graph = {module: own_imports(tree) - {module} for module, tree in trees.items()}
    assert list(TopologicalSorter(graph).static_order())


def forbidden_in(tree: ast.AST) -> Iterator[str]:
    """What a module does that only commands and storage may do."""
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


@pytest.mark.parametrize(
    "module", sorted(name for name in MODULES if layer_of(name) in ("formats", "stages"))
)
def test_formats_and_stages_never_open_print_log_or_exit(module: str) -> None:
    assert list(forbidden_in(ast.parse(MODULES[module].read_bytes()))) == []


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
def test_what_is_forbidden_is_found(source: str) -> None:
    assert len(list(forbidden_in(ast.parse(source)))) == 1
