"""Every message of a command is read: an option that it advises is one of this command, or of the command that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
import pytest

import cdxmill.messages
from cdxmill.cli.main import APP

_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_NAMED = re.compile(r"\bcdxmill ([a-z-]+(?: build| search)?)((?: (?!cdxmill)[^;,)]*)?)")
_HELP = "--help"


def strange_options(message: str, command: click.Command) -> list[str]:
    """The options in the advice of a message, after the first semicolon, that the command does not have.

    What follows `cdxmill NAME` is checked with that command.
    """
    advice = message.partition("; ")[2]
    strange = []
    for found in _NAMED.finditer(advice):
        strange += _unknown(found[2], _command(found[1]))
    return strange + _unknown(_NAMED.sub("", advice), command)


def _unknown(text: str, command: click.Command) -> list[str]:
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    return [name for name in _OPTION.findall(text) if name not in known and name != _HELP]


def _command(name: str) -> click.Command:
    found: click.Command = APP
    for step in name.split():
        if isinstance(found, click.Group):
            found = found.get_command(click.Context(found), step) or found
    return found


@contextmanager
def advice_checked() -> Iterator[list[str]]:
    """Check the messages of all commands that run in this process. Yields a list that gets what is wrong."""
    wrong: list[str] = []
    running: list[click.Command] = []
    write: Callable[[str], None] = cdxmill.messages._write
    invoke = click.Command.invoke

    def noted(command: click.Command, context: click.Context) -> object:
        if not isinstance(command, click.Group):
            running[:] = [command]
        return invoke(command, context)

    def checked(text: str) -> None:
        for command in running if not text.startswith("remote_copy: ") else ():  # it has options of its own
            wrong.extend(f"{command.name}: {name}: {text}" for name in strange_options(text, command))
        write(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(click.Command, "invoke", noted)
        patch.setattr(cdxmill.messages, "_write", checked)
        yield wrong
