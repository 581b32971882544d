"""Tasks over processes: every result, every error, and no process that stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence

import pytest

from cdxmill.errors import InputError, StoppedError
from cdxmill.running.processes import bytes_done, count_bytes, run_tasks


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


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


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
