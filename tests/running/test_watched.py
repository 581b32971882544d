"""Tasks whose processes hang, crash or fill the memory: what is lost, which item is to blame, and what still runs."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import pytest

from cdxmill.running import watched
from cdxmill.running.processes import bytes_done, count_bytes
from cdxmill.running.watched import (
    NO_LOSSES,
    Limits,
    Losses,
    Lost,
    Working,
    mark,
    memory_of,
    run_watched,
    unmark,
    unmarked,
)

from ..material.processes import is_alive, wait_for

Work = Callable[[int], object]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are looked at often."""
    monkeypatch.setattr(watched, "TICK", 0.01)


def none_lost(task: int, how: Lost) -> list[int]:
    raise AssertionError(f"{task}: {how}")


def unseen(working: Sequence[Working]) -> None:
    """No progress is shown."""


def losses_of(
    work: Work,
    tasks: Sequence[int] = (1,),
    limits: Limits = Limits(),  # noqa: B008 - it cannot be changed
    processes: int = 1,
) -> list[tuple[int, object]]:
    """The results of the tasks. That of one that was lost is how."""
    return list(run_watched(work, tasks, processes, unseen, limits, lambda _, how: how))


def own_process(task: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("processes", [0, 1, 3])
@pytest.mark.parametrize("count", [0, 1, 9])
def test_each_task_has_its_result(count: int, processes: int) -> None:
    found = list(run_watched(own_process, range(count), processes, unseen, Limits(), none_lost))
    assert sorted(task for task, _ in found) == list(range(count))
    if processes == 1:
        assert [task for task, _ in found] == list(range(count))
    assert len({process for _, process in found}) <= (processes or count)
    assert not any(is_alive(process) for _, process in found)


def test_the_bytes_that_all_processes_read_are_counted() -> None:
    assert len(losses_of(count_bytes, [3, 4, 5], processes=2)) == 3
    assert bytes_done() == 12


def test_an_error_of_a_task_is_raised_and_no_process_stays(tmp_path: Path) -> None:
    def failing(task: int) -> None:
        (tmp_path / str(os.getpid())).touch()
        if task == 2:
            raise KeyError(task)
        signal.pause()

    with pytest.raises(KeyError):
        losses_of(failing, [1, 2], processes=2)
    assert not any(is_alive(path.name) for path in tmp_path.iterdir())


ENDS: dict[str, Callable[[], None]] = {
    "the process ended (exit status 0)": lambda: os._exit(0),
    "the process ended (exit status 7)": lambda: os._exit(7),
    "the process was killed by SIGKILL (out of memory?)": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "the process was killed by SIGUSR1": lambda: os.kill(os.getpid(), signal.SIGUSR1),
    "the process was killed by 40": lambda: os.kill(os.getpid(), 40),
}


def test_a_process_that_ends_is_lost_with_its_item() -> None:
    def ending(task: int) -> None:
        mark(task + 30)
        if task >= len(ENDS):
            unmark()  # it waits for data
        [*ENDS.values()][task % len(ENDS)]()

    found = dict(losses_of(ending, range(len(ENDS) * 2), processes=3))
    for task, reason in enumerate([*ENDS] * 2):
        assert found[task] == Lost(task + 30 if task < len(ENDS) else None, reason)


def test_the_marks_of_a_task_are_not_those_of_the_next() -> None:
    def second_ends(task: int) -> int:
        if task == 2:
            os._exit(1)
        mark(5)
        return os.getpid()

    (_, process), (_, how), (_, other) = losses_of(second_ends, [1, 2, 3])
    assert how == Lost(None, "the process ended (exit status 1)")
    assert process != other


def test_tasks_that_follow_a_loss_come_next_and_a_result_is_taken() -> None:
    def ending(task: int) -> int:
        if task in (1, 7):
            os._exit(1)
        return -task

    def lost(task: int, how: Lost) -> list[int] | int:
        return [6, 7, 8] if task == 1 else 100

    found = list(run_watched(ending, [0, 1, 2], 1, unseen, Limits(), lost))
    assert found == [(0, 0), (6, -6), (7, 100), (8, -8), (2, -2)]


def test_processes_that_are_lost_in_the_same_moment_are_all_reported(tmp_path: Path) -> None:
    def ending(task: int) -> None:
        (tmp_path / str(os.getpid())).touch()
        wait_for(tmp_path / "go")
        os._exit(1)

    def tick(working: Sequence[Working]) -> None:
        processes = [path.name for path in tmp_path.iterdir()]
        if len(processes) == 2:
            (tmp_path / "go").touch()
            while not all(state_of(process) == "Z" for process in processes):
                time.sleep(0.001)

    reported: list[int] = []

    def lost(task: int, how: Lost) -> list[int]:
        reported.append(task)
        return []

    assert list(run_watched(ending, [1, 2], 2, tick, Limits(), lost)) == []
    assert sorted(reported) == [1, 2]


def state_of(process: str) -> str:
    """Z if it has ended and nobody has asked why."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def test_an_item_that_takes_too_long_is_lost_and_its_process_killed(tmp_path: Path) -> None:
    def hanging(task: int) -> None:
        (tmp_path / str(os.getpid())).touch()
        mark(task)
        signal.pause()

    found = dict(losses_of(hanging, [0, 5], Limits(0.0), 2))
    assert found == {task: Lost(task, "took longer than 0 s") for task in (0, 5)}
    processes = [path.name for path in tmp_path.iterdir()]
    assert len(processes) == 2
    assert not any(map(is_alive, processes))


def test_time_in_which_a_process_waits_for_data_does_not_count(tmp_path: Path) -> None:
    def read(offset: int, size: int) -> bytes:
        wait_for(tmp_path / f"{offset}-{size}")
        return b"data"

    def reading(task: int) -> bytes:
        mark(task, 3)
        return unmarked(read)(17, task)

    looks: list[Working] = []

    def tick(working: Sequence[Working]) -> None:
        looks.extend(working)
        if sum(one.item_seconds is None and one.items > 0 for one in looks) > 2:
            (tmp_path / "17-4").touch()

    begin = time.monotonic()
    limits = Limits(5.0)
    assert list(run_watched(reading, [4], 1, tick, limits, none_lost)) == [(4, b"data")]
    assert looks[0].task == 4
    assert (looks[-2].items, looks[-2].found) == (5, 3)
    assert all(0 <= one.seconds <= time.monotonic() - begin for one in looks)


def test_what_each_process_does_is_shown(tmp_path: Path) -> None:
    def working(task: int) -> int:
        mark(task, task + 1)
        wait_for(tmp_path / "seen")
        return task

    begin, looks = time.monotonic(), list[Working]()

    def tick(working: Sequence[Working]) -> None:
        looks[:] = working
        if len(working) == 2 and all(one.item_seconds is not None for one in working):
            assert {(one.task, one.items, one.found) for one in working} == {(7, 8, 8), (9, 10, 10)}
            for one in working:
                assert one.item_seconds is not None
                assert 0 <= one.item_seconds <= one.seconds <= time.monotonic() - begin
            (tmp_path / "seen").touch()

    found = run_watched(working, [7, 9], 2, tick, Limits(), none_lost)
    assert sorted(found) == [(7, 7), (9, 9)]


def test_an_item_that_ended_meanwhile_is_not_to_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process goes on after its marks were read, and before it is killed."""

    def two_items(task: int) -> None:
        for item, allowed in enumerate(("go", "judged")):
            wait_for(tmp_path / allowed)
            mark(item)
            (tmp_path / f"item {item}").touch()
        signal.pause()

    steps = iter((("go", "item 0"), ("judged", "item 1")))

    def asked_after_the_marks(process: int | None) -> int:
        for allowed, seen in islice(steps, 1):
            (tmp_path / allowed).touch()
            wait_for(tmp_path / seen)
        return 0

    monkeypatch.setattr(watched, "memory_of", asked_after_the_marks)
    assert losses_of(two_items, limits=Limits(0.0)) == [(1, Lost(None, "took longer than 0 s"))]


def used_by_process() -> int:
    """Bytes of memory of a process that has done nothing: fewer than its parent's."""
    ((_, used),) = losses_of(lambda _: memory_of(os.getpid()))
    assert isinstance(used, int)
    return used


def test_a_process_that_uses_too_much_memory_is_lost() -> None:
    limit = used_by_process() + (64 << 20)

    def filling(task: int) -> bytes:
        mark(3)
        data = b"x" * (512 << 20)  # the parent may have freed much since its memory was measured
        signal.pause()
        return data

    reason = f"the process used more than {limit >> 20} MiB of memory"
    assert losses_of(filling, limits=Limits(memory=limit)) == [(1, Lost(3, reason, by_memory=True))]


def test_a_process_that_has_used_much_memory_ends_after_its_task() -> None:
    used = used_by_process()
    for limit, number in ((used * 3 // 2, 3), (used * 8, 1)):
        found = losses_of(own_process, range(3), Limits(memory=limit))
        assert [task for task, _ in found] == [0, 1, 2]
        assert len({process for _, process in found}) == number


def test_the_memory_of_a_process_is_that_of_the_system() -> None:
    (line,) = (
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:")
    )
    assert abs(memory_of(os.getpid()) - int(line.split()[1]) * 1024) < 16 << 20
    assert memory_of(None) == memory_of(2**22 + 1) == 0


def test_a_task_is_given_up_after_ten_losses_or_three_of_memory() -> None:
    slow, full = Lost(3, "took longer"), Lost(3, "used more", by_memory=True)
    assert NO_LOSSES.after(slow) == Losses(1, {3: "took longer"})
    assert NO_LOSSES.after(slow._replace(item=None)) == Losses(1, {})
    assert NO_LOSSES.after(full) == Losses(4, {})  # perhaps other tasks filled the memory
    assert Losses(4, {1: "a"}).after(full) == Losses(8, {1: "a", 3: "used more"})
    assert Losses(9, {}).after(slow) == Losses(10, {3: "took longer"})
    assert Losses(10, {}).after(slow) is None
    assert Losses(1, {3: "a"}).hint() == "omit this archive, or find the cause"
    assert NO_LOSSES.hint() == "try fewer processes (-p)"
    assert pickle.loads(pickle.dumps(Losses(4, {1: "a"}))) == Losses(4, {1: "a"})
