"""The command that says what is in a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdxmill.cli.command import standard_output
from cdxmill.options.reports import Reporting

if TYPE_CHECKING:
    from cdxmill.running.failures import Failures


def report(arguments: Reporting, failures: Failures) -> str:
    """Say what is in a collection: as tables, as JSON, as a page.

    INPUT is a ZipNum cluster, or CDX files. Only index lines are read, no archives. cdxmill prints tables of the hosts, domains, MIME types, statuses,
    languages, years and archives with the most captures, of duplicates, and of the largest records. With --html, it
    writes one file with plots that needs no network. Memory is bounded: where numbers are estimates, their error is beside them.

    Corrupt blocks are skipped and reported on stderr, and the exit status is 1 then.

    Examples:
        cdxmill report crawl
        cdxmill report crawl --html report.html --json report.json
        cdxmill report crawl --compare report.json
    """
    from cdxmill.commands.reporting.report import format_json, report_asked
    from cdxmill.stages.report.terminal import format_tables

    made = report_asked(arguments, failures)
    with standard_output() as out:
        if arguments.json == "-":
            out.write(format_json(made))
        elif not arguments.quiet:
            import shutil  # slow to import

            out.write(format_tables(made, shutil.get_terminal_size((100, 24)).columns).encode())
    return ""
