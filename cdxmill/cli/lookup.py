"""The command `lookup`: its options, and how its answers are printed. The work is in commands/.

Modules of commands are imported when they are needed, so that the command starts quickly.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from cdxmill.errors import UsageError

if TYPE_CHECKING:
    from cdxmill.search.query import Query


ShardRule = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--shard-index-loc",
        metavar="MATCH REPLACE",
        help="Where the shards are: the index's folder with MATCH replaced, as pywb's shard_index_loc.",
    ),
]


@dataclass(frozen=True)
class LookupOptions:
    """What stands on the command line of `lookup`."""

    cluster: Annotated[
        str,
        typer.Argument(
            metavar="CLUSTER", help="Folder or URL (http(s), s3, hdfs) of a ZipNum cluster, or its .idx file."
        ),
    ]
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="A URL; URL* for all that start so, *.HOST for a domain."),
    ] = None
    input: Annotated[
        str | None,
        typer.Option("--input", "-i", metavar="FILE", help="Many URLs, one a line; - is standard input."),
    ] = None
    match_type: Annotated[
        str | None,
        typer.Option(
            "--match-type",
            "--matchType",
            metavar="TYPE",
            help="exact, prefix, host, domain, or range (URL is two URLs with a space between: from the first up to,"
            " and without, the second). Default: exact, or what a * in URL says.",
        ),
    ] = None
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="First timestamp, 1 to 14 digits, such as 2014."),
    ] = None
    last: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Last timestamp; 2014 is all of that year.")
    ] = None
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="FILTER",
            help="FIELD:TEXT (contains), =FIELD:TEXT (is), ~FIELD:REGEX (matches from its start); ! before it: not."
            " May be repeated.",
        ),
    ] = None
    collapse: Annotated[
        str | None,
        typer.Option(
            "--collapse",
            "--collapseTime",
            metavar="N",
            help="Of neighbours whose first N digits of the time and whose status are the same, the first."
            " FIELD or FIELD:N: whose field, or its first N characters, is the same.",
        ),
    ] = None
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="So many lines at most.")
    ] = None
    sort: Annotated[
        str, typer.Option("--sort", metavar="ORDER", help="default, reverse (also: newest), or closest.")
    ] = "default"
    closest: Annotated[
        str | None, typer.Option("--closest", metavar="TIME", help="The captures nearest to a time first.")
    ] = None
    resolve_revisits: Annotated[
        bool,
        typer.Option(
            "--resolve-revisits",
            "--resolveRevisits",
            help="Revisits get mime and status of their originals; three orig.* fields say where these are.",
        ),
    ] = False
    fields: Annotated[
        str | None,
        typer.Option("--fl", "--fields", metavar="NAMES", help="Fields to print, such as url,status."),
    ] = None
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="FORMAT", help="cdxj, json, text, cdx, csv. Default: the lines as they stand."
        ),
    ] = None
    page: Annotated[
        int | None, typer.Option("--page", min=0, metavar="N", help="Only this page, from 0.")
    ] = None
    page_size: Annotated[
        int, typer.Option("--page-size", "--pageSize", min=1, metavar="N", help="Blocks on a page.")
    ] = 10
    show_num_pages: Annotated[
        bool,
        typer.Option("--show-num-pages", "--showNumPages", help="Print how many pages there are, as pywb."),
    ] = False
    count: Annotated[bool, typer.Option("--count", help="Print how many lines the answer has.")] = False
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate", help="Print about how many lines there are, with bounds; no block is read."
        ),
    ] = False
    shard_index_loc: ShardRule = None

    def query(self) -> Query:
        """What is asked besides the URL. Raises UsageError where options exclude each other."""
        from cdxmill.search.query import Page, Query

        if (self.url is None) == (self.input is None):
            raise UsageError("name a URL, or a file of URLs with --input")
        if self.show_num_pages + self.count + self.estimate > 1:
            raise UsageError("--show-num-pages, --count and --estimate exclude each other")
        if self.estimate and (self.filters or self.collapse or self.limit or self.page is not None):
            raise UsageError(
                "--estimate knows no lines: it goes without --filter, --collapse, --limit and --page"
            )
        return Query(
            self.match_type,
            self.first,
            self.last,
            tuple(self.filters or ()),
            self.collapse,
            self.resolve_revisits,
            self.sort,
            self.closest,
            self.limit,
            None if self.page is None else Page(self.page, self.page_size),
            tuple(self.fields.split(",")) if self.fields else None,
            self.output,
            self.shard_index_loc,
        )


def takes_options(run: Callable[[LookupOptions], int]) -> Callable[..., int]:
    """`run` as typer wants a command: with a parameter for each option."""

    def command(**given: object) -> int:
        return run(LookupOptions(**given))  # type: ignore[arg-type]

    command.__signature__ = inspect.signature(LookupOptions, eval_str=True)  # type: ignore[attr-defined]
    command.__annotations__ = inspect.get_annotations(LookupOptions, eval_str=True)
    command.__doc__ = run.__doc__
    command.__name__ = run.__name__
    return command


def print_answers(options: LookupOptions, out: BinaryIO, tell: Callable[[str], None]) -> bool:
    """Write the answers to `out`, tell of URLs that cannot be asked; whether there were none of these."""
    query = options.query()
    if options.show_num_pages or options.count or options.estimate:
        return _print_sizes(options, query, out, tell)
    from cdxmill.search.query import PreparedQuery

    head = PreparedQuery(query).header
    if head is not None:
        out.write(head + b"\n")
    if options.url is not None:
        from cdxmill.commands.lookup import lookup

        for line in lookup(options.cluster, options.url, query):
            out.write(line + b"\n")
        return True
    from cdxmill.commands.lookup import lookup_many
    from cdxmill.stages.lines.line_lists import text_of

    is_well = True
    for answer in lookup_many(options.cluster, _urls(options), query):
        if answer.error is not None:
            tell(str(answer.error))
            is_well = False
        for lines in answer.lists:
            out.write(text_of(lines))
    return is_well


def _print_sizes(options: LookupOptions, query: Query, out: BinaryIO, tell: Callable[[str], None]) -> bool:
    """A size for each URL; behind it, where there are many, a tab and the URL."""
    import json

    from cdxmill.cluster.reader import open_cluster
    from cdxmill.search.query import OpenCluster, PreparedQuery
    from cdxmill.search.size import count_pages, estimate

    prepared = PreparedQuery(query)
    is_well = True
    with open_cluster(options.cluster, query.shard_rule) as reader:
        opened = OpenCluster.of(reader)
        for url in _urls(options):
            try:
                keys = prepared.keys(url)
            except UsageError as error:
                if options.input is None:
                    raise
                tell(str(error))
                is_well = False
                continue
            if options.show_num_pages:
                size = json.dumps(count_pages(opened, keys, options.page_size)._asdict())
            elif options.estimate:
                size = json.dumps(estimate(opened, prepared, keys)._asdict())
            else:
                size = str(prepared.count(opened, keys))
            shown = size if options.input is None else f"{size}\t{url}"
            out.write(f"{shown}\n".encode("utf-8", "surrogateescape"))
    return is_well


def _urls(options: LookupOptions) -> Iterable[str]:
    return [options.url] if options.url is not None else _read_urls(options.input or "-")


def _read_urls(place: str) -> Iterator[str]:
    """The lines of a file, of a URL, or of standard input; empty ones are left out."""
    from cdxmill.stages.lines.line_lists import split_lines
    from cdxmill.storage.choose import open_ranges, pieces

    if place == "-":
        yield from _texts(sys.stdin.buffer)
        return
    with open_ranges(place) as read_at:
        for lines in split_lines(pieces(read_at)):
            yield from _texts(lines)


def _texts(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        text = line.strip().decode("utf-8", "surrogateescape")
        if text:
            yield text
