"""A typer command from a function that takes one dataclass with the command's arguments and options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, get_type_hints

_LAST = ("processes", "quiet")
"""Options of most commands; they are the last in a help text."""


def command(run: Callable[[Any], int]) -> Callable[..., int]:
    """Return `run` with one parameter per field of its dataclass, as typer expects it.

    In the help text, required options come first.
    """
    (arguments,) = (
        kind for name, kind in inspect.get_annotations(run, eval_str=True).items() if name != "return"
    )

    def call(**given: object) -> int:
        return run(arguments(**given))

    hints = get_type_hints(arguments, include_extras=True)
    parameters = [_parameter(field, hints[field.name]) for field in sorted(fields(arguments), key=_order)]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__doc__ = run.__doc__
    return call


def _parameter(field: Field[Any], annotation: object) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _order(field: Field[Any]) -> tuple[bool, bool]:
    return field.default is not MISSING, field.name in _LAST
