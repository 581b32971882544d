"""Tasks that end their process when they run for the first time.

Workers of Spark import this module as `spark_steps`: for them, `tests` is a package of another library.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.spark.tasks import Part, ShardWork, SortReport, SortWork, join_parts, sort_and_send


class Deadly(NamedTuple):
    """A task, and the folder with a file for each that has died."""

    work: SortWork
    died: str


def die_once(directory: str, name: str) -> None:
    marker = Path(directory) / name
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def sort_and_die(task: Deadly) -> Iterator[tuple[int, Part]]:
    """Send all parts, and die before the report."""
    for number, part in sort_and_send(task.work):
        if number == len(task.work.points) + 1:
            die_once(task.died, f"sort-{task.work.number}")
        yield number, part


def write_and_die(
    shared: tuple[ShardWork, str], number: int, parts: Iterator[Part]
) -> ShardEntry | list[SortReport] | None:
    """Write a shard, and die before the result is sent."""
    result = join_parts(shared[0], number, parts)
    if number == 1:
        die_once(shared[1], "shard-1")
    return result


def double(number: int) -> int:
    return 2 * number


def fail(number: int) -> int:
    raise ValueError(f"no {number}")


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def wait_for_file(path: str) -> str:
    """Wait until a file is there."""
    end = time.monotonic() + 120
    while not Path(path).exists():
        assert time.monotonic() < end, f"{path}: not there"
        time.sleep(0.05)
    return path


def say_and_wait(directory: str) -> str:
    """Say that the task has started, and wait until it may end."""
    (Path(directory) / "started").touch()
    return wait_for_file(f"{directory}/end")


for thing in (Deadly, sort_and_die, write_and_die, double, fail, die, wait_for_file, say_and_wait):
    thing.__module__ = "spark_steps"
sys.modules["spark_steps"] = sys.modules[__name__]
