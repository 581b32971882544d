"""`cdxmill copy`: its options, its help and the call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cdxmill.cli.arguments import Quiet
from cdxmill.cli.command import Argument, Option, command
from cdxmill.cli.output import print_summary, standard_output
from cdxmill.cli.query_arguments import QueryArguments
from cdxmill.errors import FAILED, OK, UsageError

if TYPE_CHECKING:
    from cdxmill.commands.copying.plan import Asked
    from cdxmill.running.failures import Failures

_SIZE = re.compile(r"(\d{1,12})([KMGT]?)(?:i?B)?", re.I)
_LEAST = 1 << 16
"""Bytes of the smallest size limit: a warcinfo record and a page."""


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    size = int(found[1]) << 10 * " KMGT".index(found[2].upper() or " ") if found else 0
    if size < _LEAST:
        raise UsageError(f"--size {text}: expected a size of at least 64K, such as 500M or 1G")
    return size


@dataclass(frozen=True, kw_only=True)
class CopyArguments(QueryArguments):
    """The command line of `copy`."""

    source: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="ZipNum cluster (directory, URL or .idx file), crawl by name, such as CC-MAIN-2024-22 or"
            " CC-MAIN-2024-*, prefix B-tree, .cdxj file, or - for CDXJ lines on standard input. Several are"
            " separated by commas.",
        ),
    ]
    queries: Annotated[
        list[str] | None,
        Argument(
            metavar="QUERY...",
            help="URLs as in lookup: URL, URL* or *.HOST. Default for a file or standard input: all lines.",
        ),
    ] = None
    output: Annotated[
        str | None,
        Option("--output", "-o", metavar="OUTPUT", help="Directory, s3 or hdfs URL to write to."),
    ] = None
    input: Annotated[
        str | None,
        Option(
            "--input",
            "-i",
            metavar="FILE",
            help="Read more queries from this file, one per line; - reads standard input.",
        ),
    ] = None
    archives: Annotated[
        str | None,
        Option(
            "--archives",
            metavar="LOCATION",
            help="Where the archives are: a directory, a URL prefix, or a path index. Default: those of the crawl,"
            " archives.tsv of the cluster, or the current directory.",
        ),
    ] = None
    keep_arc: Annotated[
        bool, Option("--keep-arc", help="Write ARC records to .arc.gz files. Default: convert them to WARC.")
    ] = False
    related: Annotated[
        bool,
        Option("--related", help="Also copy the request and metadata records beside each response."),
    ] = False
    originals: Annotated[
        bool, Option("--originals", help="Also copy the record that a revisit refers to.")
    ] = False
    size: Annotated[
        str, Option("--size", metavar="SIZE", help="Size limit of a file, such as 500M or 1G.")
    ] = "1G"
    rate: Annotated[
        float | None,
        Option("--rate", metavar="N", help="At most N requests per second. Default: no limit."),
    ] = None
    dry_run: Annotated[
        bool,
        Option(
            "--dry-run",
            help="Print the number of captures, archives, bytes and requests, without those for --related and"
            " --originals. No archive is read.",
        ),
    ] = False
    json: Annotated[bool, Option("--json", help="With --dry-run: print JSON.")] = False
    processes: Annotated[
        int,
        Option(
            "--processes",
            "-p",
            min=1,
            metavar="N",
            help="Number of processes; each sends one request at a time.",
        ),
    ] = 4
    quiet: Quiet = False

    def asked(self) -> Asked:
        """What is to be copied. Raises UsageError, InputError."""
        from cdxmill.commands.copying.plan import ask
        from cdxmill.search.query import Query

        if self.output is None and not self.dry_run:
            raise UsageError("give -o OUTPUT, or --dry-run")
        if self.json and not self.dry_run:
            raise UsageError("--json needs --dry-run")
        urls = list(self._urls())
        if self.input is not None and not urls:
            raise UsageError(f"{self.input}: has no queries")
        query = Query(
            match_type=self.match_type,
            first=self.first,
            last=self.last,
            filters=tuple(self.filters or ()),
            collapse=self.collapse,
            limit=self.limit,
        )
        return ask(self.source, self.archives, urls, query)

    def _urls(self) -> Iterator[str]:
        from cdxmill.cli.lookup import read_urls

        yield from self.queries or ()
        if self.input is not None:
            yield from read_urls(self.input)


@command
def copy(arguments: CopyArguments) -> int:
    """Copy captures to new archives, with an index.

    cdxmill looks up each QUERY in SOURCE and reads only the bytes of the records found. It writes them to .warc.gz
    files, with one .cdxj file each. Neighboring records are read in one request. Each record is checked: it must be
    that of its index line, and its payload must have the digest of the line.

    If the run is killed, run it again: it continues, and nothing is copied twice. Captures that OUTPUT has already are
    skipped, and its files are never changed. Captures that cannot be copied are listed in copy-failures.tsv.

    Examples:
        cdxmill copy cluster '*.example.com' --dry-run
        cdxmill copy -o mine cluster '*.example.com' --archives warcs
        cdxmill lookup cluster example.com | cdxmill copy -o mine --archives warcs -
    """
    from cdxmill.running.failures import Failures

    asked = arguments.asked()
    failures = Failures()
    if arguments.dry_run:
        _print_sizes(arguments, asked, failures)
    else:
        _copy(arguments, asked, failures)
    return FAILED if failures.count else OK


def _copy(arguments: CopyArguments, asked: Asked, failures: Failures) -> None:
    from cdxmill.commands.copying.copy import FAILURES, CopyOptions
    from cdxmill.commands.copying.copy import copy as copy_captures
    from cdxmill.running.quantities import count

    options = CopyOptions(
        processes=arguments.processes,
        keep_arc=arguments.keep_arc,
        related=arguments.related,
        originals=arguments.originals,
        most=_size(arguments.size),
        rate=arguments.rate,
        quiet=arguments.quiet,
    )
    output = arguments.output or ""
    summary = copy_captures(asked, output, options, failures)
    print_summary(f"{output}: {summary}", quiet=arguments.quiet)
    if failures.count:
        print_summary(
            f"{count(failures.count, 'failure')}, listed in {output}/{FAILURES}", quiet=arguments.quiet
        )


def _print_sizes(arguments: CopyArguments, asked: Asked, failures: Failures) -> None:
    from cdxmill.commands.copying.check import as_json, as_table, check

    sizes = check(asked, failures)
    with standard_output() as out:
        out.write((as_json(sizes) if arguments.json else as_table(sizes)).encode("utf-8", "surrogateescape"))
