"""The changes of a C source file, as changes.py makes them in one of Python. Only code in functions is changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import tree_sitter_c
from tree_sitter import Language, Node, Parser

_OTHER = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "&": "|",
    "|": "&",
    "<<": ">>",
    ">>": "<<",
}
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)([uUlL]*)")
_PARSER = Parser(Language(tree_sitter_c.language()))


class Change(NamedTuple):
    """The bytes `begin` to `end`, in a function, become `new`."""

    function: str
    begin: int
    end: int
    new: str


def changes_of(source: bytes) -> Iterator[Change]:
    """All changes of a file, whether they compile or not.

    >>> [change.new for change in changes_of(b"int f(int a) { if (a < 3 && g()) return h(a); k(); return a; }")]
    ['!(a < 3 && g())', 'g()', 'a < 3', 'a <= 3', '4', '{}', '{}', '{}']
    """
    for function in _within(_PARSER.parse(source).root_node):
        if function.type == "function_definition":
            name = next(node for node in _within(_field(function, "declarator")) if node.type == "identifier")
            for node in _within(_field(function, "body")):
                if node.type in _CHANGES:
                    for changed, new in _CHANGES[node.type](node):
                        yield Change(_text(name), changed.start_byte, changed.end_byte, new)


_Changes = Iterator[tuple[Node, str]]


def _within(node: Node) -> Iterator[Node]:
    """The node and all in it, but for the sizes of arrays: they are data."""
    yield node
    for child in node.children:
        if node.type != "array_declarator" or child.type != "number_literal":
            yield from _within(child)


def _field(node: Node, name: str) -> Node:
    found = node.child_by_field_name(name)
    assert found is not None, (node.type, name)
    return found


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _negate(node: Node) -> _Changes:
    test = node.child_by_field_name("condition")
    if test is not None:
        if test.type == "parenthesized_expression":
            test = test.named_children[-1]
        yield test, f"!({_text(test)})"


def _operator(node: Node) -> _Changes:
    operator = _field(node, "operator")
    if operator.type in ("&&", "||"):
        if node.parent is None or not _joins(node.parent, operator.type):
            yield from _without_one(node, operator.type)
    elif operator.type in _OTHER:
        begin, end = (place - node.start_byte for place in (operator.start_byte, operator.end_byte))
        text = node.text or b""
        yield node, (text[:begin] + _OTHER[operator.type].encode() + text[end:]).decode()


def _without_one(node: Node, operator: str) -> _Changes:
    """Without one of the operands."""
    texts = list(_operands(node, operator))
    for number in range(len(texts)):
        yield node, f" {operator} ".join(texts[:number] + texts[number + 1 :])


def _joins(node: Node, operator: str) -> bool:
    return node.type == "binary_expression" and _field(node, "operator").type == operator


def _operands(node: Node, operator: str) -> Iterator[str]:
    if _joins(node, operator):
        for side in ("left", "right"):
            yield from _operands(_field(node, side), operator)
    else:
        yield _text(node)


def _number(node: Node) -> _Changes:
    found = _INTEGER.fullmatch(_text(node))
    if found is not None:
        yield node, f"{int(found[1], 0) + 1}{found[2]}"


def _effect(node: Node) -> _Changes:
    """A call, or a change of a variable, for its effect is left out."""
    inner = node.named_children[0] if node.named_children else node
    is_changed = inner.type == "assignment_expression" and _field(inner, "operator").type != "="
    if is_changed or inner.type in ("call_expression", "update_expression"):
        yield node, "{}"


def _leave_out(node: Node) -> _Changes:
    yield node, "{}"


def _leave_loop(node: Node) -> _Changes:
    yield node, "break;"


_CHANGES: dict[str, Callable[[Node], _Changes]] = {
    "if_statement": _negate,
    "while_statement": _negate,
    "do_statement": _negate,
    "for_statement": _negate,
    "conditional_expression": _negate,
    "binary_expression": _operator,
    "number_literal": _number,
    "expression_statement": _effect,
    "return_statement": _leave_out,
    "break_statement": _leave_out,
    "continue_statement": _leave_loop,
}
