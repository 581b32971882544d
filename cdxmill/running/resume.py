"""The work directory: what a killed run leaves behind, and where the same run, started again, continues."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cdxmill.errors import InputError
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.storage import local
from cdxmill.storage.local import OWN_TEMPORARY
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.own import foreign
from cdxmill.storage.scratch import Scratch

WORK = ".work"
"""The name of the work directory of a run, in the directory of its output."""
_JOB = "job.json"
_MARKS = frozenset({_JOB, "shards.json"})
"""Files of which a work directory has one, unless it is empty."""


def is_own_work(work: Location, marks: frozenset[str] = _MARKS) -> bool:
    """Whether a work directory is cdxmill's own: one of somebody else is never used or deleted. Raises InputError.

    One that is not empty has one of the `marks`.
    """
    if work.is_remote:
        return True
    path = Path(work.local)
    names = {name for name in work.entries() if not OWN_TEMPORARY.fullmatch(name)}
    return path.is_dir() and not path.is_symlink() and (not names or bool(names & marks))


def check_work(work: Location, marks: frozenset[str] = _MARKS) -> None:
    """Raise UsageError if somebody else's file or directory has the name of a work directory."""
    if not is_own_work(work, marks) and os.path.lexists(work.local):
        raise foreign(Path(work.local))


def remove_work(work: Location) -> None:
    """Delete a work directory, if it is cdxmill's own: what shows that goes last. Raises StoppedError."""
    if work.is_remote:
        work.remove_tree()
    elif is_own_work(work):
        for name in sorted(os.listdir(work.local), key=lambda name: (name in _MARKS, name)):  # noqa: PTH208
            (work / name).remove_tree()
        work.remove()


class Numbered(Protocol):
    """A task whose result is kept under its number: the next run may have the tasks in another order."""

    @property
    def number(self) -> int:
        """The task's number, unique in its step."""


Task = TypeVar("Task", bound=Numbered)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def fingerprint(*parts: object) -> str:
    """A hash of the `repr` of all parts."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _boot() -> str:
    """What differs after each start of the machine; "" if the system does not tell."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


class WorkDirectory:
    """Results of tasks, by name, as JSON.

    If another job has left it, it is emptied first. `clear` is called before that: it deletes the job's outputs.
    The files of a local one need not survive a power cut: after a restart of the machine it counts as another job's.
    """

    def __init__(self, directory: PathOrUrl, job: str, clear: Callable[[], object] = lambda: None) -> None:
        self._place = locate(directory)
        check_work(self._place)
        job = job if self._place.is_remote else f"{job} {_boot()}"
        if self.load("job") != job:
            clear()
            self.remove()
            self.save("job", job)

    @property
    def scratch(self) -> Scratch:
        """Its files; not of a URL."""
        return Scratch(Path(self._place.local))

    def remove(self) -> None:
        """Delete it. A run that is killed meanwhile leaves nothing to continue with. Raises StoppedError."""
        if not self._place.is_remote and self.load("job") is not None:
            self.save("job", None)
        remove_work(self._place)

    def load(self, name: str) -> Any:
        """The saved result of that name, or None."""
        import json

        try:
            return json.loads((self._place / f"{name}.json").read_bytes())
        except (InputError, ValueError, RecursionError):
            return None

    def save(self, name: str, result: object) -> None:
        """Save a result."""
        import json

        file = self._place / f"{name}.json"
        opened = file.write_atomic() if file.is_remote else local.write_atomic(file.local, sync_file=False)
        with opened as content:
            content.write(json.dumps(result).encode())

    def run(
        self,
        step: str,
        work: Callable[[Task], Any],
        tasks: Sequence[Task],
        processes: int,
        progress: Progress,
        is_valid: Callable[[Any], bool],
    ) -> Iterator[Any]:
        """The results of all tasks, as JSON holds them, in the order in which they end.

        Those of an earlier run come first, unless `is_valid` finds that their files are missing. A result for
        which it raises has another form, for example that of another version: the task is run again.
        """
        left: list[Task] = []
        for task in tasks:
            result = self.load(f"{step}-{task.number:05d}")
            if result is None or not _is_finished(result, is_valid):
                left.append(task)
            else:
                progress.advance()
                yield result
        for index, result in run_tasks(work, left, processes, progress.tick):
            self.save(f"{step}-{left[index].number:05d}", result)
            progress.advance()
            yield result


def _is_finished(result: Any, is_valid: Callable[[Any], bool]) -> bool:
    try:
        return is_valid(result)
    except (TypeError, KeyError, ValueError, AttributeError):
        return False
