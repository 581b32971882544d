"""`cdxmill reindex`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cdxmill.cli.command import Printing, command, print_summary
from cdxmill.errors import FAILED, OK, UsageError
from cdxmill.options.option import Argument, Option, Replace, Running


@dataclass(kw_only=True, repr=False, eq=False)
class ReindexArguments(Printing, Running):
    """The command line of `reindex`."""

    inputs: Annotated[list[str], Argument("CDX...", "CDX files, directories, globs or URLs.")]
    output: Annotated[
        str,
        Option("--output", "-o", metavar="DIR", help="Directory, s3 or hdfs URL for the new index files."),
    ]
    offsets: Annotated[
        list[str],
        Option(
            metavar="FILE",
            help="Table of offsets that cdxmill recompress --offsets wrote: path, directory, glob or URL. Give"
            " it several times if there are several.",
        ),
    ]
    replace: Replace = False


@command
def reindex(arguments: ReindexArguments) -> int:
    """Rewrite an index for archives that were written again.

    CDX is an index file of the old archives: CDXJ or CDX, gzipped or not. For each one, cdxmill writes an index file of
    the same name, with the new file names, offsets and lengths. All other bytes of a line stay. The lines are sorted. The
    archives themselves are not read. Lines of other archives are copied.

    A line is skipped and reported if the table of its archive has no record with its offset and length. Then the
    index was made from another state of the archive, and the exit status is 1. Failures are also listed
    in DIR/failures.tsv, or, if DIR is a URL, in a file beside the output, _NAME.failures.

    If you run it again, outputs that are up to date are kept. cdxmill never overwrites any other output unless
    you say --replace.

    Examples:
        cdxmill reindex -o cdx-moved --offsets moved cdx/
    """
    from cdxmill.commands.per_archive.reindex import reindex
    from cdxmill.commands.per_archive.task import OutputOptions
    from cdxmill.inputs.cdx_files import find_cdx_inputs
    from cdxmill.outputs.existing import Rule
    from cdxmill.outputs.names import below, output_names
    from cdxmill.outputs.offset_tables import find_tables
    from cdxmill.running.failures import Failures

    if "-" in arguments.inputs:
        raise UsageError("an index from a pipe has no name for its output; give a file")
    failures = Failures()
    tables = find_tables(arguments.offsets, failures)
    names = output_names(find_cdx_inputs(arguments.inputs, failures), below)
    options = OutputOptions(
        processes=arguments.processes,
        existing=Rule.REPLACE if arguments.replace else Rule.REFUSE,
        quiet=arguments.quiet,
    )
    summary = reindex(names, tables, arguments.output, options, failures)
    print_summary(summary, quiet=arguments.quiet)
    return FAILED if failures.count else OK
