"""The task of jobs that send a function to the nodes with what it is called for, as Spark does: `running.processes.RunTasks`.

A node needs the libraries that the index job needs. Both sides run as the user of the job, and only that user can write to
the directories in which calls and results are, so both may be pickles.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Iterator
from typing import Any

from cdxmill.jobs.nodes.archives import reporting
from cdxmill.jobs.nodes.task_context import TaskRun

_PROTOCOL = 4
"""Of pickle: that of the oldest Python of a node."""


def item_of(number: int, work: Callable[[Any], Any], task: Any) -> dict[str, Any]:
    """A call as one item of the job's work list."""
    return {"number": number, "call": _text_of((work, task))}


def do_calls(run: TaskRun) -> None:
    """Map: do the calls on the work list. Write a line for each: its number, a TAB, the result."""
    with reporting(run):
        for item in run.work():
            work, task = pickle.loads(base64.b64decode(item["call"]))
            run.output.write(b"%d\t%b\n" % (item["number"], _text_of(work(task)).encode()))


def parse_results(output: bytes) -> Iterator[tuple[int, Any]]:
    """The number and the result of each call, from the output of all tasks."""
    for line in output.splitlines():
        number, _, text = line.partition(b"\t")
        yield int(number), pickle.loads(base64.b64decode(text))


def _text_of(value: object) -> str:
    return base64.b64encode(pickle.dumps(value, protocol=_PROTOCOL)).decode()
