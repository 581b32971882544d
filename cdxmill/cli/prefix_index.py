"""`cdxmill prefix-index build` and `search`: their options, their help and the calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import click

from cdxmill.cli.arguments import Quiet, Replace
from cdxmill.cli.command import Argument, Option, command
from cdxmill.cli.output import print_error, print_summary, standard_output
from cdxmill.cli.query_arguments import field_names
from cdxmill.errors import FAILED, OK, UsageError

if TYPE_CHECKING:
    from cdxmill.search.tree_query import TreeQuery


@dataclass(frozen=True, kw_only=True)
class PrefixBuildArguments:
    """The command line of `prefix-index build`."""

    inputs: Annotated[
        list[str],
        Argument(
            metavar="INPUT...",
            help="Sorted CDX or CDXJ files, clusters, or files of keys and pointers; - reads standard input.",
        ),
    ]
    output: Annotated[
        str,
        Option("--output", "-o", metavar="FILE", help="File to write: path, s3 or hdfs URL."),
    ]
    block_size: Annotated[int, Option("--block-size", min=1, metavar="N", help="Bytes of a block.")] = 65536
    layout: Annotated[
        str | None,
        Option(
            metavar="LAYOUT",
            help="Fields of a pointer: capture, classic, or NAME:TYPE,NAME:TYPE... with the types u8, u16, u32 and"
            " u64. Default: capture for CDX lines, classic for pointers.",
        ),
    ] = None
    replace: Replace = False
    quiet: Quiet = False


@command
def build(arguments: PrefixBuildArguments) -> int:
    """Build a prefix B-tree from sorted lines.

    INPUT is a sorted CDX or CDXJ file, a ZipNum cluster, or a file with a line for each key: key, tab, pointer. A
    pointer is a number for each field of the layout, or all its bytes in hexadecimal digits. Several inputs are
    merged. For captures, FILE.archives.gz is written beside FILE; it has the names of the archives. For other
    pointers, FILE.layout is written; it has the layout.

    If an input is corrupt or not sorted, or a line cannot be stored, nothing is written.

    Examples:
        cdxmill prefix-index build -o all.tree all.cdxj
        cdxmill prefix-index build -o cluster.tree cluster
    """
    from cdxmill.commands.prefix_index import TreeOptions, build_tree
    from cdxmill.running.failures import Failures

    failures = Failures()
    options = TreeOptions(
        layout=arguments.layout,
        block_size=arguments.block_size,
        replace=arguments.replace,
        quiet=arguments.quiet,
    )
    summary = build_tree(arguments.inputs, arguments.output, options, failures)
    print_summary(f"{arguments.output}: {summary}", quiet=arguments.quiet)
    return FAILED if failures.count else OK


@dataclass(frozen=True, kw_only=True)
class PrefixSearchArguments:
    """The command line of `prefix-index search`."""

    file: Annotated[str, Argument(metavar="FILE", help="Prefix B-tree: path or URL (http, https, s3, hdfs).")]
    query: Annotated[
        str | None,
        Argument(
            metavar="QUERY",
            help="URL, URL* for all URLs that start with it, or *.HOST for a domain with its subdomains or a"
            " top-level domain.",
        ),
    ] = None
    input: Annotated[
        str | None,
        Option(
            "--input",
            "-i",
            metavar="FILE",
            help="Search for the queries in this file, one per line; - reads standard input.",
        ),
    ] = None
    match_type: Annotated[
        str | None,
        Option(
            "--match-type",
            "--matchType",
            metavar="TYPE",
            help="exact, prefix, host, domain or range, as in cdxmill lookup. Default: exact, unless QUERY has a *.",
        ),
    ] = None
    first: Annotated[
        str | None, Option("--from", metavar="TIME", help="First timestamp, 1 to 14 digits, such as 2014.")
    ] = None
    last: Annotated[
        str | None, Option("--to", metavar="TIME", help="Last timestamp. 2014 includes all of that year.")
    ] = None
    filters: Annotated[
        list[str] | None,
        Option(
            "--filter", metavar="FILTER", help="As in cdxmill lookup, such as =status:200. May be repeated."
        ),
    ] = None
    limit: Annotated[int | None, Option("--limit", min=1, metavar="N", help="Print at most N lines.")] = None
    resume: Annotated[
        str | None,
        Option(
            "--resume",
            metavar="KEY",
            help="Start at this key, such as the first field of the last line that was printed.",
        ),
    ] = None
    fields: Annotated[
        str | None,
        Option("--fl", "--fields", metavar="NAMES", help="Fields to print, comma-separated."),
    ] = None
    output: Annotated[
        str | None,
        Option("--output", metavar="FORMAT", help="Output format: cdxj, json, text, cdx or csv."),
    ] = None
    layout: Annotated[
        str | None,
        Option(
            metavar="LAYOUT",
            help="Fields of a pointer, as in prefix-index build. Default: those in FILE.layout, else capture.",
        ),
    ] = None
    keys: Annotated[
        str | None,
        Option(
            "--keys",
            metavar="TYPE",
            help="How keys are written: surt (com,example)/a), reversed (com.example/a:http) or plain. Default: that"
            " of the layout.",
        ),
    ] = None

    def tree_query(self) -> TreeQuery:
        """Everything that is asked besides the URL. Raises UsageError."""
        from cdxmill.search.prefix_index import stored_layout
        from cdxmill.search.tree_query import TreeQuery

        if (self.query is None) == (self.input is None):
            raise UsageError("give either a QUERY or --input FILE")
        return TreeQuery(
            match_type=self.match_type,
            first=self.first,
            last=self.last,
            filters=tuple(self.filters or ()),
            limit=self.limit,
            resume=self.resume,
            fields=field_names(self.fields),
            output=self.output,
            layout=stored_layout(self.file) if self.layout is None else self.layout,
            keys=self.keys,
        )

    def queries(self) -> Iterable[str]:
        """The query, or those of --input."""
        from cdxmill.cli.lookup import read_urls

        return [self.query] if self.query is not None else read_urls(self.input or "-")


@command
def search(arguments: PrefixSearchArguments) -> int:
    """Print the items of a query in a prefix B-tree.

    QUERY is a URL, prefix or domain, as in cdxmill lookup. FILE is read in small parts: at most three reads lead to the
    first item. Captures are printed as CDXJ lines with filename, offset and length, in the order of their keys;
    other items as key, tab, values. If nothing is found, nothing is printed and the exit status is 0.

    Examples:
        cdxmill prefix-index search all.tree http://www.iana.org/
        cdxmill prefix-index search all.tree '*.org' --filter =status:200 --limit 9
    """
    from cdxmill.search.tree_query import PreparedTreeQuery, search_tree

    prepared = PreparedTreeQuery(arguments.tree_query())
    errors: list[UsageError] = []

    def report(error: UsageError) -> None:
        errors.append(error)
        print_error(str(error))

    many = arguments.input is not None
    with standard_output() as out:
        if prepared.header is not None:
            out.write(prepared.header + b"\n")
        for lines in search_tree(arguments.file, arguments.queries(), prepared, report if many else None):
            out.write(b"\n".join([*lines, b""]))
    return FAILED if errors else OK


prefix_index = click.Group(
    "prefix-index",
    help="Build and search a prefix B-tree, an index in one file.",
    commands={"build": build, "search": search},
    no_args_is_help=True,
)
