"""`cdxmill cat`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cdxmill.cli.command import Printing, command, print_summary, standard_output
from cdxmill.errors import FAILED, OK, UsageError
from cdxmill.options.option import Argument, Needs, Option


@dataclass(kw_only=True, repr=False, eq=False)
class CatArguments(Printing):
    """The command line of `cat`."""

    archive: Annotated[str, Argument("SOURCE", "Archive: path or URL.")]
    offset: Annotated[int | None, Option(min=0, metavar="N", help="Print the record at this offset.")] = None
    length: Annotated[
        int | None,
        Option(min=1, metavar="N", help="Length of the record in SOURCE. Default: to the end of the record."),
        Needs("offset"),
    ] = None
    table: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Write a table of all records to this path, s3 or hdfs URL: url, kind, offset and length,"
            " separated by tabs.",
        ),
    ] = None
    replace: Annotated[bool, Option(help="Replace an existing output."), Needs("table")] = False


@command
def cat(arguments: CatArguments) -> int:
    """Print a record of an archive, or list all records.

    SOURCE is a WARC or ARC file, compressed with gzip or Zstandard or not compressed. With --offset, only the bytes
    of that record are read, and the dictionary of a Zstandard file. They are decompressed and checked to
    contain exactly one record. With --table, all records are listed with their offsets.

    Examples:
        cdxmill cat warcs/iana.warc.gz --table records.tsv
        cdxmill cat warcs/iana.warc.gz --offset 334 --length 2258
    """
    if (arguments.offset is None) == (arguments.table is None):
        raise UsageError("give either --offset N or --table FILE")
    if arguments.table is not None:
        return _write_table(arguments, arguments.table)
    from cdxmill.commands.get import GetOptions, RecordRange, get_record

    wanted = RecordRange(arguments.archive, arguments.offset or 0, arguments.length)
    with standard_output() as out:
        for piece in get_record(wanted, GetOptions()):
            out.write(piece)
    return OK


def _write_table(arguments: CatArguments, output: str) -> int:
    from cdxmill.commands.cat import write_table
    from cdxmill.running.failures import Failures

    failures = Failures()
    summary = write_table(arguments.archive, output, failures, replace=arguments.replace)
    print_summary(summary, quiet=arguments.quiet)
    return FAILED if failures.count else OK
