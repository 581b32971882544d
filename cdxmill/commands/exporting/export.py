"""export: the captures of a query in a file or a directory."""

from __future__ import annotations

import os
from typing import NamedTuple

from cdxmill.commands.exporting.lines import ExportedLines
from cdxmill.commands.exporting.text import check_csv_fields, export_text
from cdxmill.messages import count
from cdxmill.options.exports import Exporting
from cdxmill.running.failures import Failures
from cdxmill.running.progress import Progress


class ExportSummary(NamedTuple):
    """What was exported. `missing` has the values that a table cannot have, by column."""

    captures: int
    missing: dict[str, int]

    def __str__(self) -> str:
        """Return one line."""
        lost = ", ".join(f"{number} of {column}" for column, number in sorted(self.missing.items()))
        about = f"; values that a table cannot have: {lost}; see the column cdx_line" if lost else ""
        return f"{count(self.captures, 'capture')}{about}"


def export(asked: Exporting, failures: Failures) -> ExportSummary:
    """Write the captures of a query to `output`. Raises UsageError, InputError, StoppedError."""
    output, missing = os.fspath(asked.output), dict[str, int]()
    if asked.format == "csv":
        check_csv_fields(asked)
    if asked.format == "parquet":
        from cdxmill.commands.exporting.arrow import require

        require()
    lines = ExportedLines(os.fspath(asked.cluster), asked.query, asked, failures)
    with Progress("exporting", 0, quiet=asked.progress is None and asked.quiet) as progress:
        failures.show_on(progress)
        if asked.format == "parquet":
            from cdxmill.commands.exporting.parquet import export_parquet  # slow to import

            missing = export_parquet(lines, asked, output, progress)
        else:
            export_text(lines, asked, output, progress, failures)
    return ExportSummary(lines.count, missing)
