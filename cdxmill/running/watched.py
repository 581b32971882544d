"""Tasks whose processes may hang, crash or fill the memory: such a process is killed, and its task continues in a new one.

A task says with `mark` what it works on. So the caller learns which item cost a process, and can skip it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
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
from cdxmill.stages.window import ReadAt

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

    seconds: float = 60.0
    memory: int = 2 << 30


_MOST_LOST = 10
"""Processes that one task may cost. One that used too much memory counts several times: a leak does not end."""
_BY_MEMORY = 4


class Losses(NamedTuple):
    """The processes that a task has cost: their number, and the items that are to blame, with the reasons."""

    number: int = 0
    skip: Mapping[int, str] = MappingProxyType({})

    def after(self, how: Lost) -> Losses | None:
        """With one more; None if the task has to be given up."""
        if self.number >= _MOST_LOST:
            return None
        item = (
            None if how.by_memory and not self.number else how.item
        )  # perhaps other tasks filled the memory
        more = {} if item is None else {item: how.reason}
        return Losses(self.number + (_BY_MEMORY if how.by_memory else 1), {**self.skip, **more})

    def hint(self) -> str:
        """What the user can do about a task that was given up."""
        return "omit this archive, or find the cause" if self.skip else "try fewer processes (-p)"

    def __reduce__(self) -> tuple[type[Losses], tuple[int, dict[int, str]]]:
        return type(self), (self.number, dict(self.skip))


NO_LOSSES = Losses()


class Working(NamedTuple):
    """What a process does: its task, the items that it has begun and found, seconds since it began the task and the item.

    The seconds of the item are None while it waits for data.
    """

    task: Any
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


def unmarked(read_at: ReadAt) -> ReadAt:
    """`read_at`, whose time does not count as that of an item: storage has its own time limits."""

    def read(offset: int, size: int) -> bytes:
        unmark()
        return read_at(offset, size)

    return read


def run_watched(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    processes: int,
    tick: Callable[[Sequence[Working]], None],
    limits: Limits,
    lost: Callable[[Task, Lost], list[Task] | Result],
) -> Iterator[tuple[Task, Result]]:
    """(task, result) for every task, in the order in which they end.

    `tick` is called about twice a second with what each process does. If a process is lost, `lost(task, how)` returns
    the list of tasks to run in place of its task, or the result to take. Also with one process, a process is forked.
    Errors of a task are raised here.
    """
    count = min(processes or processes_by_default(), len(tasks))
    keep_freed_memory()
    pool = _Pool(work, count, limits)
    waiting = list(tasks)[::-1]
    try:
        while waiting or pool.busy:
            while waiting and pool.idle:
                pool.give(waiting.pop())
            results = pool.wait()
            tick(pool.working())
            for task, result in results:
                if isinstance(result, Lost):
                    answer = lost(task, result)
                    if isinstance(answer, list):
                        waiting += answer[::-1]
                        continue
                    result = answer
                yield task, result
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
        self.busy: dict[int, Any] = {}
        self._since: dict[int, float] = {}

    def give(self, task: object) -> None:
        slot = self.idle.pop()
        start = _NUMBERS * slot
        # the process waits, so nobody else writes
        self._numbers[start : start + _NUMBERS] = [_NOTHING] * _NUMBERS
        if slot not in self._workers:
            _Marks.numbers, _Marks.slot = self._numbers, start  # inherited by the process
            with signals_held():
                self._workers[slot] = start_worker(self._work, slot, self._read)
        self.busy[slot], self._since[slot] = task, time.monotonic()
        with suppress(BrokenPipeError):  # it is noticed when its result is read
            self._workers[slot].connection.send(task)

    def working(self) -> list[Working]:
        """What each process does that has a task."""
        now = time.monotonic()
        found = []
        for slot, task in self.busy.items():
            items, since, finds = self._marks_of(slot)
            of_item = max(now - since / 1e9, 0.0) if since else None
            found.append(Working(task, items, finds, now - self._since[slot], of_item))
        return found

    def _marks_of(self, slot: int) -> tuple[int, int, int]:
        items, since, found = self._numbers[_NUMBERS * slot : _NUMBERS * (slot + 1)]
        return items, since, found

    def wait(self) -> list[tuple[Any, Any]]:
        """Wait for results up to a tick. Raises the errors of tasks."""
        from multiprocessing.connection import wait

        found: list[tuple[Any, Any]] = []
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
            self._workers.pop(slot).end()
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
        """Kill a process. Its number says what it worked on. The exit status of one that ends already stays as it is."""
        worker = self._workers.pop(slot)
        worker.end()
        number, since, _ = self._marks_of(slot)
        item = number - 1 if since else None
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
