"""Tasks over processes: every result, every error, and no process that stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.errors import InputError, StoppedError
from cdxmill.running import processes as module
from cdxmill.running.processes import (
    RateLimit,
    Worker,
    bytes_done,
    count_bytes,
    count_in,
    counted,
    exit_on_signals,
    processes_by_default,
    run_tasks,
    signals_held,
    start_worker,
)

from ..material.clock import Clock
from ..material.processes import PATIENCE, is_alive, outliving, wait_for


def nothing() -> None:
    """No progress is shown."""


def doubled(number: int) -> int:
    count_bytes(number)
    return 2 * number


def results(
    work: Callable[[int], object], tasks: Sequence[int], processes: int
) -> Iterator[tuple[int, object]]:
    return run_tasks(work, tasks, processes, nothing)


@pytest.mark.parametrize("processes", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_every_task_has_its_result_and_every_byte_is_counted(count: int, processes: int) -> None:
    found = dict(results(doubled, range(count), processes))
    assert found == {number: 2 * number for number in range(count)}
    assert bytes_done() == sum(range(count))


def large(number: int) -> bytes:
    return bytes(number << 20)


def test_results_larger_than_a_pipe_come_through() -> None:
    assert {
        index: len(str(result)) > 1 << 20 for index, result in results(large, range(1, 5), 2)
    } == dict.fromkeys(range(4), True)


def failing(number: int) -> int:
    if number == 3:
        raise InputError("a.warc", "is no good", "fetch it again")
    return number


@pytest.mark.parametrize("processes", [1, 3])
def test_an_error_of_a_task_is_raised_as_it_was(processes: int) -> None:
    with pytest.raises(InputError) as error:
        list(results(failing, range(9), processes))
    assert str(error.value) == "a.warc: is no good; fetch it again"


def dividing(number: int) -> float:
    return 1 / number


def test_an_error_in_a_process_says_where_it_was_raised() -> None:
    with pytest.raises(ZeroDivisionError) as error:
        list(results(dividing, range(3), 2))
    (note,) = error.value.__notes__  # the traceback is that of this process
    assert "in dividing" in note


def dying(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_worker_that_is_killed_stops_the_run() -> None:
    with pytest.raises(StoppedError, match=r"task 4 of 9: a worker process was killed"):
        list(results(dying, range(9), 2))


def signalled(number: int) -> int:
    os.kill(os.getpid(), number)
    return number


def test_of_signals_a_worker_obeys_sigterm_only() -> None:
    """Its parent handles the others, and ends it. What the parent does at SIGTERM is not what a worker does."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        ignored = [signal.SIGINT, signal.SIGHUP]
        assert sorted(results(signalled, ignored, 2)) == list(enumerate(ignored))
        with pytest.raises(StoppedError, match=r"a worker process was killed"):
            list(results(signalled, [signal.SIGTERM] * 2, 2))
    finally:
        signal.signal(signal.SIGTERM, before)


def own_process(number: int) -> int:
    return os.getpid()


@pytest.mark.parametrize(("processes", "tasks"), [(1, 3), (0, 1), (7, 1), (2, 3), (7, 3), (0, 3)])
def test_as_many_processes_run_as_are_asked_for_and_none_for_one_task(
    processes: int, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots: list[int] = []

    def start(work: Callable[[int], object], slot: int, numbers: object) -> Worker:
        slots.append(slot)
        return start_worker(work, slot, numbers)

    monkeypatch.setattr(module, "processes_by_default", lambda: 5)
    monkeypatch.setattr(module, "start_worker", start)
    used = {process for _, process in results(own_process, range(tasks), processes)}
    if processes == 1 or tasks == 1:
        assert used == {os.getpid()}
        assert slots == []
    else:
        assert used
        assert os.getpid() not in used
        assert slots == list(range(min(processes or 5, tasks)))


def test_processes_that_wait_for_each_other_run_at_the_same_time() -> None:
    reader, writer = os.pipe()

    def meeting(number: int) -> bytes:
        return os.read(reader, 1) if number == 0 else b"%d" % os.write(writer, b"x")

    assert dict(results(meeting, range(2), 2)) == {0: b"x", 1: b"1"}
    os.close(reader)
    os.close(writer)


def test_results_come_in_the_order_in_which_tasks_end(tmp_path: Path) -> None:
    def work(number: int) -> int:
        if number == 0:
            wait_for(tmp_path / "go")
        return number

    found = results(work, range(3), 2)
    assert [next(found), next(found)] == [(1, 1), (2, 2)]
    (tmp_path / "go").touch()
    assert list(found) == [(0, 0)]


@pytest.mark.parametrize(("cores", "processes"), [(3, 3), (None, 1)])
def test_without_a_set_of_cores_there_is_a_process_for_each_core(
    cores: int | None, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = os.sched_getaffinity(0)
    assert processes_by_default() == len(allowed)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert processes_by_default() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert processes_by_default() == processes


def test_progress_is_shown_while_processes_work() -> None:
    seen: list[int] = []
    assert len(list(run_tasks(doubled, range(1, 4), 2, lambda: seen.append(bytes_done())))) == 3
    assert seen
    assert seen == sorted(seen)
    assert seen[-1] <= bytes_done() == 6


def blocked() -> set[int]:
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))


