"""export: the captures of a query in a file or a directory."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cdxmill.cluster.write import files_read
from cdxmill.commands.exporting.lines import ExportedLines
from cdxmill.commands.exporting.text import check_csv_fields, export_text
from cdxmill.errors import UsageError
from cdxmill.messages import count
from cdxmill.options.exports import Exporting
from cdxmill.options.option import text_list
from cdxmill.outputs.names import check_inputs_stay
from cdxmill.running.failures import Failures
from cdxmill.running.progress import Progress
from cdxmill.search.lookup import names_in
from cdxmill.storage.location import locate

if TYPE_CHECKING:
    from cdxmill.commands.exporting.parquet import RunParts


class ExportSummary(NamedTuple):
    """What was exported. `missing` has the values that a table cannot have, by column."""

    captures: int
    missing: dict[str, int]
    pages: int | None = None
    """The pages of a WACZ."""

    def __str__(self) -> str:
        """Return one line."""
        lost = ", ".join(f"{number} of {column}" for column, number in sorted(self.missing.items()))
        about = f"; values that a table cannot have: {lost}; see the column cdx_line" if lost else ""
        pages = "" if self.pages is None else f", {count(self.pages, 'page')}"
        return f"{count(self.captures, 'capture')}{pages}{about}"


def export(asked: Exporting, failures: Failures, run: RunParts | None = None) -> ExportSummary:
    """Write the captures of a query to `output`. `run` is another engine, for a table. Raises UsageError, InputError, StoppedError."""
    if asked.replace:
        sources = names_in(os.fspath(asked.cluster))
        check_inputs_stay(
            [locate(os.fspath(asked.output))], [file for name in sources for file in files_read(name)]
        )
    if asked.format == "wacz":
        from cdxmill.commands.exporting.wacz import export_wacz  # slow to import

        captures, pages = export_wacz(asked, failures)
        return ExportSummary(captures, {}, pages)
    if asked.format == "csv":
        check_csv_fields(asked)
    asked, query = replace(asked, filter=text_list(asked.filter)), _one_query(asked)
    if asked.format == "parquet":
        return _export_parquet(asked, query, failures, run)
    lines = ExportedLines(os.fspath(asked.cluster), query, asked, failures)
    with Progress("exporting", 0, quiet=asked.quiet) as progress:
        failures.show_on(progress)
        export_text(lines, asked, os.fspath(asked.output), progress, failures)
    return ExportSummary(lines.count, {})


def _export_parquet(
    asked: Exporting, query: str | None, failures: Failures, run: RunParts | None
) -> ExportSummary:
    from cdxmill.commands.exporting.arrow import libraries, require

    require()
    # slow to import
    from cdxmill.commands.exporting.parquet import export_parquet, run_here
    from cdxmill.commands.exporting.table_part import TableWork

    lines = ExportedLines(os.fspath(asked.cluster), query, asked, failures)
    work = TableWork(asked, query, locate(os.fspath(asked.output)), libraries())
    missing = export_parquet(lines, work, run or run_here)
    return ExportSummary(lines.count, missing)


def _one_query(asked: Exporting) -> str | None:
    """The query of a table or of lines; None for all captures. Raises UsageError if there are several."""
    queries = () if asked.query is None else text_list(asked.query)
    if len(queries) > 1:
        raise UsageError(f"--to {asked.format} takes one QUERY; export the others to other files")
    return queries[0] if queries else None
