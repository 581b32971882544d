"""The files beside this one: which tests can see a file, and mutants that no test can notice."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_DIRECTORY = Path(__file__).parent
_ROOT = _DIRECTORY.parents[1]
_MODULE = re.compile(r"\bcdxmill(?:\.\w+)+")
_IMPORT = re.compile(r"from (cdxmill[\w.]*) import (\([^)]*|[^(\n]*)")
_FEW = 20
"""Test files that import a module. If more do, it is one that they only use."""


def _rows(name: str) -> dict[str, str]:
    lines = (_DIRECTORY / name).read_text().splitlines()
    return dict(line.split("\t") for line in lines if not line.startswith("#"))


def accepted() -> dict[str, str]:
    """Names of mutants that do no harm, with the reason."""
    return _rows("accepted.tsv")


def seen_by(path: str) -> tuple[str, ...]:
    """The tests that can see a file: those of the longest entry that its path starts with, and those that import it.

    Raises KeyError if there is no such entry.
    """
    rows = _rows("tests.tsv")
    found = max((entry for entry in rows if path.startswith(entry)), key=len, default=None)
    if found is None:
        raise KeyError(path)
    tests = _importing().get(path.removesuffix(".py").replace("/", "."), [])
    return (*rows[found].split(), *(tests if len(tests) <= _FEW else []))


@cache
def _importing() -> dict[str, list[str]]:
    """The test files that import or name each module."""
    found: dict[str, list[str]] = {}
    for path in sorted((_ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        named = set(_MODULE.findall(text))
        for package, names in _IMPORT.findall(text):
            named.update(f"{package}.{name}" for name in re.findall(r"\w+", names))
        for module in named:
            found.setdefault(module, []).append(path.relative_to(_ROOT).as_posix())
    return found


def package() -> list[str]:
    """The files of the package that are in Python."""
    return sorted(path.relative_to(_ROOT).as_posix() for path in (_ROOT / "cdxmill").rglob("*.py"))
