"""The site builds without warnings, has every page, and asks no other host for anything."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import DOCS, ROOT

# What a browser loads by itself: scripts, styles, images, fonts; not the targets of links.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?([^\s\">]+)|<link\b[^>]*\bhref=\"?([^\s\">]+)"
)
_LOADED_BY_STYLE = re.compile(r"(?:url\(|@import )[\"']?(https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. `--strict` makes an error of each warning, such as a broken link or a page that is not in the menu."""
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", place],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def test_the_site_has_every_page(site: Path) -> None:
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    own = {Path(f"{name}.html") for name in ("index", "changelog", "contributing", "security")}
    assert {page for page in pages | own if not (site / page).is_file()} == set()


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    loaded = {
        target
        for page in site.rglob("*.html")
        for pair in _LOADED.findall(page.read_text())
        for target in pair
        if re.match(r"(?:https?:)?//", target)
    }
    assert loaded == set()
    assert [style for style in site.rglob("*.css") if _LOADED_BY_STYLE.search(style.read_text())] == []


def test_files_outside_the_pages_are_in_the_site(site: Path) -> None:
    assert (site / "files/conf/pywb/config.yaml").read_bytes() == (
        ROOT / "conf/pywb/config.yaml"
    ).read_bytes()
