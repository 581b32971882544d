"""Tasks in several processes: results as they come, a clean end, and a count of the bytes read.

No lock is shared and no thread runs, so a process can be killed at any moment and no other
process waits for it. multiprocessing and ctypes are imported only when processes are forked:
a command that needs none starts faster.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Protocol, TypeVar

from cdxmill.errors import StoppedError
from cdxmill.stages.window import ReadAt
from cdxmill.storage.hosts import share

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

Task = TypeVar("Task")
Result = TypeVar("Result")

TICK = 0.5
"""Seconds between two updates of the progress."""
_PR_SET_PDEATHSIG = 1
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RunTasks(Protocol):
    """An engine: runs tasks as `run_tasks` does, here or on other machines."""

    def __call__(
        self,
        work: Callable[[Task], Result],
        tasks: Sequence[Task],
        processes: int,
        tick: Callable[[], None],
        /,
    ) -> Iterator[tuple[int, Result]]:
        """Run the tasks."""


class _Counter:
    """Bytes read in a step: one slot per process, and only that process writes to it.

    Where tasks run in the process that shows the progress, `tick` does that, and `ticked` is when it last did.
    """

    read: ClassVar[Any] = [0]
    slot = 0
    tick: ClassVar[Callable[[], None] | None] = None
    ticked = 0.0


class Worker(NamedTuple):
    """A process that takes tasks from a connection and answers with their results."""

    process: ForkProcess
    connection: Connection[Any, Any]

    def end(self) -> None:
        """Kill the process, whatever it does."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def count_in(numbers: Any) -> None:
    """Begin a step: bytes are counted in `numbers`."""
    _Counter.read = numbers


def bytes_done() -> int:
    """Bytes that all processes have read so far in this step, as counted by `count_bytes`."""
    return sum(_Counter.read)


def count_bytes(size: int) -> None:
    """Count `size` more bytes of the inputs as read."""
    _Counter.read[_Counter.slot] += size
    _tick()


def _tick() -> None:
    if _Counter.tick is not None and time.monotonic() - _Counter.ticked >= TICK:
        _Counter.ticked = time.monotonic()
        _Counter.tick()


@contextmanager
def _ticking(tick: Callable[[], None]) -> Iterator[None]:
    """Show the progress while tasks run in this process: a single one may take long."""
    before, _Counter.tick = _Counter.tick, tick
    try:
        yield
    finally:
        _Counter.tick = before


def processes_by_default() -> int:
    """The number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def run_tasks(
    work: Callable[[Task], Result], tasks: Sequence[Task], processes: int, tick: Callable[[], None]
) -> Iterator[tuple[int, Result]]:
    """(index of the task, result) for every task, in the order in which they end. 0 processes: one per core.

    `tick` is called about twice a second, as long as bytes are counted. With one process nothing is forked. Errors of a
    task are raised here. Raises StoppedError if a worker dies.
    """
    _Counter.read = [0]
    keep_freed_memory()
    processes = processes or processes_by_default()
    if processes == 1 or len(tasks) <= 1:
        for index, task in enumerate(tasks):
            with _ticking(tick):
                result = work(task)
                _tick()
            yield index, result
        return
    count = min(processes, len(tasks))
    numbers = _Counter.read = shared_numbers(count)
    workers: list[Worker] = []
    try:
        for slot in range(count):
            with signals_held():
                workers.append(start_worker(work, slot, numbers))
        yield from _results(workers, tasks, tick)
    finally:
        for worker in workers:
            worker.end()


@cache
def keep_freed_memory() -> None:
    """Have the C library keep freed memory for later use, up to 32 MiB (twice the size of this block).

    By default it returns blocks of a megabyte to the system; getting them again takes up to a tenth of all time. Only
    the first call does something: the library learns it once, and each later block would be cleared, in 6 ms.
    """
    bytes(16 << 20)


def shared_numbers(count: int) -> Any:
    """Numbers that processes share, all 0 at first. The counter of bytes has one per process."""
    import ctypes
    from multiprocessing import RawArray

    return RawArray(ctypes.c_uint64, count)


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP exit by an exception, so that the engine ends its tasks and temporary files are removed."""
    signal.signal(signal.SIGTERM, _exit)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # nohup ignores it
        signal.signal(signal.SIGHUP, _exit)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold back the signals that stop a run: during a fork, what their handlers raise would be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_worker(work: Callable[[Task], Result], slot: int, numbers: Any) -> Worker:
    """Fork a process that runs `work`. It counts the bytes that it reads in slot `slot` of `numbers`."""
    from multiprocessing import get_context

    share()
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, slot, numbers, os.getpid()), daemon=True)
    process.start()
    theirs.close()  # so that the pipe ends when the process does
    return Worker(process, ours)


