"""The files beside this one: which tests can see a file, and mutants that no test can notice."""

from __future__ import annotations

from pathlib import Path

_DIRECTORY = Path(__file__).parent


def _rows(name: str) -> dict[str, str]:
    lines = (_DIRECTORY / name).read_text().splitlines()
    return dict(line.split("\t") for line in lines if not line.startswith("#"))


def accepted() -> dict[str, str]:
    """Names of mutants that do no harm, with the reason."""
    return _rows("accepted.tsv")


def seen_by(path: str) -> tuple[str, ...]:
    """The tests that can see a file: those of the longest entry that its path starts with. Raises KeyError if none does."""
    rows = _rows("tests.tsv")
    found = max((entry for entry in rows if path.startswith(entry)), key=len, default=None)
    if found is None:
        raise KeyError(path)
    return tuple(rows[found].split())


def package() -> list[str]:
    """The files of the package that are in Python."""
    root = _DIRECTORY.parents[1]
    return sorted(path.relative_to(root).as_posix() for path in (root / "cdxmill").rglob("*.py"))
