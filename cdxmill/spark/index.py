"""Run the tasks of `index` on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdxmill.commands.per_archive.index_one import IndexedArchive, IndexTask
from cdxmill.spark.engine import Engine
from cdxmill.spark.tasks import IndexWork, index_archive
from cdxmill.storage.location import Location, locate


class IndexRunner:
    """Runs the tasks of `index` on `engine`; `scratch` is a directory of the nodes for temporary files, or ""."""

    def __init__(self, engine: Engine, scratch: str = "") -> None:
        self._engine, self._scratch = engine, scratch

    def __call__(
        self, work: Any, tasks: Sequence[Any], processes: int, tick: Callable[[], None], /
    ) -> Iterator[tuple[int, Any]]:
        """Index the archives: see `running.processes.RunTasks`."""
        sent = [IndexWork(self._task(task), self._scratch) for task in tasks]
        results: Iterator[tuple[int, IndexedArchive]] = self._engine.run_tasks(
            index_archive, sent, processes, tick
        )
        return results

    def _task(self, task: IndexTask) -> IndexTask:
        """The task as a node can do it: it has another current directory."""
        if self._engine.is_local:
            return task
        return replace(
            task,
            archive=task.archive._replace(location=Location(task.archive.location.absolute())),
            output=Location(task.output.absolute()),
            directory=None if task.directory is None else Path(locate(task.directory).absolute()),
        )
