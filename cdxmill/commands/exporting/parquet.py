"""A table as a directory of Parquet files. Each range of keys is a task, which one of several processes or machines does."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from cdxmill.commands.exporting.arrow import SUFFIX_LIST, suffix_list
from cdxmill.commands.exporting.lines import ExportedLines
from cdxmill.commands.exporting.ranges import key_ranges
from cdxmill.commands.exporting.staging import staged_directory
from cdxmill.commands.exporting.table_part import (
    TablePart,
    TableTask,
    TableWork,
    write_empty,
    write_part,
)
from cdxmill.running.failures import Failure
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress


class RunParts(Protocol):
    """An engine: writes the parts of a table as `write_part` does, here or on other machines."""

    def __call__(
        self, work: TableWork, tasks: Sequence[TableTask], processes: int, tick: Callable[[], None], /
    ) -> Iterator[tuple[int, TablePart]]:
        """Write the parts."""


def run_here(
    work: TableWork, tasks: Sequence[TableTask], processes: int, tick: Callable[[], None]
) -> Iterator[tuple[int, TablePart]]:
    """Write the parts in processes of this machine."""
    return run_tasks(partial(write_part, work), tasks, processes, tick)


def export_parquet(lines: ExportedLines, work: TableWork, run: RunParts) -> dict[str, int]:
    """Write the table, and check that it has all lines. Returns the number of values that it cannot have, by column.

    The directory of `work` is replaced by that in which the files are written.
    """
    asked = work.asked
    with (
        staged_directory(os.fspath(asked.output), asked.replace, lines.failures.note) as staged,
        key_ranges(lines, asked.file_lines) as ranges,
    ):
        tasks = [TableTask(number, keys) for number, keys in enumerate(ranges)]
        work = work._replace(directory=staged.place)
        parts = _run(lines, work, tasks, run)
        lines.check()
        files = {name: size for part in parts for name, size in part.files.items()} or write_empty(work)
        missing = sum((Counter(part.missing) for part in parts), Counter[str]())
        about = {
            "rows": lines.count,
            SUFFIX_LIST: suffix_list(),
            "missing_values": dict(missing),
            "rows_with_missing_values": sum(part.missing_rows for part in parts),
        }
        staged.finish(files, about)
    return missing


def _run(lines: ExportedLines, work: TableWork, tasks: Sequence[TableTask], run: RunParts) -> list[TablePart]:
    """Write all parts, and add up their lines and failures."""
    parts, reported = dict[int, TablePart](), set[Failure]()
    with Progress("exporting", len(tasks), quiet=work.asked.quiet) as progress:
        lines.failures.show_on(progress)
        for number, part in run(work, tasks, work.asked.processes, progress.tick):
            parts[number] = part
            for failure in part.failures:
                # Two neighbors may have read the same block.
                if failure.offset is None or failure not in reported:
                    lines.failures.report(failure)
                reported.add(failure)
            lines.count += part.lines
            lines.has_skipped |= part.has_skipped
            progress.advance()
    return [parts[task.number] for task in tasks]
