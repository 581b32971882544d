"""The command that takes captures out of a cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cdxmill.cli.command import open_engine, standard_output
from cdxmill.options.exports import Exporting

if TYPE_CHECKING:
    from cdxmill.running.failures import Failures


def export(arguments: Exporting, failures: Failures) -> str:
    """Write the captures of a cluster as a table, lines or a WACZ.

    The captures of CLUSTER that match QUERY are written, or all of them. parquet is a directory with the columns of Common
    Crawl's columnar index, for DuckDB, pandas and polars. csv is for spreadsheets: cells that could be formulas are made
    safe. cdxj are the lines of the index. wacz is one file with the archives of these captures, their index and a list of
    pages, for ReplayWeb.page.

    A value that a Parquet table cannot have, such as text that is not UTF-8, is NULL. The column cdx_line has the line
    then. A block that is corrupt is reported and skipped. OUTPUT gets its name when it is complete.

    A WACZ has the records that copy would write, with the records that revisits refer to. A run that was killed continues
    when it is started again. Records that cannot be copied are reported, and listed in _OUTPUT.failures.

    Examples:
        cdxmill export crawl --to parquet -o table
        cdxmill export crawl '*.iana.org' --to csv -o iana.csv --fl url,status
        cdxmill export crawl '*.iana.org' --to wacz -o iana.wacz --archives warcs
    """
    from cdxmill.commands.exporting.export import export as export_all

    output = os.fspath(arguments.output)
    if output == "-":
        with standard_output():
            export_all(arguments, failures)
        return ""
    with open_engine(arguments) as spark:
        return f"{output}: {export_all(arguments, failures, spark and spark.table)}"
