"""The options of a dataclass in a table like argparse's: those of the jobs (mrjob) and of the Spark scripts."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Protocol, TypeVar

from cdxmill.errors import UsageError
from cdxmill.options.option import Argument, Declared, Option, check, declared

_Kind = TypeVar("_Kind")


class AddOption(Protocol):
    """A method like `ArgumentParser.add_argument`."""

    def __call__(self, *names: str, **settings: Any) -> object:
        """Add one option."""


def add_options(kind: type, add: AddOption) -> None:
    """Add the options and arguments of a dataclass, with the default in their help. The second option of a bool is a no."""
    for field in declared(kind):
        for number, option in enumerate(field.options):
            text = {"help": option.help.replace("%", "%%")}
            if isinstance(option, Argument):
                optional = {} if field.is_required else {"nargs": "?", "default": field.default}
                add(field.name, metavar=option.metavar, **text, **optional)
            elif field.kind is bool:
                action = "store_false" if number else "store_true"
                add(*_names(field, option), dest=_dest(field), action=action, default=field.default, **text)
            else:
                default = None if option.parser or field.is_required else field.default
                note = f" Default: {default}." if default not in (None, "") else ""
                if field.is_required:
                    note = " Required."
                settings = {"metavar": option.metavar} if option.metavar else {}
                read = field.kind if field.kind in (int, float) else str
                add(*_names(field, option), type=read, default=default, help=text["help"] + note, **settings)


def read_options(kind: type[_Kind], given: Namespace, **own: object) -> _Kind:
    """The dataclass with what was given; `own` are its fields that are no options. Raises UsageError."""
    any_kind: Any = kind
    fields = declared(any_kind)
    values = {field.name: _value(field, getattr(given, _dest(field))) for field in fields if field.options}
    options = kind(**values, **own)
    named = {field.name for field in fields if getattr(options, field.name) != field.default}
    check(options, named, Declared.spelled)
    return options


def _value(field: Declared, value: Any) -> Any:
    option = field.options[0]
    if value is None and field.is_required:
        raise UsageError(f"{field.spelled()} is missing; see --help")
    if value is None or isinstance(option, Argument) or option.parser is None:
        return field.default if value is None else value
    return option.parser(value)


def _names(field: Declared, option: Option) -> tuple[str, ...]:
    return option.names or (field.spelled(),)


def _dest(field: Declared) -> str:
    """The attribute of a namespace: that of the option's first name, as argparse has it."""
    return (
        field.name if isinstance(field.options[0], Argument) else field.spelled().strip("-").replace("-", "_")
    )
