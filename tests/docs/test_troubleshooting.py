"""The messages on the page about troubleshooting are those of the program."""

from __future__ import annotations

import ast
import os
import re
from errno import ENOSPC

from .pages import DOCS, ROOT

PAGE = DOCS / "help.md"

# The first cell of a table row, if it is a message.
_MESSAGE = re.compile(r"^\| `([^`]+)` \|", re.M)
_LEAST = 4
"""Characters. Shorter parts of a message, such as `; `, are everywhere."""


def texts() -> list[str]:
    """The strings of the package without docstrings, and the constant parts of those with variables."""
    found = [os.strerror(ENOSPC)]
    for source in (ROOT / "cdxmill").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(source.read_text())))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        found += [
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        ]
    return found


def test_every_message_on_the_page_is_one_of_the_program() -> None:
    messages = _MESSAGE.findall(PAGE.read_text())
    assert len(messages) > 25
    known = texts()
    parts = {part.strip(" ;()") for message in messages for part in message.split("...")}
    assert [
        part for part in sorted(parts) if len(part) >= _LEAST and not any(part in text for text in known)
    ] == []
