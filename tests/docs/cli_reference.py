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
import typer

from cdxmill.cli.main import make_app

PAGE = Path(__file__).parents[2] / "docs/cli.md"

_HELP = re.compile(r"(?<=^```console\n)\$ (cdxmill[^\n]* --help)\n.*?(?=^```$)", re.M | re.S)


def commands() -> dict[str, click.Command]:
    """All commands by their command line, with `cdxmill` itself."""
    group = typer.main.get_command(make_app())
    assert isinstance(group, click.Group)
    return {"cdxmill": group, **{f"cdxmill {name}": command for name, command in group.commands.items()}}


def options() -> Iterator[tuple[str, click.Parameter]]:
    """All (command, option or argument)."""
    for name, command in commands().items():
        yield from ((name, parameter) for parameter in command.params)


def help_of(command: str) -> str:
    """The output of `command --help` on a terminal of 80 columns."""
    bin_folder = Path(sys.executable).parent
    env = {**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    words = [str(bin_folder / "cdxmill"), *command.split()[1:], "--help"]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout


def with_help(text: str) -> str:
    """Return the page with the current help texts."""
    return _HELP.sub(lambda match: f"$ {match[1]}\n{help_of(match[1].removesuffix(' --help'))}", text)


def main(page: Path = PAGE) -> None:
    """Update the help texts of the page."""
    page.write_text(with_help(page.read_text()))


if __name__ == "__main__":
    main()
