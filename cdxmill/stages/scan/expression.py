"""The text of --where -> a tree of conditions.

EXPRESSION  a condition, or several with `and`, `or`, `not` and parentheses
condition   FIELD OPERATOR VALUE, with spaces around the operator or without: status=200, url ~ \\.pdf$, title:"annual report"

=   equals            !=  does not equal
:   contains          !:  does not contain
~   matches (regex)   !~  does not match
^=  starts with
@   a line of the file VALUE fits     !@  no line fits
<  <=  >  >=
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FIELD = r"\s*(?P<field>[a-z][a-z_]*(?:\.[^\s=!:~^@<>()]+)?)"
_OPERATOR = r"(?:!=|!:|!~|!@|\^=|<=|>=|[=:~@<>])"
_TERM = re.compile(rf"{_FIELD}(?:(?P<operator>{_OPERATOR})|\s+(?P<apart>{_OPERATOR})\s+)", re.I)
_WORD = re.compile(r"\s*(and|or|not)(?=[\s(]|$)", re.I)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_DEEPEST = 50


class Condition(NamedTuple):
    """FIELD OPERATOR VALUE, without negation. `text` is what the user wrote."""

    field: str
    operator: str
    value: str
    text: str


class Not(NamedTuple):
    """The opposite."""

    node: Node


class Every(NamedTuple):
    """All of the nodes."""

    nodes: tuple[Node, ...]


class Some(NamedTuple):
    """At least one of the nodes."""

    nodes: tuple[Node, ...]


Node = Condition | Not | Every | Some


def parse_expression(text: str) -> Node:
    """The tree. Raises ValueError.

    >>> node = parse_expression("status=200 and not (url:shop or title~'a b')")
    >>> [type(part).__name__ for part in node.nodes]
    ['Condition', 'Not']
    """
    parser = _Parser(text)
    node = parser.some(0)
    if parser.rest():
        raise parser.error("unexpected text")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def rest(self) -> str:
        return self._text[self._at :].strip()

    def error(self, reason: str) -> ValueError:
        where = f" at {self.rest()[:30]!r}" if self.rest() else " at its end"
        return ValueError(
            f"invalid expression {self._text!r}: {reason}{where}; expected e.g. status=200 and url:shop"
        )

    def some(self, depth: int) -> Node:
        nodes = [self._every(depth)]
        while self._take("or"):
            nodes.append(self._every(depth))
        return nodes[0] if len(nodes) == 1 else Some(tuple(nodes))

    def _every(self, depth: int) -> Node:
        nodes = [self._one(depth)]
        while self._take("and"):
            nodes.append(self._one(depth))
        return nodes[0] if len(nodes) == 1 else Every(tuple(nodes))

    def _one(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.error("too many parentheses")
        if self._take("not"):
            return Not(self._one(depth + 1))
        if self._take_sign("("):
            node = self.some(depth + 1)
            if not self._take_sign(")"):
                raise self.error("a ) is missing")
            return node
        return self._condition()

    def _take(self, word: str) -> bool:
        found = _WORD.match(self._text, self._at)
        if found is None or found[1].lower() != word:
            return False
        self._at = found.end()
        return True

    def _take_sign(self, sign: str) -> bool:
        rest = self._text[self._at :].lstrip()
        if not rest.startswith(sign):
            return False
        self._at = len(self._text) - len(rest) + 1
        return True

    def _condition(self) -> Node:
        found = _TERM.match(self._text, self._at)
        if found is None:
            raise self.error("expected FIELD=VALUE")
        start = self._at + len(found[0]) - len(found[0].lstrip())
        self._at = found.end()
        value = self._value()
        sign = found["operator"] or found["apart"]
        text = self._text[start : self._at]
        condition = Condition(found["field"], sign.removeprefix("!"), value, text)
        return Not(condition) if sign.startswith("!") else condition

    def _value(self) -> str:
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is not None:
            self._at = quoted.end()
            return str(quoted[1] if quoted[1] is not None else quoted[2])
        depth, start = 0, self._at
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign.isspace():
                break
            if sign == ")" and not depth:
                if self._text[self._at + 1 : self._at + 2] != "/":
                    break
                depth += 1  # the ) of a SURT prefix: com,example)/
            if sign == "\\":
                self._at += 1
            depth += (sign == "(") - (sign == ")")
            self._at += 1
        self._at = min(self._at, len(self._text))
        if self._at == start:
            raise self.error("a value is missing")
        return self._text[start : self._at]
