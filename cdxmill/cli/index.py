"""`cdxmill index`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cdxmill.cli.arguments import ArchiveArguments, LineArguments, Replace
from cdxmill.cli.command import Option, command
from cdxmill.cli.output import FAILED, OK, print_summary, standard_output
from cdxmill.errors import UsageError

if TYPE_CHECKING:
    from cdxmill.inputs.existing_outputs import Rule


@dataclass(frozen=True, kw_only=True)
class IndexArguments(LineArguments, ArchiveArguments):
    """The command line of `index`."""

    output: Annotated[
        str,
        Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Directory, s3 or hdfs URL for the .cdx.gz files; - writes one sorted stream to stdout.",
        ),
    ]
    skip_existing: Annotated[
        bool,
        Option(
            "--skip-existing",
            help="Skip an archive if its index exists, is not older than the archive, and has no recorded failure,"
            " whatever options it was made with.",
        ),
    ] = False
    replace: Replace = False

    def existing(self) -> Rule:
        """What happens to outputs that exist. Raises UsageError."""
        from cdxmill.inputs.existing_outputs import Rule

        if self.skip_existing and self.replace:
            raise UsageError("--skip-existing and --replace cannot be used together")
        return Rule.SKIP if self.skip_existing else Rule.REPLACE if self.replace else Rule.REFUSE


@command
def index(arguments: IndexArguments) -> int:
    """Index WARC and ARC files.

    INPUT is an archive, directory, glob or URL (http, https, s3, hdfs). Archives are WARC, ARC, WAT or WET
    files, compressed with gzip or Zstandard or not compressed. A WACZ stands for the archives in it. cdxmill writes one .cdx.gz file per archive,
    with the same relative path, or one sorted stream.

    A record is indexed if its byte range contains exactly that record. Every other record is reported on
    stderr and in DIR/failures.tsv, or, if DIR is a URL, in a file beside the output, _NAME.failures.

    If you run it again, outputs that are up to date are kept. cdxmill never overwrites any other output unless
    you say --skip-existing (index archives that are newer or failed) or --replace (index all again).
    """
    from cdxmill.commands.index import index_to_folder, index_to_stream
    from cdxmill.inputs.output_names import output_names
    from cdxmill.running.failures import Failures

    failures = Failures()
    options = arguments.index_options(arguments.existing())
    archives = arguments.archives(failures)
    if arguments.output == "-":
        with standard_output() as out:
            summary = index_to_stream(archives, out, options, failures)
    else:
        summary = index_to_folder(output_names(archives), arguments.output, options, failures)
    print_summary(summary.report(failures, arguments.output), quiet=arguments.quiet)
    return FAILED if failures.count else OK
