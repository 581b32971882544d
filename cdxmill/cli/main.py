"""The command line: the list of commands, and the exit status of every error.

The module of a command is imported only if the command is called, so that the command starts quickly.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from importlib import import_module
from types import FrameType

import click
from click.shell_completion import get_completion_class, shell_complete

from cdxmill.cli.command import ClosedPipe, command, discard_output, print_error
from cdxmill.errors import INTERRUPTED, OK, STOPPED, USAGE, CdxmillError
from cdxmill.messages import print_notes, say_lines, write_advice
from cdxmill.version import __version__

COMMANDS = {
    "index": "archives",
    "sample": "clusters",
    "zipnum": "clusters",
    "build": "clusters",
    "add": "collections",
    "remove": "collections",
    "compact": "collections",
    "merge": "collections",
    "publish": "clusters",
    "serve": "clusters",
    "cdx-server": "servers",
    "lookup": "lookup",
    "get": "records",
    "copy": "records",
    "export": "exports",
    "crawls": "lookup",
    "cat": "records",
    "count": "contents",
    "verify": "clusters",
    "scan": "contents",
    "recompress": "packing",
    "reindex": "packing",
    "train-dictionary": "packing",
    "report": "reports",
    "prefix-index": "prefix_index",
    "split-points": "clusters",
}
"""In the order of the help text, with the module that has the function of its name."""

atexit.register(gc.freeze)  # else the interpreter looks for garbage at its end: 25 ms

COMPLETE = "_CDXMILL_COMPLETE"
"""The variable in which the completion script of a shell asks for completions."""

EXIT_STATUS = (
    "Exit status: 0 success (also if nothing was found), 1 some inputs failed or errors were found (all other"
    " output is complete), 2 invalid usage, 3 a machine was at fault (run it again), 130 or 143 stopped by a"
    " signal."
)


def _show_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        import platform

        from cdxmill.stages import native

        compiled = "compiled" if native.Merger else "not compiled, slower"
        print(f"cdxmill {__version__} ({compiled}; Python {platform.python_version()})", flush=True)
        ctx.exit()


def _print_completion(ctx: click.Context, option: click.Parameter, shell: str | None) -> None:
    if shell is not None:
        complete = get_completion_class(shell)
        assert complete is not None, shell
        print(complete(APP, {}, "cdxmill", COMPLETE).source(), flush=True)
        ctx.exit()


class CommandGroup(click.Group):
    """The group of all commands. The module of a command is imported when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        found = getattr(import_module(f"cdxmill.cli.{COMMANDS[cmd_name]}"), cmd_name.replace("-", "_"))
        made: click.Command = found if isinstance(found, click.Group) else command(found)
        for one in (made, *getattr(made, "commands", {}).values()):
            one.epilog = EXIT_STATUS
        return made

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called. For an unknown name, the error has the most similar one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from difflib import get_close_matches

            similar = get_close_matches(args[0], COMMANDS, 1)
            if not similar:
                raise
            ctx.fail(f"No such command {args[0]!r}; did you mean {similar[0]}?")


APP = CommandGroup(
    "cdxmill",
    help="Build CDX indexes of web archives, and search them.",
    epilog=EXIT_STATUS,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_show_version,
            help="Show the version and exit.",
        ),
        click.Option(
            ["--completion"],
            type=click.Choice(("bash", "zsh", "fish")),
            expose_value=False,
            is_eager=True,
            callback=_print_completion,
            metavar="SHELL",
            help="Print the completion script for bash, zsh or fish and exit.",
        ),
    ],
)


class _Terminated(BaseException):
    """SIGTERM, or SIGHUP when a terminal is closed; ends the program as Ctrl-C does."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated(number)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    _fill_closed_streams()
    print_notes()
    if hosts := sys.modules.get("cdxmill.storage.hosts"):  # not the first run of this process
        hosts.begin_run()
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # nohup ignores it
        signal.signal(signal.SIGHUP, _terminate)
    if arguments is None:
        arguments = sys.argv[1:]
    try:
        if instruction := os.environ.get(COMPLETE):
            return shell_complete(APP, {}, "cdxmill", COMPLETE, instruction)
        with APP.make_context("cdxmill", arguments) as context:
            result = APP.invoke(context)
        return result if isinstance(result, int) else OK
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        return _usage(error)
    except CdxmillError as error:
        return _fail(str(error), error.status)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", INTERRUPTED)
    except _Terminated as stopped:
        return _fail("terminated", 128 + int(stopped.args[0]))
    except ClosedPipe:
        discard_output()
        return 128 + signal.SIGPIPE
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


def _system_error(error: OSError) -> int:
    """A fault of the file system or the machine that no other code has named."""
    if os.environ.get("CDXMILL_TRACEBACK"):
        raise error
    if isinstance(error, BrokenPipeError) and _stdout_has_no_reader():  # of a help text
        discard_output()
        return 128 + signal.SIGPIPE
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()
    where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return _fail(f"{where}{error.strerror or error}; {write_advice(error.errno)}", STOPPED)


def _stdout_has_no_reader() -> bool:
    import select  # no other start of the program needs it

    asked = select.poll()
    asked.register(1, 0)
    return bool(asked.poll(0))  # a pipe has an error then, a socket was hung up


def _internal_error(error: Exception) -> int:
    if os.environ.get("CDXMILL_TRACEBACK"):
        raise error
    what = f"{type(error).__name__}: {error}"
    return _fail(
        f"internal error ({what}); set CDXMILL_TRACEBACK=1 to get the details, and report it", STOPPED
    )
