"""Options that choose captures, with the names of pywb's CDX server: those of `lookup`, `copy`, `get` and `prefix-index`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from cdxmill.options.option import Excludes, Needs, Option, ShardRule

MATCH_TYPES = ("exact", "prefix", "host", "domain", "range")
OUTPUTS = ("cdxj", "json", "text", "cdx", "csv")
PAGE_SIZE = 10
"""Blocks on a page, as in pywb."""
_OF_URLS = ("url", "query", "queries", "input")
_PAGES = "show_num_pages"
_NOT_READ = (_PAGES, "estimate")
"""They count blocks, which are not read."""
_NOT_PRINTED = (_PAGES, "count", "estimate")


@dataclass(kw_only=True, repr=False, eq=False)
class CaptureFilters:
    """Which captures are chosen."""

    match_type: Annotated[
        str | None,
        Option(
            "--match-type",
            "--matchType",
            metavar="TYPE",
            choices=MATCH_TYPES,
            help="exact, prefix, host, domain or range. For range, URL is two URLs with a space between them: the"
            " first URL, and the URL to stop before. Default: exact, unless URL contains a *.",
        ),
        Needs(*_OF_URLS),
    ] = None
    from_ts: Annotated[
        str | None,
        Option("--from", metavar="TIME", help="First timestamp, 1 to 14 digits, such as 2014."),
        Excludes(_PAGES),
    ] = None
    to: Annotated[
        str | None,
        Option(metavar="TIME", help="Last timestamp. 2014 includes all of that year."),
        Excludes(_PAGES),
    ] = None
    filter: Annotated[
        str | Iterable[str],
        Option(
            metavar="FILTER",
            help="FIELD:TEXT (the field contains the text), =FIELD:TEXT (equals it) or ~FIELD:REGEX (matches from"
            " its start). A ! in front negates the filter. May be repeated.",
        ),
        Excludes(*_NOT_READ),
    ] = ()

    def __post_init__(self) -> None:
        self.filter = self.filters  # what can be read only once

    @property
    def filters(self) -> tuple[str, ...]:
        """All of `filter`."""
        return (self.filter,) if isinstance(self.filter, str) else tuple(self.filter)


@dataclass(kw_only=True, repr=False, eq=False)
class Selection(CaptureFilters):
    """Which captures are chosen, of which the first ones are taken."""

    collapse: Annotated[
        str | None,
        Option(
            "--collapse",
            "--collapseTime",
            metavar="RULE",
            help="Keep the first of consecutive captures. N: with the same status and the same first N digits of"
            " the timestamp. FIELD or FIELD:N: with the same field, or the same first N characters of it.",
        ),
        Excludes(*_NOT_READ),
    ] = None
    limit: Annotated[
        int | None, Option(min=1, metavar="N", help="At most N captures of each query."), Excludes(*_NOT_READ)
    ] = None


@dataclass(kw_only=True, repr=False, eq=False)
class Question(Selection):
    """What `lookup` asks besides the URL."""

    sort: Annotated[
        str,
        Option(
            metavar="ORDER",
            choices=("default", "reverse", "newest", "closest"),
            help="Order of lines: default, reverse (or newest) or closest.",
        ),
        Excludes(*_NOT_READ),
    ] = "default"
    closest: Annotated[
        str | None,
        Option(metavar="TIME", help="Print the captures closest to TIME (4 to 14 digits) first."),
        Excludes("sort=reverse", "sort=newest", *_NOT_READ),
    ] = None
    resolve_revisits: Annotated[
        bool,
        Option(
            "--resolve-revisits",
            "--resolveRevisits",
            help="Give revisits the mime and status of the original capture, and add its location in three"
            " fields, orig.*.",
        ),
        Excludes(*_NOT_READ),
    ] = False
    page: Annotated[
        int | None,
        Option(min=0, metavar="N", help="Print page N only. The first page is 0."),
        Excludes(*_NOT_READ),
    ] = None
    page_size: Annotated[
        int,
        Option("--page-size", "--pageSize", min=1, metavar="N", help="Blocks per page."),
        Needs("page", _PAGES),
    ] = PAGE_SIZE


Fields = Annotated[
    tuple[str, ...] | None,
    Option(
        "--fl",
        "--fields",
        metavar="NAMES",
        help="Fields to print, comma-separated, such as url,status.",
        parser=lambda text: tuple(name.strip() for name in text.split(",")) if text else None,
    ),
    Excludes(*_NOT_PRINTED),
]


@dataclass(kw_only=True, repr=False, eq=False)
class Query(Question):
    """Everything that is asked besides the URL, and how it is printed.

    `page` None means all pages, `limit` None all lines, `fields` None all fields. `output` None prints lines as
    they are in the cluster.
    """

    fields: Fields = None
    output: Annotated[
        str | None,
        Option(
            metavar="FORMAT",
            choices=OUTPUTS,
            help="Output format: cdxj, json, text, cdx or csv. Default: the lines as they are in the cluster.",
        ),
        Excludes(*_NOT_PRINTED),
    ] = None
    shard_index_loc: ShardRule = None


def query_of(asked: Selection) -> Query:
    """The question among other arguments."""
    names = (Question if isinstance(asked, Question) else Selection).__dataclass_fields__
    return Query(**{name: getattr(asked, name) for name in names})
