"""The options of a dataclass in a table like argparse's: those of the jobs (mrjob) and of the Spark scripts."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any, TypeVar

from cdxmill.errors import UsageError
from cdxmill.options.option import Declared, Options, check, declared

_Kind = TypeVar("_Kind", bound=Options)


def add_options(kind: type[Options], add: Callable[..., object]) -> None:
    """Add the options and arguments of a dataclass by a method like `ArgumentParser.add_argument`, with the default in their help."""
    for field in _fields(kind):
        option = field.option
        for flag in option.flags:
            how = {"action": "store_const", "const": flag.value, "default": field.default}
            add(*flag.names.split(), dest=field.name, help=flag.help.replace("%", "%%"), **how)
        if not option.flags:
            add(
                *(option.names or (field.name,)),
                help=option.help.replace("%", "%%") + _note(field),
                **_settings(field),
            )


def _settings(field: Declared) -> dict[str, Any]:
    option = field.option
    if not option.names:
        return {"metavar": option.metavar} | (
            {} if field.is_required else {"nargs": "?", "default": field.default}
        )
    if field.kind is bool:
        return {"dest": field.name, "action": "store_true", "default": field.default}
    return {
        "dest": field.name,
        "metavar": option.metavar or field.spelled().strip("-").replace("-", "_").upper(),
        "type": field.kind if field.kind in (int, float) else str,
        "default": None if option.read or field.is_required else field.default,
    }


def _note(field: Declared) -> str:
    if not field.option.names or field.kind is bool:
        return ""
    if field.is_required:
        return " Required."
    return "" if field.option.read or field.default in (None, "") else f" Default: {field.default}."


def read_options(kind: type[_Kind], given: Namespace, **own: object) -> _Kind:
    """The dataclass with what was given; `own` are its fields that are no options. Raises UsageError."""
    fields = _fields(kind)
    options = kind(**{field.name: _value(field, getattr(given, field.name)) for field in fields}, **own)
    named = {field.name for field in fields if getattr(options, field.name) != field.default}
    check(options, fields, named, Declared.spelled)
    return options


def _fields(kind: type[Options]) -> list[Declared]:
    return [field for field in declared(kind) if field.init]


def _value(field: Declared, value: Any) -> Any:
    if value is None and field.is_required:
        raise UsageError(f"{field.spelled()} is missing; see --help")
    if value is None:
        return field.default
    return value if field.option.read is None else field.option.read(value)
