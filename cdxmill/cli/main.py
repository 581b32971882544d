"""The command line: the list of commands, and the exit status of every error.

The module of a command is imported only if the command is called, so that the command starts quickly.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from importlib import import_module
from types import FrameType
from typing import Annotated

import click
import typer

from cdxmill.cli.output import FAILED, OK, STOPPED, USAGE, ClosedPipe, discard_output, print_error
from cdxmill.errors import CdxmillError, InputError, UsageError
from cdxmill.messages import say_lines
from cdxmill.version import __version__

COMMANDS = ("index", "sample", "zipnum", "build", "publish", "lookup", "get", "verify", "split-points")
"""In the order of the help text. A command is the function of its own name in the module of its name."""

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM

EXIT_STATUS = (
    "Exit status: 0 success (also if nothing was found), 1 some inputs failed or errors were found (all other"
    " output is complete), 2 invalid usage, 3 stopped (no final output; run it again), 130 or 143 stopped by a"
    " signal."
)


def make_app(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """Make the typer app with these commands."""
    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Build CDX indexes of web archives, and search them.",
        epilog=EXIT_STATUS,
    )
    app.callback()(_options)
    for name in commands:
        module = name.replace("-", "_")
        function = getattr(import_module(f"cdxmill.cli.{module}"), module)
        app.command(name, epilog=EXIT_STATUS)(function)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cdxmill {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    del version


class _Terminated(BaseException):
    """SIGTERM; ends the program as Ctrl-C does."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def _app_for(arguments: list[str]) -> typer.Typer:
    """Make the app with only the command that is called."""
    called = arguments[0] if arguments else ""
    if called == "--version":
        return make_app(())
    return make_app((called,) if called in COMMANDS else COMMANDS)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    _fill_closed_streams()
    signal.signal(signal.SIGTERM, _terminate)
    if arguments is None:
        arguments = sys.argv[1:]
    try:
        result = _app_for(arguments)(arguments, prog_name="cdxmill", standalone_mode=False)
        if result == INTERRUPTED:  # typer returns this after Ctrl-C
            raise KeyboardInterrupt
        return result if isinstance(result, int) else OK
    except click.ClickException as error:
        return _usage(error)
    except UsageError as error:
        return _fail(str(error), USAGE)
    except InputError as error:
        return _fail(str(error), FAILED)
    except CdxmillError as error:
        return _fail(str(error), STOPPED)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    except _Terminated:
        return _fail("terminated", TERMINATED)
    except ClosedPipe:
        return _closed_pipe()
    except OSError as error:
        return _system_error(error)
    except Exception as error:
        return _internal_error(error)


def _fill_closed_streams() -> None:
    """Open /dev/null for closed standard streams: else the next file gets the number of one, and messages are written to it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def _usage(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "cdxmill"
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say_lines(error.format_message())
        return USAGE
    text = error.format_message().rstrip(".").replace("\n", " ")
    return _fail(f"{text}; see {path} --help", USAGE)


def _fail(text: str, status: int) -> int:
    print_error(text)
    return status


def _closed_pipe() -> int:
    discard_output()
    return 128 + signal.SIGPIPE


def _system_error(error: OSError) -> int:
    """A fault of the file system or the machine that no other code has named."""
    if os.environ.get("CDXMILL_TRACEBACK"):
        raise error
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()
    where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return _fail(f"{where}{error.strerror or error}; free space or fix it, then run it again", STOPPED)


def _internal_error(error: Exception) -> int:
    if os.environ.get("CDXMILL_TRACEBACK"):
        raise error
    what = f"{type(error).__name__}: {error}"
    return _fail(
        f"internal error ({what}); set CDXMILL_TRACEBACK=1 to get the details, and report it", STOPPED
    )
