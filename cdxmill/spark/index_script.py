"""Index archives on Spark: the command line of webarchive-indexing's indexwarcs_cc_pyspark.py.

    spark-submit indexwarcs_cc_pyspark.py --input_base_url=ROOT --output_base_url=CDX LIST [TABLE]

The bytes are those of `cdxmill index --manifest`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cdxmill.commands.per_archive.index import IndexOptions, index_to_directory
from cdxmill.errors import FAILED, OK
from cdxmill.inputs.found_inputs import archives_of
from cdxmill.messages import say_lines
from cdxmill.options.option import Existing, Option
from cdxmill.outputs.existing import rule_of
from cdxmill.outputs.names import cdx_names
from cdxmill.running.failures import Failures
from cdxmill.spark.jobs import IndexRunner
from cdxmill.spark.script import ScriptOptions, make_engine, parse_options, plain_url

_ABOUT = (
    "indexwarcs_cc_pyspark.py: Index the WARC and ARC files of a list on Spark. INPUT is a file or URL with a list of"
    " archives, one per line. One .cdx.gz file is written per archive."
)


@dataclass(kw_only=True, repr=False, eq=False)
class SparkIndexOptions(ScriptOptions, Existing):
    """The command line of the script."""

    output_base_url: Annotated[
        str, Option("--output_base_url", help="Directory or URL for the CDX files.")
    ] = "my_cdx_bucket"
    num_output_partitions: Annotated[
        int | None, Option("--num_output_partitions", help="Not used: no table is written.")
    ] = None
    update: Annotated[
        bool, Option("--skip-existing", "--update", help="Skip archives with a finished CDX file.")
    ] = False


def main(arguments: list[str]) -> int:
    """Run the job. Returns the exit status. Raises UsageError, InputError, StoppedError."""
    options = parse_options(SparkIndexOptions, _ABOUT, arguments)
    existing = rule_of(options)
    names = cdx_names(archives_of([plain_url(options.input)], plain_url(options.input_base_url)), True)
    failures = Failures()
    output = plain_url(options.output_base_url)
    with make_engine(options) as engine:
        run = IndexRunner(engine, options.local_temp_dir)
        summary = index_to_directory(
            names, output, IndexOptions(existing=existing, quiet=options.quiet, run=run), failures
        )
    if not options.quiet:
        say_lines(summary.report(failures, output))
    return FAILED if failures.count else OK
