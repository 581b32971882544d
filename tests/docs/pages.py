"""The pages of the documentation and their examples."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.browser import find_program

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OF_THE_PROJECT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in OF_THE_PROJECT), *sorted(DOCS.rglob("*.md"))]

_OF_A_CHECKOUT = ("bin", "conf", "jobs")
_PORT = "8080"
"""The port in examples that start a server; the tests use a free one."""

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
_MARK = "end of example"
_END = f"status=$?; echo; echo {_MARK}; (exit $status)"


class Example(NamedTuple):
    """A command of a page as a person types it, and the output that the page shows."""

    command: str
    output: str


def page_name(page: Path) -> str:
    """A page's path below the checkout."""
    return page.relative_to(ROOT).as_posix()


def fences(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return [text for kind, text in _FENCE.findall(page.read_text()) if kind == language]


def marked(page: Path, words: str) -> list[str]:
    """The fenced blocks of a page whose first line has exactly these words, such as `sh hadoop`."""
    return re.findall(rf"^```{words}\n(.*?)^```$", page.read_text(), re.M | re.S)


def examples(text: str) -> Iterator[Example]:
    """The commands of a block: each starts with `$ `, its further lines with `>`.

    >>> list(examples("$ echo a\\n> b\\na b\\n$ true\\n"))
    [Example(command='echo a\\nb', output='a b\\n'), Example(command='true', output='')]
    """
    command: list[str] = []
    output: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield Example("\n".join(command), _text(output))
            command, output = [line[2:]], []
        elif line.startswith(">") and not output:
            command.append(line[2:])
        else:
            output.append(line)
    if command:
        yield Example("\n".join(command), _text(output))


def page_examples(page: Path) -> list[Example]:
    """All examples of a page that the tests run: those in `console` blocks."""
    return [example for text in fences(page, "console") for example in examples(text)]


def _text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def shows(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed. `...` matches any text in a line; alone, it matches any lines.

    >>> shows("a ... d\\n...\\nz\\n", "a b c d\\n1\\n2\\nz\\n"), shows("a\\n", "a b\\n")
    (True, False)
    """
    lines = [
        r"(?:.*\n)*?" if line == "..." else r"[^\n]*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in shown.splitlines()
    ]
    return re.fullmatch("".join(lines), printed) is not None


def environment() -> dict[str, str]:
    """The environment of an example: the commands of this Python first, a terminal of 80 columns."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}{os.pathsep}/usr/sbin"
    return {**os.environ, "PATH": path, "COLUMNS": "80", "LC_ALL": "C.UTF-8"}


def run_examples(commands: list[str], directory: Path) -> list[str]:
    """Run the commands in one shell that starts in `folder`; return what each prints.

    The folder gets a `.venv`, as in a checkout after bin/setup-env, and the launchers if a command is one of them. What the
    commands leave running ends.
    """
    (directory / ".venv").symlink_to(sys.prefix)
    if any(command.startswith("bin/") or " conf/" in command for command in commands):
        link_launchers(directory)
    if any(command.startswith("nginx ") for command in commands):
        find_program(["nginx"], "nginx-light")
    port = free_port()
    script = "".join(f"{command}\n{_END}\n" for command in commands).replace(_PORT, port)
    done = subprocess.run(
        ["bash", "-c", f"trap 'kill $(jobs -p) 2>/dev/null' EXIT\n{script}"],
        cwd=directory,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout.replace(port, _PORT).split(f"\n{_MARK}\n")[:-1]


def link_launchers(directory: Path) -> None:
    """Make a folder look like a checkout to the launchers."""
    for name in _OF_A_CHECKOUT:
        (directory / name).symlink_to(ROOT / name)


def free_port() -> str:
    """A port of this machine that no server uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])
