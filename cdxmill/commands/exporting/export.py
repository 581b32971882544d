"""export: the captures of a query in a file or a directory."""

from __future__ import annotations

import os
from typing import NamedTuple

from cdxmill.commands.exporting.lines import ExportedLines
from cdxmill.commands.exporting.text import check_csv_fields, export_text
from cdxmill.errors import UsageError
from cdxmill.messages import count
from cdxmill.options.exports import Exporting
from cdxmill.options.option import text_list
from cdxmill.running.failures import Failures
from cdxmill.running.progress import Progress


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


def export(asked: Exporting, failures: Failures) -> ExportSummary:
    """Write the captures of a query to `output`. Raises UsageError, InputError, StoppedError."""
    if asked.format == "wacz":
        from cdxmill.commands.exporting.wacz import export_wacz  # slow to import

        captures, pages = export_wacz(asked, failures)
        return ExportSummary(captures, {}, pages)
    output, missing = os.fspath(asked.output), dict[str, int]()
    if asked.format == "csv":
        check_csv_fields(asked)
    if asked.format == "parquet":
        from cdxmill.commands.exporting.arrow import require

        require()
    lines = ExportedLines(os.fspath(asked.cluster), _one_query(asked), asked, failures)
    with Progress("exporting", 0, quiet=asked.progress is None and asked.quiet) as progress:
        failures.show_on(progress)
        if asked.format == "parquet":
            from cdxmill.commands.exporting.parquet import export_parquet  # slow to import

            missing = export_parquet(lines, asked, output, progress)
        else:
            export_text(lines, asked, output, progress, failures)
    return ExportSummary(lines.count, missing)


def _one_query(asked: Exporting) -> str | None:
    """The query of a table or of lines; None for all captures. Raises UsageError if there are several."""
    queries = () if asked.query is None else text_list(asked.query)
    if len(queries) > 1:
        raise UsageError(f"--to {asked.format} takes one QUERY; export the others to other files")
    return queries[0] if queries else None
