"""Changes of a cluster in a process of its own, which is killed at a random moment; then the change is made again.

CDXMILL_CHANGES sets the number of changes, CDXMILL_SEED the moments.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import time
from collections import Counter
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random
from typing import NamedTuple

from cdxmill.commands.collections import remove as removing
from cdxmill.commands.collections.add import add
from cdxmill.commands.collections.compact import compact
from cdxmill.options.collections import Adding, Compacting, Removing
from cdxmill.running.failures import Failures

CHANGES = int(os.environ.get("CDXMILL_CHANGES") or 6)
SEED = os.environ.get("CDXMILL_SEED") or "1"
KEPT = 3600
"""Seconds for which old shards stay: readers are slow on a busy machine. `remove` waits no time for them here."""
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([add.__module__, compact.__module__, removing.__name__])


class Changed(NamedTuple):
    """The cluster that is changed, the file of lines that are added, and the time range in which they are removed."""

    cluster: Path
    new: Path
    times: dict[str, str]


def change(asked: Changed, number: int) -> None:
    """Add the lines, make full blocks, or remove the lines."""
    removing._wait = lambda *_: None
    removing.delete_kept = lambda *_: []  # type: ignore[attr-defined]
    failures = Failures()
    if number % 3 == 0:
        add(Adding(asked.cluster, [asked.new], cdx=True, keep_old=KEPT, processes=1), failures)
    elif number % 3 == 1:
        compact(Compacting(asked.cluster, keep_old=KEPT, processes=1), failures)
    else:
        removing.remove(Removing(asked.cluster, **asked.times, keep_old=KEPT, processes=1), failures)  # type: ignore[arg-type]


class Killing:
    """Kills changes at moments between their start and the time that the last whole one has taken."""

    def __init__(self, asked: Changed) -> None:
        self._asked, self._random, self._seconds, self.killed = asked, Random(SEED), 1.0, 0

    def change(self, number: int) -> None:
        """Make a change that is killed, and make it again. Raises AssertionError if that fails."""
        process = self._start(number)
        process.join(self._random.uniform(0, self._seconds))
        process.kill()
        process.join()
        self.killed += process.exitcode != 0
        start = time.monotonic()
        process = self._start(number)
        process.join()
        self._seconds = time.monotonic() - start
        assert process.exitcode == 0

    def check(self, seen: Counter[str]) -> None:
        """Raise AssertionError unless changes were made and killed, and each answer was `old` or `new`, and there were both."""
        print(f"{self.killed} of {CHANGES} changes killed, answers {dict(seen)}")
        assert set(seen) == {"old", "new"}
        done = (self._asked.cluster / "changes.jsonl").read_text()
        assert self.killed and all(f'"command": "{name}"' in done for name in ("add", "compact", "remove"))

    def _start(self, number: int) -> ForkServerProcess:
        # by its path: in a new process, another package has the name of the tests
        words = {"CHANGE": (*self._asked, number)}
        process = _CONTEXT.Process(target=runpy.run_path, args=(__file__, words, "__main__"))
        process.start()
        return process


if __name__ == "__main__":
    *given, which = globals()["CHANGE"]
    change(Changed(*given), which)
