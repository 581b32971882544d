"""The man page docs/man/cdxmill.1, from the help texts of the commands.

.venv/bin/python tests/docs/man_page.py      updates it
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from cdxmill.cli.command import HelpArgument, HelpCommand
from cdxmill.cli.main import APP, COMMANDS, EXIT_STATUS
from cdxmill.version import __version__

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/man/cdxmill.1"
_SPECIAL = re.compile(r"[\\'`^~-]")
_NAMES = {"\\": r"\e", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", "-": r"\-"}


def escaped(text: str) -> str:
    r"""Text for roff: no character of it is a command.

    >>> escaped(".x -o 'a'")
    '\\&.x \\-o \\(aqa\\(aq'
    """
    text = _SPECIAL.sub(lambda match: _NAMES[match[0]], text)
    return f"\\&{text}" if text.startswith(".") else text


def man_page() -> str:
    """The man page."""
    lines = [
        f'.TH CDXMILL 1 "" "cdxmill {__version__}" "User Commands"',
        ".SH NAME",
        r"cdxmill \- build CDX indexes of web archives, and search them",
        ".SH SYNOPSIS",
        ".B cdxmill",
        escaped("COMMAND [OPTIONS] [ARGUMENTS]"),
        ".SH OPTIONS",
        *_options(APP),
        ".SH COMMANDS",
    ]
    for name in COMMANDS:
        command = APP.get_command(_context(APP), name)
        parts = {f" {part}": one for part, one in getattr(command, "commands", {"": command}).items()}
        for part, one in parts.items():
            assert isinstance(one, HelpCommand)
            lines += _command(f"cdxmill {name}{part.rstrip()}", one)
    lines += [".SH EXIT STATUS", escaped(EXIT_STATUS.removeprefix("Exit status: "))]
    return "\n".join(lines) + "\n"


def _command(name: str, command: HelpCommand) -> Iterator[str]:
    context = _context(command)
    yield f".SS {escaped(name)}"
    yield f".B {escaped(name)}"
    yield escaped(" ".join(command.collect_usage_pieces(context)))
    for paragraph in (command.help or "").split("\n\n"):
        yield ".PP"
        yield escaped(" ".join(paragraph.split()))
    yield from _options(command)
    yield ".PP"
    yield "Examples:"
    yield from (".PP", ".nf", ".RS 4", *map(escaped, command.examples), ".RE", ".fi")


def _context(command: click.Command) -> click.Context:
    """click keeps the help option of the first context of a command, so each has the names of this option."""
    return click.Context(command, help_option_names=["-h", "--help"])


def _options(command: click.Command) -> Iterator[str]:
    context = _context(command)
    for parameter in command.get_params(context):
        if isinstance(parameter, HelpArgument):
            row: tuple[str, str] | None = parameter.metavar or "", parameter.text
        else:
            row = parameter.get_help_record(context)
        if row is not None:
            yield ".TP"
            yield rf"\fB{escaped(row[0])}\fR"
            yield escaped(row[1])


if __name__ == "__main__":
    PAGE.write_text(man_page())
