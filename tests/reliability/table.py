"""The table of docs/reliability.md, as the tests read it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_ROW = re.compile(
    r"^\| (?P<damage>.+) \| (?P<slugs>`[a-z0-9-]+`(?: `[a-z0-9-]+`)*) \| (?P<lines>[a-z ]+) \|(?P<message>.*)\| (?P<status>\d) \|$"
)
_PATTERNS = {"FILE": r"\S+", "N": r"\d+", "TEXT": r".+"}
_PLACEHOLDER = re.compile(r"\b(FILE|TEXT|N)\b")


class Row(NamedTuple):
    """A case of a row: which records get lines, the lines of stderr as patterns, and the exit status."""

    slug: str
    lines: str
    messages: list[re.Pattern[str]]
    status: int


def read_table(page: Path) -> dict[str, Row]:
    """All cases in the page's tables, by slug. A row may have several cases."""
    rows: dict[str, Row] = {}
    for line in page.read_text("utf-8").splitlines():
        if match := _ROW.match(line):
            messages = re.findall(r"`([^`]+)`", match["message"])
            patterns = [_pattern(message) for message in messages]
            for slug in re.findall(r"[a-z0-9-]+", match["slugs"]):
                assert slug not in rows, f"two rows for {slug}"
                rows[slug] = Row(slug, match["lines"], patterns, int(match["status"]))
    return rows


def _pattern(message: str) -> re.Pattern[str]:
    """A pattern for the message; FILE, N and TEXT match a path, a number and any text."""
    parts = _PLACEHOLDER.split(message)
    return re.compile("".join(_PATTERNS.get(part, re.escape(part)) for part in parts))
