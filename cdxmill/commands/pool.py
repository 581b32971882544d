"""Tasks over processes: results as they come, clean ends, and how many bytes were read so far.

multiprocessing is imported when processes are forked: a command that needs none starts faster.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from cdxmill.errors import StoppedError

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.sharedctypes import Synchronized

Task = TypeVar("Task")
Result = TypeVar("Result")

TICK = 0.5
"""Seconds between two looks at the progress."""
_PR_SET_PDEATHSIG = 1
_STOPS = (signal.SIGINT, signal.SIGTERM)


class _Counter:
    """Bytes read in a step: a plain number, or one that forked workers share."""

    def __init__(self) -> None:
        self.own = 0
        self.shared: Synchronized[int] | None = None


_counter = _Counter()


def bytes_done() -> int:
    """Bytes that all processes have read so far in this step, as they told by `count_bytes`."""
    return _counter.own + (_counter.shared.value if _counter.shared is not None else 0)


def count_bytes(size: int) -> None:
    """Tell that `size` more bytes of the inputs are read."""
    if _counter.shared is None:
        _counter.own += size
        return
    with _counter.shared.get_lock():
        _counter.shared.value += size


def processes_by_default() -> int:
    """As many as this process may use cores."""
    return len(os.sched_getaffinity(0))


def run_tasks(
    work: Callable[[Task], Result], tasks: Sequence[Task], processes: int, tick: Callable[[], None]
) -> Iterator[tuple[int, Result]]:
    """(index of the task, result) for every task, in the order in which they end.

    `tick` is called about twice a second. With one process nothing is forked. Errors of a
    task are raised here; a worker that dies is a StoppedError.
    """
    _counter.own, _counter.shared = 0, None
    if processes == 1 or len(tasks) <= 1:
        for index, task in enumerate(tasks):
            yield index, work(task)
            tick()
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("fork")
    _counter.shared = context.Value(ctypes.c_uint64)
    with ProcessPoolExecutor(min(processes, len(tasks)), context, _start_worker) as pool:
        try:
            yield from _results(pool, work, tasks, tick)
        except BaseException:
            for child in multiprocessing.active_children():
                child.terminate()
            pool.shutdown(cancel_futures=True)  # not to wait for its thread lets that fail at exit, loudly
            raise


def _results(
    pool: ProcessPoolExecutor,
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    tick: Callable[[], None],
) -> Iterator[tuple[int, Result]]:
    from concurrent.futures import FIRST_COMPLETED, wait
    from concurrent.futures.process import BrokenProcessPool

    waiting: dict[Future[Result], int] = {}
    coming = iter(enumerate(tasks))
    ahead = 2 * processes_by_default() + 2
    while True:
        while len(waiting) < ahead and (following := next(coming, None)) is not None:
            with _signals_held():
                waiting[pool.submit(work, following[1])] = following[0]
        if not waiting:
            return
        finished, _ = wait(waiting, TICK, FIRST_COMPLETED)
        tick()
        for future in finished:
            index = waiting.pop(future)
            try:
                yield index, future.result()
            except BrokenProcessPool:
                reason = "a worker process was killed (out of memory?); try fewer processes (-p)"
                raise StoppedError(f"task {index + 1} of {len(tasks)}: {reason}") from None


@contextmanager
def _signals_held() -> Iterator[None]:
    """Signals to stop wait: while processes are forked, what they raise would be lost in a hook."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker() -> None:
    """A worker leaves Ctrl-C to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
