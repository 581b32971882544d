"""The options that choose captures: those of `lookup` and `copy`, with the names of pywb's CDX server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cdxmill.cli.command import Option


@dataclass(frozen=True, kw_only=True)
class QueryArguments:
    """Which captures are chosen."""

    match_type: Annotated[
        str | None,
        Option(
            "--match-type",
            "--matchType",
            metavar="TYPE",
            help="exact, prefix, host, domain or range. For range, URL is two URLs with a space between them: the"
            " first URL, and the URL to stop before. Default: exact, unless URL contains a *.",
        ),
    ] = None
    first: Annotated[
        str | None,
        Option("--from", metavar="TIME", help="First timestamp, 1 to 14 digits, such as 2014."),
    ] = None
    last: Annotated[
        str | None,
        Option("--to", metavar="TIME", help="Last timestamp. 2014 includes all of that year."),
    ] = None
    filters: Annotated[
        list[str] | None,
        Option(
            "--filter",
            metavar="FILTER",
            help="FIELD:TEXT (the field contains the text), =FIELD:TEXT (equals it) or ~FIELD:REGEX (matches from"
            " its start). A ! in front negates the filter. May be repeated.",
        ),
    ] = None
    collapse: Annotated[
        str | None,
        Option(
            "--collapse",
            "--collapseTime",
            metavar="RULE",
            help="Keep the first of consecutive captures. N: with the same status and the same first N digits of"
            " the timestamp. FIELD or FIELD:N: with the same field, or the same first N characters of it.",
        ),
    ] = None
    limit: Annotated[
        int | None, Option("--limit", min=1, metavar="N", help="At most N captures of each query.")
    ] = None


def field_names(text: str | None) -> tuple[str, ...] | None:
    """The names of --fl, which are separated by commas; None if the option was not given."""
    return tuple(name.strip() for name in text.split(",")) if text else None
