"""Pages, help texts and the strings of the package avoid phrases that readers stumble over."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from .cli_reference import commands
from .pages import PAGES, ROOT, page_name

HARD_PHRASES = {
    "is told": "is reported, is printed",
    "are told": "are reported, are printed",
    "held against": "compared with, checked against",
    "stands there": "exists",
    "stand there": "exist",
    "in vain": "failed",
    "is no good": "is corrupt, is invalid",
    "are no good": "are corrupt, are invalid",
    "is no index line": "is not an index line",
    "is no number": "is not a number",
    "is no timestamp": "is not a timestamp",
    "is no date": "is not a date",
    "is no CDX file": "is not a CDX file",
    "no zip file": "not a zip file",
    "so many": "a number of, N",
    "does not fit": "does not match",
    "goes on": "continues",
    "leave out": "skip",
    "leaves out": "skips",
    "left out": "skipped",
    "at the most": "at most",
    "at the least": "at least",
}
"""Each with words to use instead."""

FOR_DEVELOPERS = ("docs/design.md", "CHANGELOG.md", "CONTRIBUTING.md")
"""Pages that may name modules of the package."""

SOURCES = sorted((ROOT / "cdxmill").rglob("*.py"))

_HARD = re.compile(r"\b(" + "|".join(HARD_PHRASES) + r")\b", re.I)
_ROOMS = {path.stem for path in (ROOT / "cdxmill").iterdir() if not path.name.startswith(("_", "."))}
# `cdxmill.search.many`, `cdxmill/search/many.py`, `../cdxmill/search`, but not `/opt/cdxmill/search`.
_MODULE = re.compile(rf"(?:(?<![\w./-])|\.\./)cdxmill[./](?:{'|'.join(sorted(_ROOMS))})\b[\w./]*")


def hard_phrases(text: str) -> list[str]:
    """The hard phrases of a text, each with the words around it.

    >>> hard_phrases("A corrupt file\\nis told, the others are indexed.")
    ['A corrupt file is told, the others are']
    """
    plain = " ".join(text.split())
    found = _HARD.finditer(plain)
    return [plain[max(0, match.start() - 15) : match.end() + 16].strip() for match in found]


def texts_of(source: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each string and comment of a module."""
    text = source.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_a_page_has_no_hard_phrases(page: Path) -> None:
    found = hard_phrases(page.read_text())
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", commands())
def test_the_help_of_a_command_has_no_hard_phrases(name: str) -> None:
    command = commands()[name]
    helps = [command.help, command.epilog, *(getattr(option, "help", "") for option in command.params)]
    found = [phrase for text in helps for phrase in hard_phrases(text or "")]
    assert not found, "\n".join(found)


def test_strings_and_comments_of_the_package_have_no_hard_phrases() -> None:
    found = [
        f"{page_name(source)}:{line}: {phrase}"
        for source in SOURCES
        for line, text in texts_of(source)
        for phrase in hard_phrases(text)
    ]
    assert not found, "\n".join(found)


PUBLIC = {"cdxmill.jobs.count_job"}
"""Modules that users import: the base class of their jobs."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page_name(page) not in FOR_DEVELOPERS], ids=page_name
)
def test_a_page_for_users_names_no_module(page: Path) -> None:
    assert set(_MODULE.findall(page.read_text())) <= PUBLIC


def test_module_names_are_found() -> None:
    text = "`cdxmill.search.many` [a](../../cdxmill/formats/cdxj.py) cdxmill/cli /opt/cdxmill/jobs ~/.cache/cdxmill/cli"
    assert _MODULE.findall(text) == ["cdxmill.search.many", "../cdxmill/formats/cdxj.py", "cdxmill/cli"]
