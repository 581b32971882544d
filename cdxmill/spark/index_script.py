"""Index archives on Spark: the command line of webarchive-indexing's indexwarcs_cc_pyspark.py.

    spark-submit indexwarcs_cc_pyspark.py --input_base_url=ROOT --output_base_url=CDX LIST [TABLE]

The bytes are those of `cdxmill index --manifest`.
"""

from __future__ import annotations

from cdxmill.commands.per_archive.index import index_to_folder
from cdxmill.commands.per_archive.index_one import IndexOptions
from cdxmill.errors import FAILED, OK
from cdxmill.inputs.found_inputs import archives_of
from cdxmill.messages import say_lines
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.names import cdx_names
from cdxmill.running.failures import Failures
from cdxmill.spark.index import IndexRunner
from cdxmill.spark.script import make_engine, make_parser, plain_url


def main(arguments: list[str]) -> int:
    """Run the job. Returns the exit status. Raises UsageError, InputError, StoppedError."""
    parser = make_parser(
        "indexwarcs_cc_pyspark.py",
        "Index the WARC and ARC files of a list on Spark. One .cdx.gz file is written per archive.",
        "File or URL with a list of archives, one per line.",
    )
    parser.add_argument(
        "--output_base_url", default="my_cdx_bucket", help="Directory or URL for the CDX files."
    )
    parser.add_argument("--num_output_partitions", type=int, help="Not used: no table is written.")
    parser.add_argument(
        *("--skip-existing", "--update"),
        dest="update",
        action="store_true",
        help="Skip archives with a finished CDX file.",
    )
    options = parser.parse_args(arguments)
    existing = Rule.REPLACE if options.replace else Rule.UPDATE if options.update else Rule.REFUSE
    names = cdx_names(archives_of([plain_url(options.input)], plain_url(options.input_base_url)), True)
    failures = Failures()
    output = plain_url(options.output_base_url)
    with make_engine(options) as engine:
        run = IndexRunner(engine, options.local_temp_dir)
        summary = index_to_folder(
            names, output, IndexOptions(existing=existing, quiet=options.quiet, run=run), failures
        )
    if not options.quiet:
        say_lines(summary.report(failures, output))
    return FAILED if failures.count else OK
