"""A work folder that a killed run leaves behind and the same run, started again, goes on from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cdxmill.errors import InputError
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.storage.choose import ask_all, is_remote, status
from cdxmill.storage.entry import Entry
from cdxmill.storage.local import write_atomic
from cdxmill.storage.scratch import Scratch


class Numbered(Protocol):
    """A task whose result is kept under its number: a run that goes on may give them in another order."""

    @property
    def number(self) -> int:
        """Its own among the tasks of a step."""


Task = TypeVar("Task", bound=Numbered)


def fingerprint(paths: Sequence[str], settings: object) -> str:
    """Changes when a file's path, size or time changes, or any of the settings."""
    stats = ask_all(_state, paths)
    return hashlib.sha256(repr((stats, settings)).encode("utf-8", "surrogateescape")).hexdigest()


def _state(path: str) -> tuple[str, Entry | None]:
    name = path if is_remote(path) else str(Path(path).absolute())
    try:
        return name, status(path)
    except InputError:
        return name, None


class WorkFolder:
    """Results of tasks, by name, as JSON; emptied where it was another job's."""

    def __init__(self, folder: Path, job: str) -> None:
        self.scratch = Scratch(folder)
        self._folder = folder
        if self.load("job") != job:
            self.scratch.remove()
            self.save("job", job)

    def load(self, name: str) -> Any:
        """A result that was saved, or None."""
        try:
            return json.loads((self._folder / f"{name}.json").read_bytes())
        except (OSError, ValueError):
            return None

    def save(self, name: str, result: object) -> None:
        """Keep a result."""
        with write_atomic(self._folder / f"{name}.json") as file:
            file.write(json.dumps(result).encode())

    def run(
        self,
        step: str,
        work: Callable[[Task], Any],
        tasks: Sequence[Task],
        processes: int,
        progress: Progress,
        is_there: Callable[[Any], bool],
    ) -> Iterator[Any]:
        """The results of all tasks in their order of ending; those of an earlier run come first.

        `is_there` tells whether what a result speaks of still is.
        """
        left: list[Task] = []
        for task in tasks:
            result = self.load(f"{step}-{task.number:05d}")
            if result is None or not is_there(result):
                left.append(task)
            else:
                progress.advance()
                yield result
        for index, result in run_tasks(work, left, processes, progress.tick):
            self.save(f"{step}-{left[index].number:05d}", result)
            progress.advance()
            yield result
