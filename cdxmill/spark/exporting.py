"""What runs on Spark for `export --to parquet`: each range of keys is a task, which reads its lines and writes its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from cdxmill.cluster.find import index_of_crawl
from cdxmill.commands.exporting.table_part import TablePart, TableTask, TableWork, write_part
from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.pipes import is_pipe
from cdxmill.running.failures import Failure
from cdxmill.search.lookup import is_named_crawl, names_in
from cdxmill.search.servers import is_server
from cdxmill.spark.engine import Engine
from cdxmill.spark.tasks import OnNode
from cdxmill.storage.location import locate


class TableRunner:
    """Writes the parts of a table on `engine`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __call__(
        self, work: TableWork, tasks: Sequence[TableTask], processes: int, tick: Callable[[], None], /
    ) -> Iterator[tuple[int, TablePart]]:
        """Write the parts: see `exporting.parquet.RunParts`."""
        names = names_in(os.fspath(work.asked.cluster))
        if any(map(is_pipe, names)):
            raise UsageError("--engine spark cannot read a pipe; write it to a file first")
        given = dict(zip(map(_anywhere, names), names, strict=True))
        there = work._replace(asked=replace(work.asked, cluster=",".join(given)))
        write = partial(write_on_node, there, OnNode("", self._engine.tries))
        for number, found in self._engine.run_tasks(write, tasks, processes, tick):
            if isinstance(found, InputError):
                raise type(found)(_as_given(found.path, given), found.reason, found.hint)
            if isinstance(found, UsageError):
                raise found
            failures = [one._replace(path=_as_given(one.path, given)) for one in found.failures]
            yield number, found._replace(failures=failures)


def write_on_node(work: TableWork, node: OnNode, task: TableTask) -> TablePart | InputError | UsageError:
    """Write a part, or return what is wrong with the cluster or the question: Spark need not try that again.

    Raises StoppedError if a machine is at fault: Spark tries it on another one.
    """
    try:
        return write_part(work, task)
    except UsageError as error:
        return error
    except InputError as error:
        node.check_reached([Failure.from_error(error)])
        return error


def _anywhere(name: str) -> str:
    """The name of a source as all nodes find it."""
    if is_named_crawl(name):
        return index_of_crawl(name)
    return name if is_server(name) else locate(name).absolute()


def _as_given(path: str, given: dict[str, str]) -> str:
    """A path in a message as the user would write it."""
    for place, name in given.items():
        if path == place or path.startswith(f"{place}/"):
            return name + path[len(place) :]
    return path
