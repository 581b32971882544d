"""Functions of the public API whose parameters are the fields of a dataclass in `options/`.

For type checkers, `takes` gives the function the parameters of the dataclass's constructor (a ParamSpec); at run time,
its signature shows them with their plain types.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar, get_type_hints

from cdxmill.options.option import Options, check, declared, with_constructor
from cdxmill.running.progress import listened_to
from cdxmill.storage.hosts import begin_run

P = ParamSpec("P")
_Asked = TypeVar("_Asked", bound=Options)
_Result = TypeVar("_Result")
_Self = TypeVar("_Self")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def takes(kind: Callable[P, _Asked]) -> Callable[[Callable[[_Asked], _Result]], Callable[P, _Result]]:
    """Make a function of one dataclass a function of its fields. It raises UsageError for values that are invalid."""

    def decorate(run: Callable[[_Asked], _Result]) -> Callable[P, _Result]:
        def call(*given: P.args, **named: P.kwargs) -> _Result:
            asked = _checked(kind(*given, **named))
            with listened_to(getattr(asked, "progress", None)):
                return run(asked)

        return _shown(call, run, kind)

    return decorate


def method_takes(
    kind: Callable[P, _Asked],
) -> Callable[[Callable[[_Self, _Asked], _Result]], Callable[Concatenate[_Self, P], _Result]]:
    """The same for a method."""

    def decorate(run: Callable[[_Self, _Asked], _Result]) -> Callable[Concatenate[_Self, P], _Result]:
        def call(own: _Self, /, *given: P.args, **named: P.kwargs) -> _Result:
            return run(own, _checked(kind(*given, **named)))

        return _shown(call, run, kind)

    return decorate


def _checked(asked: _Asked) -> _Asked:
    """The dataclass itself, with a list of what can be read only once. Raises UsageError."""
    begin_run()
    fields = [field for field in declared(type(asked)) if field.init]
    for field in fields:
        if isinstance(value := getattr(asked, field.name), Iterator):
            setattr(asked, field.name, list(value))
    given = {field.name for field in fields if getattr(asked, field.name) != field.default}
    check(asked, fields, given, lambda field, value: f"{field.name} {value}".rstrip())
    return asked


def _shown(call: _Function, run: Callable[..., Any], kind: Callable[..., Any]) -> _Function:
    """The function with name, text and signature, as help() and editors show them."""
    own = list(inspect.signature(run).parameters.values())[:-1]
    hints = get_type_hints(kind)
    fields = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(with_constructor(kind)).parameters.values()
    ]
    result = inspect.signature(run, eval_str=True).return_annotation
    update_wrapper(call, run)
    vars(call)["__signature__"] = inspect.Signature([*own, *fields], return_annotation=result)
    call.__annotations__ = {field.name: field.annotation for field in fields} | {"return": result}
    return call
