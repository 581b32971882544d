"""lookup: a query -> the lines of a cluster or CDX file, as pywb's CDX server would answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.capture_fields import Format, line_format
from cdxmill.options.queries import Query
from cdxmill.search.many import Answer, Lists, answer_many
from cdxmill.search.open import open_searched
from cdxmill.search.query import PreparedQuery
from cdxmill.storage.location import PathOrUrl

if TYPE_CHECKING:
    from cdxmill.search.sources import Source

Skip = Callable[[InputError], None]


def lookup(
    cluster: PathOrUrl,
    url: str,
    query: Query = Query(),  # noqa: B008 - nobody changes it
    skip: Skip | None = None,
) -> Iterator[bytes]:
    """The lines of `url` in a cluster or CDX file, without line ends.

    Raises UsageError if the query is invalid or no cluster exists there. Raises InputError if the cluster cannot
    be read or is corrupt. The answer is never silently incomplete. If a line cannot be parsed, `skip` is called and
    the line is skipped; without `skip`, InputError is raised.
    """
    prepared = PreparedQuery(query, skip)
    keys = prepared.keys(url)
    with open_searched(cluster, query.shard_index_loc, keys) as opened:
        for lines in prepared.answer(opened, keys):
            yield from lines


def lookup_many(
    cluster: PathOrUrl,
    urls: Iterable[str],
    query: Query = Query(),  # noqa: B008 - nobody changes it
    skip: Skip | None = None,
) -> Iterator[Answer]:
    """The answers for `urls`, in their order. An invalid URL gets an error in place of lines.

    Raises UsageError and InputError like `lookup`.
    """
    prepared = PreparedQuery(query, skip)
    with open_searched(cluster, query.shard_index_loc) as opened:
        yield from answer_many(opened, prepared, urls)


def lookup_in_sources(
    sources: Sequence[Source], urls: Sequence[str], query: Query, skip: Skip | None = None
) -> Iterator[Answer]:
    """The answers for `urls` in several clusters, crawls and files at once, merged. Lines of a crawl say its name.

    Raises UsageError and InputError like `lookup`.
    """
    from cdxmill.search.sources import answers_of  # slow to import, and mostly there is one cluster

    prepared = PreparedQuery(replace(query, output=None, fields=None), skip)
    if query.page is not None:
        raise UsageError("--page needs a single cluster; name its directory or URL")
    checked = PreparedQuery(query)
    make = line_format(query.output, checked.fields, query.resolve_revisits)
    for answer in answers_of(sources, prepared, urls):
        yield answer if make is None else answer._replace(lists=_made(answer.lists, make))


def _made(lists: Lists, make: Format) -> Iterator[list[bytes]]:
    for lines in lists:
        yield [make(line) for line in lines]