def _serve(
    connection: Connection[Any, Any], work: Callable[[Task], Result], slot: int, numbers: Any, parent: int
) -> None:
    """What a worker does: one task after another. Its parent handles Ctrl-C; it ends when the parent does."""
    import traceback  # slow to import

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the parent ends the workers, as after Ctrl-C
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    end_with_parent()
    _Counter.read, _Counter.slot, _Counter.tick = numbers, slot, None
    gc.freeze()  # what the parent made is not searched for garbage: that would copy its pages, too
    while True:
        while not connection.poll(TICK):
            if os.getppid() != parent:  # killed, on a system without prctl
                os._exit(1)
        task = connection.recv()
        answer: tuple[bool, Any]
        try:
            answer = True, work(task)
        except Exception as error:
            error.add_note(traceback.format_exc())  # the traceback itself cannot be sent
            answer = False, error
        connection.send(answer)
        del task, answer
        gc.collect()  # objects of this task that refer to each other, so that memory does not grow from task to task


def end_with_parent() -> None:
    """Have the system kill this process when its parent ends. Only Linux can do this."""
    import ctypes

    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _results(
    workers: Sequence[Worker], tasks: Sequence[Task], tick: Callable[[], None]
) -> Iterator[tuple[int, Any]]:
    from multiprocessing.connection import wait

    coming = iter(enumerate(tasks))
    connections = [worker.connection for worker in workers]
    busy = {connection: index for connection in connections if (index := _next(connection, coming)) >= 0}
    while busy:
        ready = wait(list(busy), TICK)
        tick()
        for connection in [connection for connection in busy if connection in ready]:
            index = busy.pop(connection)
            is_done, result = _receive(connection, f"task {index + 1} of {len(tasks)}")
            if (following := _next(connection, coming)) >= 0:
                busy[connection] = following
            if not is_done:
                raise result
            yield index, result


def _next(connection: Connection[Any, Any], coming: Iterator[tuple[int, Task]]) -> int:
    """Send the next task; its index, or -1 if none is left. A dead worker is noticed when its result is read."""
    index, task = next(coming, (-1, None))
    if index >= 0:
        with suppress(BrokenPipeError):
            connection.send(task)
    return index


def _receive(connection: Connection[Any, Any], what: str) -> Any:
    try:
        return connection.recv()
    except (EOFError, ConnectionResetError):
        reason = "a worker process was killed (out of memory?); try fewer processes (-p)"
        raise StoppedError(f"{what}: {reason}") from None


def counted(read_at: ReadAt) -> ReadAt:
    """`read_at`, but it counts each byte from the first read on once, however often it is read."""
    furthest: int | None = None

    def counting(offset: int, size: int) -> bytes:
        nonlocal furthest
        data = read_at(offset, size)
        if furthest is None:
            furthest = offset
        if offset + len(data) > furthest:
            count_bytes(offset + len(data) - furthest)
            furthest = offset + len(data)
        return data

    return counting


class RateLimit:
    """Turns that are at least 1/`rate` seconds apart; without a rate, at once. Make it before processes are forked."""

    def __init__(self, rate: float | None) -> None:
        from multiprocessing import get_context

        self._gap = 0.0 if rate is None else 1 / rate
        self._next = get_context("fork").Value("d", 0.0) if rate is not None else None

    def wait(self) -> None:
        """Wait for the next turn."""
        if self._next is None:
            return
        with self._next.get_lock():  # the clock is that of the machine, the same for all processes
            now = time.monotonic()
            turn = max(now, self._next.value)
            self._next.value = turn + self._gap
        time.sleep(turn - now)
