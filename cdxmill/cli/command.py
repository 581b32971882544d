"""A click command from a function that takes one dataclass with the command's arguments and options.

    @dataclass(frozen=True, kw_only=True)
    class Arguments:
        cluster: Annotated[str, Argument(metavar="CLUSTER", help="...")]
        limit: Annotated[int | None, Option("--limit", min=1, metavar="N", help="...")] = None

The type of a field decides how its value is parsed: bool is a flag, list[str] may be repeated, and
tuple[str, str] takes two values.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
from click.shell_completion import CompletionItem

_LAST = ("processes", "quiet")
"""Options of most commands; they are the last in a help text."""
_PATHS = ("INPUT...", "CDX...", "CLUSTER", "SOURCE", "DEST", "FILE", "DIR", "CDX", "LOCATION", "OUTPUT")
"""Metavars of paths. The shell completes them with the names of files."""
_METAVARS = {int: "N", float: "F", str: "NAME"}
"""Those of options that have no metavar of their own."""
METAVARS = {
    *_PATHS,
    *_METAVARS.values(),
    *("URL", "TIME", "TIMESTAMP", "BASE", "SHELL", "TYPE", "TYPES", "FORMAT", "ORDER"),
    *(
        "QUERY",
        "QUERY...",
        "KEY",
        "LAYOUT",
        "SIZE",
        "FILTER",
        "EXPRESSION",
        "FUNCTION",
        "RULE",
        "NAMES",
        "TEXT",
        "ADDRESS",
        "MATCH REPLACE",
        "WHAT",
    ),
}
"""All metavars. The same kind of value has the same one in all commands."""


@dataclass(frozen=True)
class Argument:
    """A positional argument."""

    metavar: str
    help: str


class Option:
    """An option. Without `names`, its name is that of the field. `parser` makes the value from the text."""

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        min: int | None = None,
        max: int | None = None,
        parser: Callable[[str], object] | None = None,
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.range = min, max
        self.parser = parser


class HelpCommand(click.Command):
    """A command whose help lists the arguments, too, and has examples."""

    def __init__(self, *given: Any, examples: list[str], **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then the options."""
        arguments = [_argument_help(item, ctx) for item in self.params if isinstance(item, HelpArgument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        super().format_options(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class HelpArgument(click.Argument):
    """An argument with a help text."""

    def __init__(self, *declarations: Any, text: str, **settings: Any) -> None:
        super().__init__(*declarations, **settings)
        self.text = text

    def make_metavar(self, ctx: click.Context) -> str:
        """Return the name in help texts: in brackets if the argument may be missing."""
        metavar = self.metavar or ""
        return metavar if self.required else f"[{metavar}]"


def _argument_help(argument: HelpArgument, ctx: click.Context) -> tuple[str, str]:
    return argument.metavar or "", argument.text


def command(run: Callable[[Any], int]) -> click.Command:
    """Return the click command that calls `run` with its dataclass.

    In the help text, required options come first. Lines of the docstring after `Examples:` are command lines.
    """
    (arguments,) = (
        kind for name, kind in inspect.get_annotations(run, eval_str=True).items() if name != "return"
    )
    known = fields(arguments)
    hints = get_type_hints(arguments, include_extras=True)
    defaults = {field.name: field.default for field in known if field.default is not MISSING}

    def call(**given: Any) -> int:
        lists = {name: list(given[name]) or defaults.get(name) for name in given if _is_list(hints[name])}
        return run(arguments(**given | lists))

    text, _, examples = (inspect.getdoc(run) or "").partition("\n\nExamples:\n")
    return HelpCommand(
        run.__name__.replace("_", "-"),
        callback=call,
        params=[_parameter(field, hints[field.name]) for field in sorted(known, key=_order)],
        help=text,
        examples=[line.strip() for line in examples.splitlines()],
    )


def _parameter(field: Field[Any], annotated: Any) -> click.Parameter:
    hint, what = get_args(annotated)
    kind = _without_none(hint)
    required = field.default is MISSING
    if isinstance(what, Argument):
        count = -1 if _is_list(annotated) else 1
        return HelpArgument(
            [field.name],
            text=what.help,
            metavar=what.metavar,
            required=required,
            nargs=count,
            type=str,
            shell_complete=_complete(what.metavar),
        )
    names = what.names or (f"--{field.name.replace('_', '-')}",)
    settings: dict[str, Any] = {
        "help": what.help,
        "metavar": what.metavar or _METAVARS.get(kind),
        "required": required,
        "shell_complete": _complete(what.metavar),
    }
    if kind is bool:
        return click.Option([field.name, *names], is_flag=True, default=field.default, **settings)
    if get_origin(kind) in (list, tuple):
        many = {"multiple": True} if get_origin(kind) is list else {"nargs": len(get_args(kind))}
        return click.Option([field.name, *names], type=str, **many, **settings)
    if not required:
        settings |= {"default": field.default, "show_default": field.default is not None}
    return click.Option([field.name, *names], type=_type(kind, what), **settings)


def _complete(metavar: str | None) -> Callable[..., list[CompletionItem]] | None:
    def files(ctx: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
        return [CompletionItem(text, type="file")]

    return files if metavar in _PATHS else None


def _type(kind: Any, option: Option) -> Any:
    if option.parser is not None:
        return click.types.FuncParamType(option.parser)
    if option.range != (None, None):
        return click.IntRange(*option.range)
    return kind


def _is_list(annotated: Any) -> bool:
    return get_origin(_without_none(get_args(annotated)[0])) is list


def _without_none(hint: Any) -> Any:
    """The type without `| None`."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
    return hint


def _order(field: Field[Any]) -> tuple[bool, bool]:
    return field.default is not MISSING, field.name in _LAST
