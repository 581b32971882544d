"""The mutants of a source file: each is the file with one small change in a function. Those of C are in c_changes.py."""

from __future__ import annotations

import ast
import hashlib
import re
from typing import NamedTuple

from .c_changes import changes_of

C_ENDINGS = (".c", ".h")
_OTHER: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
}
_NOTHING = '__import__("contextlib").nullcontext()'
_OPERATOR = re.compile(r"not\s+in|is\s+not|in|is|[<>=!]=|<<|>>|//|[-+*&|<>]")


class Mutant(NamedTuple):
    """A change of the bytes `begin` to `end` of a file. `function` is its name with the classes around it."""

    path: str
    function: str
    line: int
    begin: int
    end: int
    old: str
    new: str

    def apply(self, source: bytes) -> bytes:
        """The changed file."""
        return source[: self.begin] + self.new.encode() + source[self.end :]

    @property
    def name(self) -> str:
        """What stays the same while other code of the file changes, for the list of accepted mutants."""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.path} {self.function}: {old} -> {new}"

    def rank(self, seed: int) -> str:
        """Mutants are drawn by rank: a change of the code adds and removes mutants, and leaves the others as they are."""
        return hashlib.sha256(f"{seed} {self.name}".encode()).hexdigest()


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """All mutants of a file, each name once.

    >>> [mutant.new for mutant in mutants_of("a.py", b"def f(a):\\n    if a < 3:\\n        raise ValueError\\n")]
    ['not (a < 3)', 'a <= 3', '4', 'pass']
    >>> [mutant.new for mutant in mutants_of("a.py", b"async def f(a):\\n    return a + 1\\n")]
    ['a - 1', '2']
    >>> source = b"def f(a):\\n    try:\\n        with a.lock():\\n            del a.x\\n    except (OSError, ValueError):\\n        a.y = 1\\n"
    >>> [mutant.new for mutant in mutants_of("a.py", source)]
    ['__import__("contextlib").nullcontext()', 'pass', '(ValueError,)', '(OSError,)', 'pass', '2']
    """
    if path.endswith(C_ENDINGS):
        mutants = [_mutant(path, source, *change) for change in changes_of(source)]
    else:
        found = _File(path, source)
        found.visit(ast.parse(source))
        mutants = found.mutants
    return list({mutant.name: mutant for mutant in mutants}.values())


def _mutant(path: str, source: bytes, function: str, begin: int, end: int, new: str) -> Mutant:
    line = source.count(b"\n", 0, begin) + 1
    return Mutant(path, function, line, begin, end, source[begin:end].decode(), new)


class _File(ast.NodeVisitor):
    """Collects the mutants. Only code in functions is changed: constants of a module are data."""

    def __init__(self, path: str, source: bytes) -> None:
        self.mutants: list[Mutant] = []
        self._path, self._source = path, source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._within: list[str] = []
        self._functions = 0

    def _place(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end = self._starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return self._starts[node.lineno - 1] + node.col_offset, end

    def _text(self, begin: int, end: int) -> str:
        return self._source[begin:end].decode()

    def _change(self, begin: int, end: int, new: str) -> None:
        if self._functions:
            self.mutants.append(_mutant(self._path, self._source, ".".join(self._within), begin, end, new))

    def _replace(self, node: ast.expr | ast.stmt, new: str) -> None:
        self._change(*self._place(node), new)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._within.append(node.name)
        for child in node.body:
            self.visit(child)
        self._within.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Defaults and annotations are not changed; a docstring is no statement."""
        self._within.append(node.name)
        self._functions += 1
        for child in node.body[ast.get_docstring(node) is not None :]:
            self.visit(child)
        self._functions -= 1
        self._within.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def _negate(self, test: ast.expr) -> None:
        self._replace(test, f"not ({self._text(*self._place(test))})")

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._replace(test, "True")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Without one of the operands."""
        texts = [self._text(*self._place(value)) for value in node.values]
        word = " and " if isinstance(node.op, ast.And) else " or "
        for number in range(len(texts)):
            kept = word.join(f"({text})" for text in texts[:number] + texts[number + 1 :])
            self._replace(node, f"({kept})")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self._operator(node, left, right, _OTHER[type(operator)])
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in _BINARY:
            self._operator(node, node.left, node.right, _BINARY[type(node.op)])
        self.generic_visit(node)

    def _operator(self, node: ast.expr, left: ast.expr, right: ast.expr, new: str) -> None:
        """Change the operator between two operands. Brackets and line ends around it stay."""
        begin, end = self._place(node)
        middle, after = self._place(left)[1], self._place(right)[0]
        between = self._text(middle, after)
        found = _OPERATOR.search(between)
        if found is not None and "#" not in between:
            changed = between[: found.start()] + new + between[found.end() :]
            self._change(begin, end, self._text(begin, middle) + changed + self._text(after, end))

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1))

    def visit_keyword(self, node: ast.keyword) -> None:
        """That `zip` is strict says what is so. It is no guard."""
        if node.arg != "strict":
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts of messages are not changed."""

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call for its effect is left out."""
        if isinstance(node.value, ast.Call):
            self._replace(node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "pass")

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, "pass")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """What is kept in an object is not. Of a name, and of an object that begins, the test would only find that it is unknown."""
        if self._within[-1:] != ["__init__"] and all(
            isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets
        ):
            self._replace(node, "pass")
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._replace(node, "pass")

    def visit_withitem(self, node: ast.withitem) -> None:
        """A lock is not taken, an error not suppressed, a file not closed."""
        if node.optional_vars is None:
            self._replace(node.context_expr, _NOTHING)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """An error is not caught: the only one, or one of several."""
        if isinstance(node.type, ast.Tuple):
            errors = [self._text(*self._place(error)) for error in node.type.elts]
            for number in range(len(errors)):
                self._replace(node.type, f"({', '.join(errors[:number] + errors[number + 1 :])},)")
        elif node.type is not None:
            self._replace(node.type, "()")
        for child in node.body:
            self.visit(child)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            self._replace(node, "pass")
        else:
            self.generic_visit(node)
