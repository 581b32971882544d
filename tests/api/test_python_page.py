"""docs/python.md describes the public API, and its examples give the results that it shows."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

import cdxmill

from ..docs.pages import DOCS, fences

PAGE = DOCS / "python.md"


@pytest.fixture
def directory(pywb_warcs: Path, tmp_path: Path) -> Path:
    """The directory that the page's examples run in."""
    (tmp_path / "warcs").mkdir()
    for name in ("example.warc.gz", "iana.warc.gz"):
        shutil.copy(pywb_warcs / name, tmp_path / "warcs")
    return tmp_path


def test_the_examples_give_the_results_that_the_page_shows(directory: Path) -> None:
    text = "\n".join(fences(PAGE, "python"))
    test = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(PAGE), 0)
    assert len(test.examples) > 20
    with chdir(directory):
        assert doctest.DocTestRunner().run(test).failed == 0


def test_the_page_names_everything_that_is_public_and_nothing_else() -> None:
    named = set(re.findall(r"\b(\w+)\b", PAGE.read_text()))
    assert set(cdxmill.__all__) - named == set()
    imported = re.findall(r"from cdxmill import ([\w, ]+)", PAGE.read_text())
    assert {name for names in imported for name in names.split(", ")} - set(cdxmill.__all__) == set()


def test_every_public_name_exists_and_has_a_docstring() -> None:
    assert sorted(cdxmill.__all__) == cdxmill.__all__
    assert [name for name in cdxmill.__all__ if not getattr(cdxmill, name).__doc__] == []
    assert set(cdxmill.__all__) <= set(dir(cdxmill))


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cdxmill.nothing  # noqa: B018


def test_the_import_alone_imports_no_library() -> None:
    script = "import cdxmill, sys; print(sorted(name for name in sys.modules if name.startswith('cdxmill')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['cdxmill', 'cdxmill.version']\n"
