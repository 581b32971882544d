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
from typing import Any, NamedTuple, TypeVar

from cdxmill.running.processes import (
    TICK,
    Worker,
    count_in,
    keep_freed_memory,
    shared_numbers,
    signals_held,
    start_worker,
)

Task = TypeVar("Task")
Result = TypeVar("Result")

_NOTHING = 0


class Lost(NamedTuple):
    """A process that was lost: the item that it worked on (None: none), and why. `by_memory`: it used too much."""

    item: int | None
    reason: str
    by_memory: bool = False


class Limits(NamedTuple):
    """Seconds for one item, and bytes of memory of a process."""

    seconds: float
    memory: int


class _Marks:
    """What each process works on, and since when: two numbers per process, and only that process writes them."""

    def __init__(self) -> None:
        self.numbers: Any = [0, 0]
        self.slot = 0


_marks = _Marks()


def mark(item: int) -> None:
    """Say that this process now works on `item`, a number."""
    numbers, slot = _marks.numbers, _marks.slot
    numbers[slot] = item + 1
    numbers[slot + 1] = time.monotonic_ns()


def unmark() -> None:
    """Say that this process waits for data, which has time limits of its own."""
    _marks.numbers[_marks.slot + 1] = _NOTHING


def run_watched(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    processes: int,
    tick: Callable[[], None],
    limits: Limits,
    lost: Callable[[int, Lost], Task | Result],
) -> Iterator[tuple[int, Result]]:
    """(index of the task, result) for every task, in the order in which they end.

    If a process is lost, `lost(index, how)` returns the task to run again, or the result to take in its place: a
    tuple of another type than the task's. Also with one process, a process is forked. Errors of a task are raised here.
    """
    count = max(1, min(processes, len(tasks)))
    keep_freed_memory()
    pool = _Pool(work, count, limits)
    waiting = list(enumerate(tasks))[::-1]
    kind = type(tasks[0]) if tasks else None
    try:
        while waiting or pool.busy:
            while waiting and pool.idle:
                pool.give(*waiting.pop())
            tick_results = pool.wait()
            tick()
            for index, result in tick_results:
                if isinstance(result, Lost):
                    answer = lost(index, result)
                    if isinstance(answer, kind) if kind else False:
                        waiting.append((index, answer))  # type: ignore[arg-type]
                        continue
                    result = answer
                yield index, result
    finally:
        pool.close()


class _Pool:
    """The processes, each with a slot of the shared numbers, and the tasks that they run."""

    def __init__(self, work: Callable[[Any], Any], count: int, limits: Limits) -> None:
        self._work, self._limits = work, limits
        self._read, self._numbers = shared_numbers(count), shared_numbers(2 * count)
        count_in(self._read)
        self._workers: dict[int, Worker] = {}
        self.idle = list(range(count))[::-1]
        self.busy: dict[int, int] = {}

    def give(self, index: int, task: object) -> None:
        slot = self.idle.pop()
        if slot not in self._workers:
            self._numbers[2 * slot] = self._numbers[2 * slot + 1] = _NOTHING
            _marks.numbers, _marks.slot = self._numbers, 2 * slot  # inherited by the process
            with signals_held():
                self._workers[slot] = start_worker(self._work, slot, self._read)
        self.busy[slot] = index
        with suppress(BrokenPipeError):  # it is noticed when its result is read
            self._workers[slot].connection.send(task)

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
        number, since = self._numbers[2 * slot : 2 * slot + 2]
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
        if reason:
            worker.process.kill()
        else:
            worker.connection.close()
            worker.process.join(1)
            worker.process.kill()
        worker.process.join()
        worker.connection.close()
        number, since = self._numbers[2 * slot : 2 * slot + 2]
        item = number - 1 if number and since else None
        return Lost(item, reason or _reason(worker.process.exitcode))

    def close(self) -> None:
        for worker in self._workers.values():
            worker.process.kill()
            worker.process.join()
            worker.connection.close()


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
