"""A click command from a function that takes one dataclass; what commands print; the options that only the command line has.

The fields of the dataclass declare them: see `options.option`. The type of a field decides how its value is parsed:
bool is a flag, tuple[str, str] takes two values, and what may be several things is text.

The package's other modules are imported inside functions, so that the command starts quickly.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, get_args, get_origin

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from cdxmill.errors import StoppedError, UsageError
from cdxmill.messages import say, say_lines, write_advice
from cdxmill.options.option import AnyPath, Argument, Declared, Needs, Option, Quiet, check, declared

if TYPE_CHECKING:
    from cdxmill.spark.engine import Engine


class ClosedPipe(BaseException):
    """The reader of stdout has closed it (`| head`). click would report an OSError as its own failure."""


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """The stream for bytes on stdout. Raises ClosedPipe, or StoppedError if it cannot be written."""
    if sys.stdout is None:
        raise StoppedError("stdout: cannot be written (it is closed)")
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ClosedPipe from None
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        discard_output()
        raise StoppedError(
            f"stdout: cannot be written ({os.strerror(error.errno)}); {write_advice(error.errno)}"
        ) from None


def discard_output() -> None:
    """Discard what Python would write to stdout at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_summary(summary: object, *, quiet: bool) -> None:
    """Print the closing lines of a command on stderr, unless `quiet`."""
    if not quiet:
        say_lines(str(summary))


def print_error(text: str) -> None:
    """Print one line on stderr."""
    say(f"cdxmill: {text}")


_LAST = ("engine", "master", "processes", "quiet")
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
    known = declared(arguments)

    def call(**given: Any) -> int:
        asked = arguments(**{field.name: _value(field, given) for field in known})
        check(asked, {field.name for field in known if _is_given(field)}, Declared.spelled)
        return run(asked)

    text, _, examples = (inspect.getdoc(run) or "").partition("\n\nExamples:\n")
    return HelpCommand(
        run.__name__.replace("_", "-"),
        callback=call,
        params=[parameter for field in sorted(known, key=_order) for parameter in _parameters(field)],
        help=text,
        examples=[line.strip() for line in examples.splitlines()],
    )


def _value(field: Declared, given: Mapping[str, Any]) -> Any:
    """The value of a field. Raises UsageError if two of its flags were given."""
    chosen = [number for number, name in enumerate(field.flags) if given[name]]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(map(field.spelled, chosen))} cannot be used together")
    if field.flags:
        return field.values[chosen[0]] if chosen else field.default
    value = list(given[field.name]) if field.is_repeated else given[field.name]
    return field.default if value in (None, []) and not field.is_required else value


def _is_given(field: Declared) -> bool:
    context = click.get_current_context()
    names = field.flags or (field.name,)
    return any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in names)


def _parameters(field: Declared) -> Iterator[click.Parameter]:
    for number, option in enumerate(field.options):
        if isinstance(option, Argument):
            yield _argument(field, option)
        elif field.flags:
            names = option.names or (field.spelled(number),)
            yield click.Option([field.flags[number], *names], is_flag=True, help=option.help)
        else:
            yield _option(field, option)


def _argument(field: Declared, what: Argument) -> click.Parameter:
    return HelpArgument(
        [field.name],
        text=what.help,
        metavar=what.metavar,
        required=field.is_required,
        nargs=-1 if field.is_repeated else 1,
        type=str,
        shell_complete=_complete(what.metavar),
    )


def _option(field: Declared, what: Option) -> click.Parameter:
    names = [field.name, *(what.names or (field.spelled(),))]
    settings: dict[str, Any] = {
        "help": what.help,
        "metavar": what.metavar or _METAVARS.get(field.kind),
        "required": field.is_required,
        "shell_complete": _complete(what.metavar),
    }
    if field.kind is bool:
        return click.Option(names, is_flag=True, default=field.default, **settings)
    if field.is_repeated or (get_origin(field.kind) is tuple and what.parser is None):
        many = {"multiple": True} if field.is_repeated else {"nargs": len(get_args(field.kind))}
        return click.Option(names, type=str, **many, **settings)
    if not field.is_required:
        default = field.default if what.parser is None else None
        settings |= {"default": default, "show_default": default is not None}
    return click.Option(names, type=_type(field.kind, what), **settings)


def _complete(metavar: str | None) -> Callable[..., list[CompletionItem]] | None:
    def files(ctx: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
        return [CompletionItem(text, type="file")]

    return files if metavar in _PATHS else None


def _type(kind: Any, option: Option) -> Any:
    if option.parser is not None:
        return click.types.FuncParamType(option.parser)
    if (option.min, option.max) != (None, None):
        return click.IntRange(option.min, option.max)
    return kind


def _order(field: Declared) -> tuple[bool, int]:
    return not field.is_required, _LAST.index(field.name) if field.name in _LAST else -1


@dataclass(kw_only=True, repr=False, eq=False)
class Printing:
    """Whether the command prints its progress and its summary. It comes before the options that are quiet by default."""

    quiet: Quiet = False


@dataclass(kw_only=True, repr=False, eq=False)
class EngineOptions:
    """Where the tasks of a command run."""

    engine: Annotated[
        str,
        Option(
            choices=("local", "spark"),
            help="local: processes of this machine. spark: Apache Spark; the output may then be an s3 or hdfs URL.",
        ),
    ] = "local"
    master: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="Master of Spark, such as yarn or spark://HOST:7077. Default: that of spark-submit, or else this"
            " machine.",
        ),
        Needs("engine=spark"),
    ] = None

    @contextmanager
    def open_engine(self, processes: int, *, quiet: bool) -> Iterator[Engine | None]:
        """The engine on Spark; None for the local one. Raises UsageError."""
        if self.engine == "local":
            yield None
            return
        from cdxmill.spark.engine import Engine, check_pyspark

        check_pyspark()
        with Engine(self.master or "", processes, quiet=quiet) as engine:
            yield engine


def check_no_pipe(inputs: Iterable[AnyPath], reason: str) -> None:
    """Raise UsageError if one of the inputs is standard input."""
    if "-" in inputs:
        raise UsageError(reason)