def test_signals_that_stop_a_run_are_held_back_and_come_later() -> None:
    def stop(number: int, frame: object) -> None:
        raise KeyError(number)

    before, stops = blocked(), {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    handler = signal.signal(signal.SIGTERM, stop)
    try:
        for _ in range(2):
            with pytest.raises(KeyError), signals_held():
                assert blocked() == before | stops
                signal.raise_signal(signal.SIGTERM)  # to this thread: xdist has others
                assert signal.SIGTERM in signal.sigpending()
            assert blocked() == before
    finally:
        signal.signal(signal.SIGTERM, handler)


def test_a_run_exits_on_signals_but_nohup_is_obeyed() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        for hangup in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGHUP, hangup)
            exit_on_signals()
            assert (signal.getsignal(signal.SIGHUP) == hangup) is (hangup == signal.SIG_IGN)
        for number in before:
            with pytest.raises(SystemExit) as status:
                signal.raise_signal(number)
            assert status.value.code == 128 + number
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_byte_that_is_read_again_is_counted_once() -> None:
    count_in([0])
    read_at = counted(lambda offset, size: bytes(min(size, 100 - offset)))
    for offset, size, done in ((10, 5, 5), (10, 5, 5), (12, 8, 10), (0, 5, 10), (90, 50, 90), (95, 5, 90)):
        assert len(read_at(offset, size)) == min(size, 100 - offset)
        assert bytes_done() == done


def test_turns_have_a_distance_if_there_is_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.monotonic, sleep=clock.sleep))
    begin = clock.now
    for _ in range(3):
        RateLimit(None).wait()
    assert clock.now == begin
    limit, turns = RateLimit(4), list[float]()
    for pause in (0, 0, 0.125, 10, 0):
        clock.now += pause
        limit.wait()
        turns.append(clock.now - begin)
    assert turns == [0, 0.25, 0.5, 10.5, 10.75]


def test_no_worker_stays_at_the_end() -> None:
    found = {process for _, process in results(own_process, range(20), 3)}
    assert found
    assert not any(is_alive(process) for process in found if isinstance(process, int))


def sending(number: int) -> tuple[int, bytes]:
    return os.getpid(), bytes(50 << 20) if number else b""


def test_a_worker_can_be_left_in_the_middle_of_sending() -> None:
    found = run_tasks(sending, range(2), 2, nothing)
    _, (process, _) = next(found)
    assert isinstance(found, Generator)
    found.close()
    assert not is_alive(process)


BUSY = """
import os, sys, time
from cdxmill.running.processes import run_tasks

def work(number):
    os.write(1, b"%d\\n" % os.getpid())  # one write, as two processes write
    if number:
        time.sleep(600)

found = run_tasks(work, range(3), 2, lambda: None)
next(found)
if sys.argv[1:]:
    sys.exit(7)
next(found)
"""


def test_busy_workers_end_when_their_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        workers = {int(parent.stdout.readline()) for _ in range(3)}
        parent.kill()
        parent.wait()
        assert outliving(workers) == []


def test_a_program_that_exits_between_two_results_does_not_wait_for_the_workers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUSY, "exit"], stdout=subprocess.DEVNULL, check=False, timeout=PATIENCE
    )
    assert done.returncode == 7


class Knot:
    """An object that refers to itself: only a search for garbage frees it."""

    alive = 0

    def __init__(self) -> None:
        self.itself = self
        Knot.alive += 1

    def __del__(self) -> None:
        Knot.alive -= 1


def knotting(number: int) -> int:
    Knot()
    return Knot.alive


def test_no_task_leaves_anything_to_the_next() -> None:
    assert dict(results(knotting, range(20), 2)) == dict.fromkeys(range(20), 1)


def test_a_task_in_this_process_shows_progress_even_if_it_counts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TICK", 0.0)
    outer, inner = list[int](), list[int]()

    def within(number: int) -> int:
        list(run_tasks(lambda one: one, [1], 1, lambda: inner.append(number)))
        count_bytes(1)
        return number

    assert list(run_tasks(lambda one: one, [7], 1, lambda: outer.append(0))) == [(0, 7)]
    assert outer == [0]
    count_bytes(1)
    assert outer == [0], "the task has ended"
    list(run_tasks(within, [5, 6], 1, lambda: outer.append(1)))
    assert (inner, outer) == ([5, 6], [0, 1, 1, 1, 1])


def signal_of_the_parents_end(number: int) -> int:
    """The signal that the system sends to this process when its parent ends."""
    import ctypes

    found = ctypes.c_int()
    ctypes.CDLL(None).prctl(2, ctypes.byref(found))
    return found.value


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of it")
def test_a_worker_ends_with_its_parent_and_what_hosts_are_shared_is_known_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared: list[int] = []
    monkeypatch.setattr(module, "share", lambda: shared.append(1))
    found = [signal for _, signal in results(signal_of_the_parents_end, range(2), 2)]
    assert found == [signal.SIGKILL, signal.SIGKILL]
    assert shared == [1, 1]


class Dead:
    """The connection to a process that was killed."""

    def send(self, task: object) -> None:
        raise BrokenPipeError

    def recv(self) -> object:
        raise ConnectionResetError


def test_a_process_that_was_killed_is_noticed_when_its_result_is_read() -> None:
    dead: Any = Dead()
    assert module._next(dead, iter([(3, "task")])) == 3
    assert module._next(dead, iter([])) == -1
    with pytest.raises(StoppedError, match=r"^task 4: a worker process was killed \(out of memory\?\)"):
        module._receive(dead, "task 4")
