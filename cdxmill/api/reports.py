"""The function that says what is in a collection."""

from __future__ import annotations

from cdxmill.api.calls import takes
from cdxmill.api.results import ReportResult
from cdxmill.commands.reporting.report import report_asked
from cdxmill.options.reports import Reporting
from cdxmill.running.failures import Failures


@takes(Reporting)
def report(asked: Reporting) -> ReportResult:
    """Say what is in clusters or CDX files, from their index lines.

    With `html` or `json`, for example "report.html", it is also written there. Corrupt blocks are skipped, and are in the failures of
    the result. Raises UsageError if there is no input, or if an output exists and `replace` is not given, StoppedError if it cannot be written.
    """
    failures = Failures(printed=False)
    return ReportResult(report_asked(asked, failures), failures.items)
