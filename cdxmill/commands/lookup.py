"""lookup: a query -> the lines of a cluster or CDX file, as pywb's CDX server would answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from cdxmill.errors import InputError
from cdxmill.search.many import Answer, answer_many
from cdxmill.search.open import open_searched
from cdxmill.search.query import PreparedQuery, Query
from cdxmill.storage.choose import PathOrUrl

Skip = Callable[[InputError], None]


def lookup(
    cluster: PathOrUrl,
    url: str,
    query: Query = Query(),  # noqa: B008 - it is frozen
    skip: Skip | None = None,
) -> Iterator[bytes]:
    """The lines of `url` in a cluster or CDX file, without line ends.

    Raises UsageError if the query is invalid or no cluster exists there. Raises InputError if the cluster cannot
    be read or is corrupt. The answer is never silently incomplete. If a line cannot be parsed, `skip` is called and
    the line is skipped; without `skip`, InputError is raised.
    """
    prepared = PreparedQuery(query, skip)
    keys = prepared.keys(url)
    with open_searched(cluster, query.shard_rule, keys) as opened:
        for lines in prepared.answer(opened, keys):
            yield from lines


def lookup_many(
    cluster: PathOrUrl,
    urls: Iterable[str],
    query: Query = Query(),  # noqa: B008 - it is frozen
    skip: Skip | None = None,
) -> Iterator[Answer]:
    """The answers for `urls`, in their order. An invalid URL gets an error in place of lines.

    Raises UsageError and InputError like `lookup`.
    """
    prepared = PreparedQuery(query, skip)
    with open_searched(cluster, query.shard_rule) as opened:
        yield from answer_many(opened, prepared, urls)
