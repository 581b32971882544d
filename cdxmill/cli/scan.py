"""`cdxmill scan`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cdxmill.cli.command import Printing, check_no_pipe, command, print_summary
from cdxmill.errors import FAILED, OK, UsageError
from cdxmill.options.archives import ArchiveInputs
from cdxmill.options.option import Excludes, Existing, Option, Running, path_list

if TYPE_CHECKING:
    from cdxmill.commands.scanning.options import ScanOptions


_WARC = ("warc.gz", "warc.zst")
_WHOLE = tuple(f"to={name}" for name in _WARC)
"""Formats of records as they are, which have no fields."""


@dataclass(kw_only=True, repr=False, eq=False)
class ScanArguments(Printing, ArchiveInputs, Existing, Running):
    """The command line of `scan`."""

    output: Annotated[
        str, Option("--output", "-o", metavar="DIR", help="Directory, s3 or hdfs URL for the results.")
    ]
    where: Annotated[
        list[str] | None,
        Option(
            metavar="EXPRESSION",
            help="Conditions such as status=200, url~REGEX, title:TEXT or host@FILE, with and, or, not and parentheses."
            " May be repeated: then all must hold. Default: all records.",
        ),
    ] = None
    extract: Annotated[
        str | None,
        Option(
            metavar="NAMES",
            help="Fields to write, comma-separated. Default: url,time,type,status,mime,offset,length.",
        ),
        Excludes(*_WHOLE),
    ] = None
    find: Annotated[
        list[str] | None,
        Option(
            metavar="FILTER",
            help="NAME=FIELD~REGEX: write all matches in a field, or of the groups in REGEX. May be repeated.",
        ),
        Excludes(*_WHOLE),
    ] = None
    call: Annotated[
        list[str] | None,
        Option(
            metavar="FUNCTION",
            help="MODULE:FUNCTION of your own. It gets each matching record. If it returns a dict, its items are"
            " written; if False, the record is skipped. May be repeated.",
        ),
    ] = None
    call_page: Annotated[
        list[str] | None,
        Option(metavar="FUNCTION", help="As --call, but it gets the parsed page, if there is one."),
    ] = None
    to: Annotated[
        str,
        Option(
            metavar="FORMAT",
            choices=("jsonl", "jsonl.gz", "jsonl.zst", "parquet", *_WARC),
            help="jsonl, jsonl.gz, jsonl.zst, parquet, or, for the matching records as they are, warc.gz or warc.zst.",
        ),
    ] = "jsonl.gz"
    captures: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Scan only the records that these index lines name, as lookup prints them: path, URL, or - for"
            " standard input. INPUT has to contain their archives.",
        ),
    ] = None
    explain: Annotated[
        bool, Option(help="Print the order of the conditions, and what was measured of each.")
    ] = False
    timeout: Annotated[
        int, Option(min=1, metavar="N", help="Seconds for one record. Then it is skipped and reported.")
    ] = 60
    memory: Annotated[int, Option(min=64, metavar="N", help="MiB of memory that one process may use.")] = 2048

    def options(self) -> ScanOptions:
        """What is searched and written. Raises UsageError."""
        from cdxmill.commands.scanning.options import ScanOptions
        from cdxmill.outputs.existing import rule_of
        from cdxmill.stages.scan.fields import DEFAULT

        return ScanOptions(
            where=tuple(self.where or ()),
            extract=DEFAULT if self.extract is None else self.extract,
            finds=tuple(self.find or ()),
            calls=tuple(self.call or ()),
            page_calls=tuple(self.call_page or ()),
            to=self.to,
            seconds=self.timeout,
            memory=self.memory << 20,
            processes=self.processes,
            existing=rule_of(self),
            quiet=self.quiet,
        )

    def capture_lines(self) -> bytes | None:
        """The lines of --captures. Raises UsageError, InputError."""
        from cdxmill.commands.scanning.options import read_captures

        if self.captures is None:
            return None
        lines = read_captures(self.captures)
        if not lines.strip():
            raise UsageError(f"--captures {self.captures}: has no lines")
        return lines


@command
def scan(arguments: ScanArguments) -> int:
    """Search archives for records, and write what you need of them.

    INPUT is a WARC, WAT, WET or ARC file, directory, glob or URL (http, https, s3, hdfs). cdxmill writes one file per
    input, with the same relative path. A line of it is a JSON object with the fields of a record that matches.

    Conditions that need only the header of a record are tested first, those that need its page or language last,
    whatever their order in EXPRESSION. With --explain, cdxmill prints the order.

    A record that cannot be read, takes too long or makes your function fail is skipped, and reported on stderr and in
    DIR/failures.tsv, or, if DIR is a URL, in a file beside the output, _NAME.failures. If you run it again, outputs that
    are up to date are kept. cdxmill never overwrites any other output unless you say --update (write those that
    are older or failed) or --replace (write all again).

    Examples:
        cdxmill scan -o found --where "status=200 and mime=text/html" warcs/
        cdxmill scan -o en --where lang=en --extract url,title,links warcs/
        cdxmill scan -o some --captures cdx/iana.cdx.gz warcs/
        cdxmill scan -o part --where host=www.iana.org --to warc.gz warcs/
    """
    from cdxmill.commands.scanning.scan import scan, scanned_name
    from cdxmill.inputs.archives import find_archives
    from cdxmill.outputs.names import output_names
    from cdxmill.running.failures import Failures

    check_no_pipe(
        path_list(arguments.inputs), "an archive from a pipe has no name for its output; give a file"
    )
    failures = Failures()
    options = arguments.options()
    names = output_names(find_archives(arguments, failures), lambda path: scanned_name(path, arguments.to))
    summary = scan(names, arguments.output, options, failures, arguments.capture_lines())
    if arguments.explain:
        for measured in summary.measured:
            failures.note(str(measured))
    print_summary(summary, quiet=arguments.quiet)
    return FAILED if failures.count else OK
