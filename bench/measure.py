"""Run a command and measure it: CPU with all children, wall time, peak memory of the whole process tree."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

POLL_SECONDS = 0.02
SLOWEST_POLL = 0.2
POLLS = 100
"""Approximate number of polls per command. Each poll takes CPU time that the command could use."""
PAGE = os.sysconf("SC_PAGE_SIZE")


class Cost(NamedTuple):
    """`cpu` and `wall` in seconds, `memory` in bytes. `failure` is empty on success."""

    cpu: float
    wall: float
    memory: int
    failure: str = ""


def children_of(pid: int) -> list[int]:
    try:
        lists = [(task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # the process has ended
        return []
    return [int(child) for text in lists for child in text.split()]


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def tree_resident(pid: int) -> int:
    """Resident bytes of a process and its descendants. Shared memory counts once for each of them."""
    return resident(pid) + sum(map(tree_resident, children_of(pid)))


class PeakWatch(threading.Thread):
    """Polls the process tree every 20 ms at first, later every 200 ms. It may miss a short peak."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak, self.done = pid, 0, threading.Event()

    def run(self) -> None:
        start = time.monotonic()
        while not self.done.wait(min(SLOWEST_POLL, max(POLL_SECONDS, (time.monotonic() - start) / POLLS))):
            self.peak = max(self.peak, tree_resident(self.pid))


def last_line(path: Path) -> str:
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:120] if lines else "no message"


def measure(command: list[str], log: Path, cpus: set[int], env: Mapping[str, str]) -> Cost:
    """Run `command` on the processors `cpus`, with its stderr in `log`.

    CPU time is that of wait4: it includes all descendants that were waited for.
    """
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            env=dict(env),
            preexec_fn=partial(os.sched_setaffinity, 0, cpus),
        )
        watch = PeakWatch(process.pid)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
    watch.done.set()
    watch.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    failure = f"failed, exit {process.returncode}: {last_line(log)}" if process.returncode else ""
    return Cost(usage.ru_utime + usage.ru_stime, wall, max(watch.peak, usage.ru_maxrss * 1024), failure)
