r"""The text of --where -> a tree of conditions such as `status=200`.

EXPRESSION  a condition, or several with `and`, `or`, `not` and parentheses
condition   FIELD OPERATOR VALUE, with spaces around the operator or without: status=200, url ~ \.pdf$, title:"annual report"

=   equals            !=  has another value
:   contains          !:  does not contain
~   matches (regex)   !~  does not match
^=  starts with
@   is, contains or starts with a line of the file VALUE    !@  no line
<  <=  >  >=
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cdxmill.regex import regex

_NAME = r"""(?:'[^']+'|"[^"]+"|[^\s=!:~^@<>()'"]+)"""
_FIELD = rf"\s*(?P<field>[a-z][a-z_]*(?:\.{_NAME})?)"
_OPERATOR = r"(?:!=|!:|!~|!@|\^=|<=|>=|[=:~@<>])"
_TERM = regex(rf"{_FIELD}(?:(?P<operator>{_OPERATOR})|\s+(?P<apart>{_OPERATOR})\s+)", re.I)
_IN_NAMES = regex(r"([^\s'\"]*?[\w-])(" + _OPERATOR + ".*)")
"""A value that looks like the rest of a name, as in meta.og:title=x, and an operator."""
_WORD = regex(r"\s*(and|or|not)(?=[\s(]|$)", re.I)
_QUOTED = regex(r"'([^']*)'|\"([^\"]*)\"")
_TWO = ("=~", "!=~", "~~", "!~~", "<>")
_DEEPEST = 50
_LONGEST_FORM = 200
"""Characters of a condition that a message shows as the right one."""


class Condition(NamedTuple):
    """FIELD OPERATOR VALUE. `text` is what the user wrote.

    A `negated` condition, such as `status!=200`, holds if a record has the field and no value of it fits. A value that
    `is_quoted` is taken as it is.
    """

    field: str
    operator: str
    value: str
    text: str
    is_quoted: bool = False
    negated: bool = False

    def form(self, operator: str, value: str, field: str = "") -> str:
        """The same condition with another operator and value, and perhaps another field."""
        sign = f"!{operator}" if self.negated and operator in "=:~@" else operator
        return f"{'not ' if self.negated and sign == operator else ''}{field or self.field}{sign}{value}"

    def wrong(self, reason: str, form: str = "") -> ValueError:
        """The error of a condition that cannot be meant. `form` is the right one."""
        is_short = 0 < len(form) <= _LONGEST_FORM
        return ValueError(f"{self.text}: {reason}{f'; write {form}' if is_short else ''}")


class Not(NamedTuple):
    """All records of which the node does not hold, also those that lack its field."""

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
    if not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ValueError(
            f"invalid expression {text!r}: it is not UTF-8; set LC_ALL=C.UTF-8, or write a list, FIELD@FILE"
        )
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

    def _condition(self) -> Condition:
        found = _TERM.match(self._text, self._at)
        if found is None:
            raise self.error("expected FIELD=VALUE")
        start = self._at + len(found[0]) - len(found[0].lstrip())
        self._at = found.end()
        value, is_quoted = self._value()
        sign = found["operator"] or found["apart"]
        operator, text = sign.removeprefix("!"), self._text[start : self._at]
        if not is_quoted and (value[0] == "=" or sign + value[0] in _TWO):
            right = f"{found['field']}{'!=' if sign == '<' else sign}{value.lstrip('=~>')}"
            raise ValueError(
                f"invalid expression {text!r}: two operators; write {right}, or quote a value that starts with one"
            )
        name = re.sub("['\"]", "", found["field"])
        if (
            name.startswith("meta.")
            and operator == ":"
            and not is_quoted
            and (rest := _IN_NAMES.fullmatch(value))
        ):
            names = (
                f"meta.'{name.removeprefix('meta.')}:{rest[1]}'{rest[2]} or {found['field']}{sign}'{value}'"
            )
            raise ValueError(f"invalid expression {text!r}: is the : part of the name? Write {names}")
        return Condition(name, operator, value, text, is_quoted, sign[0] == "!")

    def _value(self) -> tuple[str, bool]:
        """A value, and whether it was quoted."""
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is not None:
            self._at = quoted.end()
            return quoted[1] if quoted[1] is not None else quoted[2], True
        if self._text[self._at : self._at + 1] in ("'", '"'):
            raise self.error("a quote is not closed")
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
        return self._text[start : self._at], False
