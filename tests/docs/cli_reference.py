"""The help texts in docs/cli.md.

.venv/bin/python tests/docs/cli_reference.py      updates them
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from cdxmill.cli.main import APP

PAGE = Path(__file__).parents[2] / "docs/cli.md"

_HELP = re.compile(r"(?<=^```console\n)\$ (cdxmill[^\n]* --help)\n.*?(?=^```$)", re.M | re.S)


def commands() -> dict[str, click.Command]:
    """All commands by their command line, with `cdxmill` itself."""
    context = click.Context(APP)
    found = {f"cdxmill {name}": APP.get_command(context, name) for name in APP.list_commands(context)}
    present = {name: command for name, command in found.items() if command is not None}
    inner = {
        f"{name} {part}": command
        for name, group in present.items()
        if isinstance(group, click.Group)
        for part, command in group.commands.items()
    }
    return {"cdxmill": APP, **present, **inner}


def options() -> Iterator[tuple[str, click.Parameter]]:
    """All (command, option or argument)."""
    for name, command in commands().items():
        yield from ((name, parameter) for parameter in command.params)


def help_of(command: str) -> str:
    """The output of `command --help` on a terminal of 80 columns."""
    bin_directory = Path(sys.executable).parent
    env = {**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    words = [str(bin_directory / "cdxmill"), *command.split()[1:], "--help"]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout


def with_help(text: str) -> str:
    """Return the page with the current help texts."""
    return _HELP.sub(lambda match: f"$ {match[1]}\n{help_of(match[1].removesuffix(' --help'))}", text)


def main(page: Path = PAGE) -> None:
    """Update the help texts of the page."""
    page.write_text(with_help(page.read_text()))


if __name__ == "__main__":
    main()
