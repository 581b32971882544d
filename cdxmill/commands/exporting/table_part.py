"""One range of keys -> its Parquet files. Where this runs does not show in their bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cdxmill.commands.exporting.arrow import BATCH, BATCH_BYTES, ArrowTable, libraries
from cdxmill.commands.exporting.lines import ExportedLines, in_batches
from cdxmill.commands.exporting.parquet_files import PartWriter, count_rows
from cdxmill.errors import StoppedError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.exports import Exporting
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import count_bytes
from cdxmill.storage.location import Location


class TableWork(NamedTuple):
    """What the parts of a table have in common. `libraries` are the versions where the export was started."""

    asked: Exporting
    query: str | None
    directory: Location
    libraries: list[str]


class TableTask(NamedTuple):
    """A part of a table: its number, and the keys of its lines."""

    number: int
    keys: KeyRange


class TablePart(NamedTuple):
    """What was written: the size of each file, by its path below the directory. There are none without lines.

    `missing` counts the values that the table cannot have, by column, and `missing_rows` the rows that lack one.
    """

    files: dict[str, int]
    lines: int
    missing: dict[str, int]
    missing_rows: int
    failures: list[Failure]
    has_skipped: bool


def write_part(work: TableWork, task: TableTask) -> TablePart:
    """Write a part, and check that it has all lines. Raises UsageError, InputError, StoppedError."""
    failures, table = Failures(printed=False), ArrowTable(encoded=True)
    own, expected = ", ".join(libraries()), ", ".join(work.libraries)
    if own != expected:
        raise StoppedError(f"a node has {own}, the driver {expected}: install the same versions")
    asked = work.asked
    lines = ExportedLines(os.fspath(asked.cluster), work.query, asked, failures, task.keys)
    batches = in_batches(lines.lists(), min(BATCH, asked.file_lines), BATCH_BYTES)
    with _arrow_errors(), PartWriter(work.directory, task.number, table, asked) as writer:
        for batch in table.batches(_counted(batches)):
            writer.write(batch)
    rows = sum(map(count_rows, writer.written))
    if rows != lines.count:
        raise StoppedError(f"{asked.output}: {rows} rows were written of {lines.count} lines; report it")
    return TablePart(
        files=_sizes(writer.written, work.directory),
        lines=lines.count,
        missing=dict(table.columns.lost),
        missing_rows=table.columns.lines,
        failures=failures.items,
        has_skipped=lines.has_skipped,
    )


def write_empty(work: TableWork) -> dict[str, int]:
    """Write the file of a table without rows. Returns its size."""
    table = ArrowTable(encoded=True)
    with _arrow_errors(), PartWriter(work.directory, 0, table, work.asked) as writer:
        writer.write_none()
    return _sizes(writer.written, work.directory)


def _counted(batches: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """The batches. Their bytes are counted for the progress."""
    for batch in batches:
        yield batch
        count_bytes(sum(map(len, batch)))


def _sizes(files: list[Location], directory: Location) -> dict[str, int]:
    """The sizes of files by their paths below a directory."""
    start = len(f"{directory}/")
    return {str(file)[start:]: file.size() for file in files}


@contextmanager
def _arrow_errors() -> Iterator[None]:
    """Turn what Arrow raises into StoppedError."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, MemoryError) as error:
        reason = " ".join(str(error).split()) or "not enough memory"
        raise StoppedError(f"cannot write Parquet ({reason})") from None
