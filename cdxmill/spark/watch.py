"""Progress of a job of Spark: its finished tasks, counted by Spark itself, while the driver waits for the results."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cdxmill.messages import count
from cdxmill.running.progress import Progress

POLL = 0.5
"""Seconds between two questions to Spark."""


@contextmanager
def watched(context: Any, title: str, tasks: int, quiet: bool, may_draw: bool) -> Iterator[None]:
    """Show how many of `tasks` are done while the block waits for a job of the `context` of Spark.

    With `may_draw`, there is a bar on a terminal; without, the caller has one, and only a log gets lines.
    """
    is_hidden = quiet or (not may_draw and sys.stderr is not None and sys.stderr.isatty())
    if is_hidden:
        yield
        return
    over = threading.Event()
    with Progress(title, tasks) as progress:
        thread = threading.Thread(target=_follow, args=(context, progress, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _follow(context: Any, progress: Progress, over: threading.Event) -> None:
    while not over.wait(POLL):
        try:
            progress.done, failed = _counts(context.statusTracker())
        except Exception:  # Spark is being stopped: the driver says why
            return
        progress.more = f"{count(failed, 'failed task')} repeated" if failed else ""
        progress.tick()


def _counts(tracker: Any) -> tuple[int, int]:
    """How many tasks of the job that runs now are done, and how many have failed."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    found = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in found), sum(stage.numFailedTasks for stage in found)
