"""The notebook of the docs runs, and its outputs are those that it shows."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from .pages import DOCS

NOTEBOOK = DOCS / "tutorials/collection.ipynb"
SAMPLES = Path(sys.prefix) / "sample_archive/warcs"


def value_of(code: str, names: dict[str, Any]) -> object:
    """Run a cell as Jupyter does: its value is that of the last expression."""
    *first, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(first, []), str(NOTEBOOK), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


def test_the_notebook_shows_what_its_cells_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warcs").mkdir()
    for name in ("example.warc.gz", "iana.warc.gz"):
        (tmp_path / "warcs" / name).symlink_to(SAMPLES / name)
    names: dict[str, Any] = {}
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        value = value_of("".join(cell["source"]), names)
        [output] = cell["outputs"]
        assert repr(value) == "".join(output["data"]["text/plain"])
        if "text/html" in output["data"]:
            assert value._repr_html_() == "".join(output["data"]["text/html"])  # type: ignore[attr-defined]
    assert len(cells) > 5
    assert (tmp_path / "report.html").stat().st_size > 5000
