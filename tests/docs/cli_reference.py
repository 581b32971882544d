"""docs/cli.md has every command's --help, word for word.

.venv/bin/python tests/docs/cli_reference.py      rewrites the page where a help text has changed
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

from cdxmill.cli.main import app

PAGE = Path(__file__).parents[2] / "docs/cli.md"

_HELP = re.compile(r"(?<=^```console\n)\$ (cdxmill[^\n]* --help)\n.*?(?=^```$)", re.M | re.S)


def commands() -> dict[str, click.Command]:
    """Every command as it is typed, `cdxmill` itself included."""
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group)
    return {"cdxmill": group, **{f"cdxmill {name}": command for name, command in group.commands.items()}}


def options() -> Iterator[tuple[str, click.Parameter]]:
    """(command, option or argument) for all there are."""
    for name, command in commands().items():
        yield from ((name, parameter) for parameter in command.params)


def help_of(command: str) -> str:
    """What `command --help` prints on a terminal of 80 columns."""
    bin_folder = Path(sys.executable).parent
    env = {**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    words = [str(bin_folder / "cdxmill"), *command.split()[1:], "--help"]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout


def with_help(text: str) -> str:
    """The page with each help text as it is now."""
    return _HELP.sub(lambda match: f"$ {match[1]}\n{help_of(match[1].removesuffix(' --help'))}", text)


def main(page: Path = PAGE) -> None:
    """Rewrite the page."""
    page.write_text(with_help(page.read_text()))


if __name__ == "__main__":
    main()
