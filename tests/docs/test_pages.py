"""The pages agree with each other and with the code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ..second_opinion.rules import RULES
from .cli_reference import PAGE, commands, options, with_help
from .pages import DOCS, PAGES, ROOT, fences, page_name

# `[text](target)`; no images, nothing inside code.
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.M | re.S)
# Paths of one machine. Examples use /data or /path/to.
_OWN_PATH = re.compile(r"(?<![\w.])/(?:work|home|root|Users|tmp)/\S*")

every_page = pytest.mark.parametrize("page", PAGES, ids=page_name)


def prose(page: Path) -> str:
    """The text of a page without its code."""
    return _CODE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """The anchors of a page: its headings, as GitHub names them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.M | re.S), re.M
    )
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


@every_page
def test_the_targets_of_links_exist(page: Path) -> None:
    broken = []
    for link in _LINK.findall(prose(page)):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(link)
    assert broken == []


@every_page
def test_no_page_has_a_path_of_one_machine(page: Path) -> None:
    assert _OWN_PATH.findall(page.read_text()) == []


def test_the_repository_is_that_of_the_package() -> None:
    (home,) = re.findall(r'^HOME = "(.+)"$', (ROOT / "setup.py").read_text(), re.M)
    cloned = [url for page in PAGES for url in re.findall(r"git clone (\S+)", page.read_text())]
    assert len(cloned) >= 3
    assert set(cloned) == {home}


def test_every_page_is_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page.suffix == ".md" and page.exists() and page not in seen:
            seen.add(page)
            waiting += [
                (page.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(prose(page))
            ]
    assert [page_name(page) for page in PAGES if page not in seen] == []


@every_page
def test_the_shell_commands_of_a_page_parse(page: Path) -> None:
    for text in fences(page, "sh"):
        done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_command_page_has_every_help_unchanged() -> None:
    text = PAGE.read_text()
    for name in commands():
        assert f"\n## {name}\n" in text
        assert f"\n$ {name} --help\n" in text
    assert with_help(text) == text, "run .venv/bin/python tests/docs/cli_reference.py"


def test_every_option_is_on_the_command_page() -> None:
    words = set(re.split(r"[\s,`]+", PAGE.read_text()))
    names = {name for _, parameter in options() for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {name for name in names if name.startswith("-")} - words == set()


def test_the_differences_page_has_every_rule_of_the_comparison_and_no_other() -> None:
    rows = re.findall(
        r"^\| ([a-z-]+) \|.*\| as (pywb|cdxj-indexer) \|", (DOCS / "migrating.md").read_text(), re.M
    )
    right = {"pywb": "pywb", "cdxj": "cdxj-indexer"}
    assert dict(rows) == {rule.name: right[rule.right] for rule in RULES}


def test_the_design_page_names_every_directory_of_the_package_and_no_other() -> None:
    listing = (DOCS / "design.md").read_text()
    listed = re.findall(r"^\| `cdxmill/([\w/]*)/` \|", listing, re.M)
    directories = {
        path.parent.relative_to(ROOT / "cdxmill").as_posix() for path in (ROOT / "cdxmill").rglob("*.[ph]*")
    }
    assert sorted(listed) == sorted(
        directories - {"."} - {name for name in directories if "__pycache__" in name}
    )


@pytest.mark.parametrize("name", ["docs/design.md", "CONTRIBUTING.md"])
def test_the_files_that_a_page_for_developers_names_exist(name: str) -> None:
    named = set(re.findall(r"`((?:[a-z_]+/)+\w+\.py)`", (ROOT / name).read_text()))
    assert named
    assert [
        path for path in named if not any((top / path).exists() for top in (ROOT, ROOT / "cdxmill"))
    ] == []


def test_every_page_that_a_module_names_exists() -> None:
    sources = [path.read_text() for path in (ROOT / "cdxmill").rglob("*.py")]
    pages = {page for text in sources for page in re.findall(r"docs/[\w/-]+\.md", text)}
    assert pages
    assert [page for page in pages if not (ROOT / page).exists()] == []
