"""The statements of a module: what is defined and imported is found without a look at each expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly below a node, and the parts of it that hold statements."""
    return (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All that is below a node but expressions."""
    left = [node]
    while left:
        yield (one := left.pop())
        left += inside(one)
