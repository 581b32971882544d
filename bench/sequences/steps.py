"""A step of a sequence: a command, or what a user does between two commands. Each is a line of a shell script, too."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bench.sequences.commands import KINDS, Kind


class Run(NamedTuple):
    """A command: `kind` is a key of KINDS. It is killed before its change of files with the number `kill`; 0 for never."""

    kind: str
    options: tuple[str, ...]
    inputs: str
    output: str
    kill: int = 0

    @property
    def rules(self) -> Kind:
        """What its kind of command does."""
        return KINDS[self.kind]

    @property
    def words(self) -> list[str]:
        """The arguments of `cdxmill`."""
        options = " ".join(self.options)
        return self.rules.line.format(options=options, inputs=self.inputs, output=self.output).split()

    @property
    def root(self) -> str:
        """The directory at the top of the world that it writes to."""
        return self.output.split("/")[0]

    @property
    def reads_its_output(self) -> bool:
        """Whether an input is in the directory that it writes to."""
        words = " ".join((*self.options, self.inputs)).replace(",", " ").split()
        return self.root in {word.split("/")[0] for word in words}

    def has(self, *options: str) -> bool:
        """Whether it has one of these options."""
        return not set(options).isdisjoint(self.options)

    def __str__(self) -> str:
        command = f"python -m bench.sequences --kill {self.kill}" if self.kill else "cdxmill"
        return " ".join([command, *map(_quoted, self.words)])


def _quoted(word: str) -> str:
    return word if word == shlex.quote(word) else f"'{word}'"


class Change(NamedTuple):
    """What a user does: a verb, a path, and what the verb needs: another path, a text, or a place in the file from 0 to 1."""

    verb: str
    path: str
    more: str = ""

    def do(self) -> None:
        """Do it in the working directory. Nothing happens if the path is absent, or is a directory that should be a file."""
        path = Path(self.path)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            _VERBS[self.verb].do(path, self.more)

    def __str__(self) -> str:
        parent = Path(self.more if self.verb == "move" else self.path).parent
        return _VERBS[self.verb].shell.format(path=self.path, more=self.more, parent=parent)


Step = Run | Change


class _Verb(NamedTuple):
    """What is done to a path, and the line of a shell that does it."""

    do: Callable[[Path, str], object]
    shell: str


def _copy(path: Path, source: str) -> None:
    shutil.copyfile(source, path)


def _copy_with_time(path: Path, source: str) -> None:
    shutil.copy2(source, path)


def _move(path: Path, target: str) -> None:
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    if not Path(target).is_dir():
        path.rename(target)


def _remove(path: Path, _: str) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _flip(path: Path, place: str) -> None:
    data = bytearray(path.read_bytes() or b" ")
    data[min(int(len(data) * float(place)), len(data) - 1)] ^= 1
    path.write_bytes(data)


def _cut(path: Path, place: str) -> None:
    os.truncate(path, int(path.stat().st_size * float(place)))


def _write(path: Path, text: str) -> None:
    path.write_text(f"{text}\n")


_VERBS = {
    "copy": _Verb(_copy, "mkdir -p {parent}; cp {more} {path}"),
    "copy with time": _Verb(_copy_with_time, "mkdir -p {parent}; cp -p {more} {path}"),
    "move": _Verb(_move, "mkdir -p {parent}; mv -T {path} {more}"),
    "remove": _Verb(_remove, "rm -r {path}"),
    "flip": _Verb(
        _flip,
        "python -c \"p = '{path}'; d = bytearray(open(p, 'rb').read() or b' '); d[int(len(d) * {more})] ^= 1;"
        " open(p, 'wb').write(d)\"",
    ),
    "cut": _Verb(
        _cut, "python -c \"import os; p = '{path}'; os.truncate(p, int(os.path.getsize(p) * {more}))\""
    ),
    "write": _Verb(_write, "mkdir -p {parent}; echo '{more}' > {path}"),
}


def script(steps: Sequence[Step]) -> str:
    """The lines of a shell that do these steps in a new directory."""
    start = 'W=$(mktemp -d); python -m bench.sequences --start "$W"; cd "$W/w"'
    return "\n".join([start, *map(str, steps)])
