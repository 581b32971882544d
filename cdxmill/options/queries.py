"""Options that choose captures, with the names of pywb's CDX server: those of `lookup`, `copy`, `get` and `prefix-index`."""

from collections.abc import Iterable
from typing import Any

from cdxmill.options.option import Excludes, Needs, Options, ReadBy, option

MATCH_TYPES = ("exact", "prefix", "host", "domain", "range")
OUTPUTS = ("cdxj", "json", "text", "cdx", "csv")
PAGE_SIZE = 10
"""Blocks on a page, as in pywb."""
_OF_URLS = ("url", "query", "queries", "input")
_PAGES = "show_num_pages"
_NOT_READ = (_PAGES, "estimate")
"""They count blocks, which are not read."""
_NOT_PRINTED = (_PAGES, "count", "estimate")


class CaptureFilters(Options):
    """Which captures are chosen."""

    match_type: str | None = option(
        "--match-type --matchType TYPE",
        "exact, prefix, host, domain or range. For range, URL is two URLs with a space between them: the first URL,"
        " and the URL to stop before. Default: exact, unless URL contains a *.",
        Needs(*_OF_URLS),
        default=None,
        choices=MATCH_TYPES,
    )
    from_ts: str | None = option(
        "--from TIME", "First timestamp, 1 to 14 digits, such as 2014.", Excludes(_PAGES), default=None
    )
    to: str | None = option(
        "--to TIME", "Last timestamp. 2014 includes all of that year.", Excludes(_PAGES), default=None
    )
    filter: str | Iterable[str] = option(
        "--filter FILTER",
        "FIELD:TEXT (the field contains the text), =FIELD:TEXT (equals it) or ~FIELD:REGEX (matches from its start)."
        " A ! in front negates the filter. May be repeated.",
        Excludes(*_NOT_READ),
        default=(),
    )


class Selection(CaptureFilters):
    """Which captures are chosen, of which the first ones in an order are taken."""

    collapse: str | None = option(
        "--collapse --collapseTime RULE",
        "Keep the first of consecutive captures. N: with the same status and the same first N digits of the"
        " timestamp. FIELD or FIELD:N: with the same field, or the same first N characters of it.",
        Excludes(*_NOT_READ),
        default=None,
    )
    limit: int | None = option(
        "--limit N", "At most N captures of each query.", Excludes(*_NOT_READ), default=None, min=1
    )
    sort: str = option(
        "--sort ORDER",
        "Order of captures: default, reverse (or newest) or closest.",
        Excludes(*_NOT_READ),
        default="default",
        choices=("default", "reverse", "newest", "closest"),
    )
    closest: str | None = option(
        "--closest TIME",
        "The captures closest to TIME (4 to 14 digits) come first.",
        Excludes("sort=reverse", "sort=newest", *_NOT_READ),
        default=None,
    )


class Question(Selection):
    """What `lookup` asks besides the URL."""

    resolve_revisits: bool = option(
        "--resolve-revisits --resolveRevisits",
        "Give revisits the mime and status of the original capture, and add its location in three fields, orig.*.",
        Excludes(*_NOT_READ),
        default=False,
    )
    page: int | None = option(
        "--page N", "Print page N only. The first page is 0.", Excludes(*_NOT_READ), default=None, min=0
    )
    page_size: int = option(
        "--page-size --pageSize N", "Blocks per page.", Needs("page", _PAGES), default=PAGE_SIZE, min=1
    )


FIELDS: Any = option(
    "--fl --fields NAMES",
    "Fields to print, comma-separated, such as url,status.",
    Excludes(*_NOT_PRINTED),
    ReadBy(lambda text: tuple(name.strip() for name in text.split(",")) if text else None),
    default=None,
)
NEWEST: Any = option(
    "--newest-crawls N",
    "Of the crawls that a name such as CC-MAIN-* stands for, only the N newest.",
    default=None,
    min=1,
)
SHARD_RULE: Any = option(
    "--shard-index-loc MATCH REPLACE",
    "Location of the shards: the directory of the index, with the regular expression MATCH replaced by REPLACE. The"
    " same as shard_index_loc in pywb.",
    default=None,
)


class Query(Question):
    """Everything that is asked besides the URL, and how it is printed.

    `page` None means all pages, `limit` None all lines, `fields` None all fields. `output` None prints lines as
    they are in the cluster.
    """

    fields: tuple[str, ...] | None = FIELDS
    output: str | None = option(
        "--output FORMAT",
        "Output format: cdxj, json, text, cdx or csv. Default: the lines as they are in the cluster.",
        Excludes(*_NOT_PRINTED),
        default=None,
        choices=OUTPUTS,
    )
    shard_index_loc: tuple[str, str] | None = SHARD_RULE
