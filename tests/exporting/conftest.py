"""A cluster of lines as Common Crawl has them, and what reads tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.cdx_corpus import make_lines
from cdxmill.cli.main import main
from tests.material.cdx_files import as_text, write_plain

Export = Callable[..., int]
LINES = 3000


@pytest.fixture(scope="session")
def lines() -> list[bytes]:
    return sorted({line.rstrip() for line in make_lines(Random(7), LINES)})


@pytest.fixture
def cluster(tmp_path: Path, lines: list[bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster of these lines in the working directory, with blocks of 100 lines."""
    monkeypatch.chdir(tmp_path)
    return build(tmp_path / "c", lines)


def build(directory: Path, lines: list[bytes]) -> Path:
    write_plain(directory.with_suffix(".cdxj"), lines)
    made = ["zipnum", "-q", "-p", "1", "-s", "2", "--numlines", "100", "-o", str(directory)]
    assert main([*made, str(directory.with_suffix(".cdxj"))]) == 0
    return directory


def export(*args: str | Path) -> int:
    return main(["export", "-q", *map(str, args)])


def text_of(lines: list[bytes]) -> bytes:
    return as_text(lines)


def query(*statements: str) -> list[list[Any]]:
    """The rows of the last statement in DuckDB, in a process of its own: it reports leaks at its end."""
    code = "import duckdb, json, sys; con = duckdb.connect(); [con.execute(sql) for sql in sys.argv[1:]]; print(json.dumps(con.fetchall(), default=str))"
    run = subprocess.run([sys.executable, "-c", code, *statements], check=True, stdout=subprocess.PIPE)
    return list(json.loads(run.stdout))
