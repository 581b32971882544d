"""Tasks whose processes may hang, crash or fill the memory: such a process is killed, and its task continues in a new one.

A task says with `mark` what it works on. So the caller learns which item cost a process, and can skip it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from cdxmill.running.processes import (
    TICK,
    Worker,
    count_in,
    keep_freed_memory,
    processes_by_default,
    shared_numbers,
    signals_held,
    start_worker,
)

Task = TypeVar("Task")
Result = TypeVar("Result")

_NOTHING = 0
_NUMBERS = 3
"""Numbers per process: the item, since when, and how many were found."""


class Lost(NamedTuple):
    """A process that was lost: the item that it worked on (None: none), and why. `by_memory`: it used too much."""

    item: int | None
    reason: str
    by_memory: bool = False


class Limits(NamedTuple):
    """Seconds for one item, and bytes of memory of a process."""

    seconds: float
    memory: int


class Working(NamedTuple):
    """What a process does: its task, the items that it has begun and found, seconds since it began the task and the item.

    The seconds of the item are None while it waits for data.
    """

    task: int
    items: int
    found: int
    seconds: float
    item_seconds: float | None


class _Marks:
    """What each process works on, since when, and what it found: numbers of a process that only that process writes."""

    numbers: ClassVar[Any] = [0] * _NUMBERS
    slot = 0


def mark(item: int, found: int = 0) -> None:
    """Say that this process now works on `item`, a number, and has found `found` items of this task so far."""
    numbers, slot = _Marks.numbers, _Marks.slot
    numbers[slot] = item + 1
    numbers[slot + 1] = time.monotonic_ns()
    numbers[slot + 2] = found


def unmark() -> None:
    """Say that this process waits for data, which has time limits of its own."""
    _Marks.numbers[_Marks.slot + 1] = _NOTHING


def run_watched(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    processes: int,
    tick: Callable[[Sequence[Working]], None],
    limits: Limits,
    lost: Callable[[int, Lost], Task | Result],
) -> Iterator[tuple[int, Result]]:
    """(index of the task, result) for every task, in the order in which they end.

    `tick` is called about twice a second with what each process does. If a process is lost, `lost(index, how)` returns
    the task to run again, or the result to take in its place: a tuple of another type than the task's. Also with one
    process, a process is forked. Errors of a task are raised here.
    """
    if not tasks:
        return
    count = min(processes or processes_by_default(), len(tasks))
    keep_freed_memory()
    pool = _Pool(work, count, limits)
    waiting = list(enumerate(tasks))[::-1]
    try:
        while waiting or pool.busy:
            while waiting and pool.idle:
                pool.give(*waiting.pop())
            results = pool.wait()
            tick(pool.working())
            for index, result in results:
                if isinstance(result, Lost):
                    answer = lost(index, result)
                    if isinstance(answer, type(tasks[0])):
                        waiting.append((index, answer))
                        continue
                    result = answer
                yield index, result
    finally:
        pool.close()


class _Pool:
    """The processes, each with a slot of the shared numbers, and the tasks that they run."""

    def __init__(self, work: Callable[[Any], Any], count: int, limits: Limits) -> None:
        self._work, self._limits = work, limits
        self._read, self._numbers = shared_numbers(count), shared_numbers(_NUMBERS * count)
        count_in(self._read)
        self._workers: dict[int, Worker] = {}
        self.idle = list(range(count))[::-1]
        self.busy: dict[int, int] = {}
        self._since: dict[int, float] = {}

    def give(self, index: int, task: object) -> None:
        slot = self.idle.pop()
        start = _NUMBERS * slot
        # the process waits, so nobody else writes
        self._numbers[start : start + _NUMBERS] = [_NOTHING] * _NUMBERS
        if slot not in self._workers:
            _Marks.numbers, _Marks.slot = self._numbers, start  # inherited by the process
            with signals_held():
                self._workers[slot] = start_worker(self._work, slot, self._read)
        self.busy[slot], self._since[slot] = index, time.monotonic()
        with suppress(BrokenPipeError):  # it is noticed when its result is read
            self._workers[slot].connection.send(task)

    def working(self) -> list[Working]:
        """What each process does that has a task."""
        now = time.monotonic()
        found = []
        for slot, index in self.busy.items():
            items, since, finds = self._marks_of(slot)
            of_item = max(now - since / 1e9, 0.0) if since else None
            found.append(Working(index, items, finds, now - self._since[slot], of_item))
        return found

    def _marks_of(self, slot: int) -> tuple[int, int, int]:
        items, since, found = self._numbers[_NUMBERS * slot : _NUMBERS * (slot + 1)]
        return items, since, found

    def wait(self) -> list[tuple[int, Any]]:
        """Wait for results up to a tick. Raises the errors of tasks."""
        from multiprocessing.connection import wait

        found: list[tuple[int, Any]] = []
        slots = {self._workers[slot].connection: slot for slot in self.busy}
        ready = set(wait(list(slots), TICK))
        for connection, slot in slots.items():
            result = self._receive(slot) if connection in ready else self._judge(slot)
            if result is not None:
                found.append((self.busy.pop(slot), result[0]))
                self.idle.append(slot)
        return found

    def _receive(self, slot: int) -> tuple[Any]:
        worker = self._workers[slot]
        try:
            is_done, result = worker.connection.recv()
        except (EOFError, OSError):
            return (self._drop(slot, ""),)
        if not is_done:
            raise result
        if memory_of(worker.process.pid) > self._limits.memory // 2:  # a leak must not grow from task to task
            self._drop(slot, "")
        return (result,)

    def _judge(self, slot: int) -> tuple[Lost] | None:
        """Whether a process that works has to be killed."""
        number, since, _ = self._marks_of(slot)
        if memory_of(self._workers[slot].process.pid) > self._limits.memory:
            reason = f"the process used more than {self._limits.memory >> 20} MiB of memory"
            return (self._drop(slot, reason)._replace(by_memory=True),)
        if since and time.monotonic_ns() - since > self._limits.seconds * 1e9:
            how = self._drop(slot, f"took longer than {self._limits.seconds:g} s")
            return (how if how.item == number - 1 else how._replace(item=None),)
        return None

    def _drop(self, slot: int, reason: str) -> Lost:
        """Kill a process. Its number says what it worked on."""
        worker = self._workers.pop(slot)
        if not reason:
            worker.connection.close()
            worker.process.join(1)
        worker.end()
        number, since, _ = self._marks_of(slot)
        item = number - 1 if number and since else None
        return Lost(item, reason or _reason(worker.process.exitcode))

    def close(self) -> None:
        for worker in self._workers.values():
            worker.end()


def _reason(status: int | None) -> str:
    if status is None or status >= 0:
        return f"the process ended (exit status {status})"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"the process was killed by {name}{hint}"


def memory_of(process: int | None) -> int:
    """Bytes of memory that a process uses; 0 where the system does not say (other than Linux)."""
    try:
        return int(Path(f"/proc/{process}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
