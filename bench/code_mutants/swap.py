"""Give imported functions the code of a changed file."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

from .changes import Mutant


def function_of(source: bytes, file: str, mutant: Mutant) -> CodeType:
    """The outermost function of a changed file that the change is in."""
    module = compile(source, file, "exec", dont_inherit=True)
    return max(
        (code for code in _outermost(module, mutant.function) if code.co_firstlineno <= mutant.line),
        key=lambda code: code.co_firstlineno,
    )


def _outermost(code: CodeType, name: str) -> Iterator[CodeType]:
    """Functions of that name: a property and its setter have one name."""
    first, _, rest = name.partition(".")
    for inner in code.co_consts:
        if inspect.iscode(inner) and inner.co_name == first:
            if inner.co_flags & inspect.CO_OPTIMIZED:
                yield inner
            else:
                yield from _outermost(inner, rest)


def functions_below(directory: Path) -> list[FunctionType]:
    """All functions of imported files below a directory, also those that a decorator has wrapped."""
    found = [one for one in gc.get_objects() if type(one) is FunctionType]
    return [one for one in found if one.__code__.co_filename.startswith(str(directory))]


def swap(new: CodeType, functions: Iterable[FunctionType], called: Iterable[CodeType]) -> None:
    """Change those of the functions that are at the place of the new code.

    Raises ValueError if a function was called before, or uses other variables of the functions around it.
    """
    place = _place(new)
    if any(_place(code) == place for code in called):
        raise ValueError(f"{new.co_qualname} was called")
    for function in functions:
        if _place(function.__code__) == place:
            function.__code__ = new


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno
