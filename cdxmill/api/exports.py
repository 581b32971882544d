"""`export`: the captures of a cluster as a table, or as lines."""

from __future__ import annotations

from cdxmill.api.calls import takes
from cdxmill.api.results import ExportResult, result_of
from cdxmill.commands.exporting.export import export as export_all
from cdxmill.options.exports import Exporting
from cdxmill.running.failures import Failures


@takes(Exporting)
def export(asked: Exporting) -> ExportResult:
    """Write the captures of `query` (by default all) in `cluster` to `output`. `format` is "parquet", "csv", "cdxj" or "wacz".

    `to` is the last timestamp. Corrupt blocks are in the failures of the result, and the others are exported. Raises
    UsageError for invalid arguments, or if `output` exists and `replace` is not given, InputError if the cluster cannot be
    read, StoppedError if `output` cannot be written.
    """
    failures = Failures(printed=False)
    return result_of(ExportResult, export_all(asked, failures), failures)
