"""Makes a click command of a function that takes one dataclass; and the output, the errors and the engine of all commands.

The fields of the dataclass declare them: see `options.option`. The type of a field decides how its value is parsed:
bool is a flag, tuple[str, str] takes two values, and what may be several things is text.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, get_args, get_origin

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from cdxmill.errors import StoppedError, UsageError
from cdxmill.messages import say, say_lines, write_advice
from cdxmill.options.option import Declared, EngineOptions, check, declared

if TYPE_CHECKING:
    from cdxmill.running.failures import Failures
    from cdxmill.running.processes import RunTasks
    from cdxmill.spark.exporting import TableRunner
    from cdxmill.spark.jobs import CountRunner, IndexRunner, Maker, RecompressRunner, ScanRunner, WaczOpener


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


def print_error(text: str) -> None:
    """Print one line on stderr."""
    say(f"cdxmill: {text}")


_LAST = ("engine", "master", "processes", "quiet")
"""Options of most commands; they are the last in a help text."""
_PATHS = ("INPUT...", "CDX...", "CLUSTER", "SOURCE", "DEST", "FILE", "DIR", "CDX", "LOCATION", "OUTPUT")
"""Metavars of paths. The shell completes them with the names of files."""
_METAVARS = {int: "N", float: "F", str: "NAME"}
"""Those of options that have no metavar of their own."""


class HelpCommand(click.Command):
    """A command whose help lists the arguments, too, and has examples."""

    def __init__(self, *given: Any, examples: list[str], **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then the options."""
        arguments = [
            (item.metavar or "", item.text) for item in self.params if isinstance(item, HelpArgument)
        ]
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


def command(run: Callable[..., Any]) -> click.Command:
    """Return the click command that calls `run` with its dataclass, and prints and returns what it returns.

    A function of the dataclass alone returns the exit status. One that also takes `failures` returns its closing lines.
    In the help text, required options come first. Lines of the docstring after `Examples:` are command lines.
    """
    kind, *more = inspect.get_annotations(run, eval_str=True, locals={"Failures": None}).values()
    known = declared(kind)

    def call(**given: Any) -> int:
        asked = kind(**{field.name: _value(field, given) for field in known if field.init})
        vars(asked).update({field.name: _value(field, given) for field in known if not field.init})
        check(asked, known, {field.name for field in known if _is_given(field)}, Declared.spelled)
        return run(asked) if len(more) == 1 else _run_with_failures(run, asked)

    text, _, examples = (inspect.getdoc(run) or "").partition("\n\nExamples:\n")
    return HelpCommand(
        run.__name__.replace("_", "-"),
        callback=call,
        params=[parameter for field in sorted(known, key=_order) for parameter in _parameters(field)],
        help=text,
        examples=[line.strip() for line in examples.splitlines()],
    )


def _run_with_failures(run: Callable[[Any, Failures], str], asked: Any) -> int:
    from cdxmill.running.failures import Failures

    failures = Failures()
    try:
        lines = run(asked, failures)
    finally:
        failures.close_listed()
    if lines and not asked.quiet:
        say_lines(lines)
    return failures.status


def _value(field: Declared, given: Mapping[str, Any]) -> Any:
    """The value of a field. Raises UsageError if two of its flags were given."""
    if flags := field.option.flags:
        chosen = [flag.value for flag in flags if given[f"{field.name}_{flag.value}"]]
        if len(chosen) > 1:
            raise UsageError(f"{' and '.join(map(field.spelled, chosen))} cannot be used together")
        return chosen[0] if chosen else field.default
    value = list(given[field.name]) if field.is_repeated else given[field.name]
    return field.default if value in (None, []) else value


def _is_given(field: Declared) -> bool:
    context = click.get_current_context()
    names = [f"{field.name}_{flag.value}" for flag in field.option.flags] or [field.name]
    return any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in names)


def _parameters(field: Declared) -> Iterator[click.Parameter]:
    for flag in field.option.flags:
        names = [f"{field.name}_{flag.value}", *flag.names.split()]
        yield click.Option(names, is_flag=True, help=flag.help)
    if field.option.names:
        yield _option(field)
    elif not field.option.flags:
        yield _argument(field)


def _argument(field: Declared) -> click.Parameter:
    return HelpArgument(
        [field.name],
        text=field.option.help,
        metavar=field.option.metavar,
        required=field.is_required,
        nargs=-1 if field.is_repeated else 1,
        type=str,
        shell_complete=_complete(field.option.metavar),
    )


def _option(field: Declared) -> click.Parameter:
    what = field.option
    names = [field.name, *what.names]
    settings: dict[str, Any] = {
        "help": what.help,
        "metavar": what.metavar or _METAVARS.get(field.kind),
        "required": field.is_required,
        "shell_complete": _complete(what.metavar),
    }
    if field.kind is bool:
        return click.Option(names, is_flag=True, default=False, **settings)
    if field.is_repeated or (get_origin(field.kind) is tuple and what.read is None):
        many = {"multiple": True} if field.is_repeated else {"nargs": len(get_args(field.kind))}
        return click.Option(names, type=str, **many, **settings)
    if not field.is_required:
        default = field.default if what.read is None else None
        settings |= {"default": default, "show_default": default is not None}
    return click.Option(names, type=_type(field), **settings)


def _complete(metavar: str) -> Callable[..., list[CompletionItem]] | None:
    def files(ctx: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
        return [CompletionItem(text, type="file")]

    return files if metavar in _PATHS else None


def _type(field: Declared) -> Any:
    if field.option.read is not None:
        return click.types.FuncParamType(field.option.read)
    if (field.option.min, field.option.max) != (None, None):
        return click.IntRange(field.option.min, field.option.max)
    return field.kind


def _order(field: Declared) -> tuple[bool, int]:
    return not field.is_required, _LAST.index(field.name) if field.name in _LAST else -1


class OnSpark(NamedTuple):
    """What does the tasks of `index`, of `zipnum` and `build`, of `count`, `scan`, `recompress` and `export`, on Apache Spark, and opens WACZ files.

    `tasks` does those of `add`, which need no more than what they are given.
    """

    run: IndexRunner
    make: Maker
    counts: CountRunner
    scan: ScanRunner
    recompress: RecompressRunner
    table: TableRunner
    open_all: WaczOpener
    tasks: RunTasks


@contextmanager
def open_engine(asked: EngineOptions) -> Iterator[OnSpark | None]:
    """The engine on Spark; None for the local one. Raises UsageError."""
    if asked.engine == "local":
        yield None
        return
    from cdxmill.spark.engine import Engine, check_pyspark
    from cdxmill.spark.exporting import TableRunner
    from cdxmill.spark.jobs import CountRunner, IndexRunner, Maker, RecompressRunner, ScanRunner, WaczOpener

    check_pyspark()
    with Engine(asked.master or "", asked.processes, quiet=asked.quiet) as engine:
        runners = IndexRunner(engine), Maker(engine), CountRunner(engine), ScanRunner(engine)
        yield OnSpark(
            *runners, RecompressRunner(engine), TableRunner(engine), WaczOpener(engine), engine.run_tasks
        )
