"""lookup: a query -> the lines of a cluster, as pywb's CDX server would answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from cdxmill.cluster.reader import open_cluster
from cdxmill.errors import InputError
from cdxmill.search.many import Answer, answer_many
from cdxmill.search.query import OpenCluster, PreparedQuery, Query
from cdxmill.storage.choose import PathOrUrl

Skip = Callable[[InputError], None]


def lookup(
    cluster: PathOrUrl,
    url: str,
    query: Query = Query(),  # noqa: B008 - it is frozen
    skip: Skip | None = None,
) -> Iterator[bytes]:
    """The lines of `url` in a cluster, without line ends.

    Raises UsageError if the query is invalid or no cluster exists there. Raises InputError if the cluster cannot
    be read or is corrupt. The answer is never silently incomplete. If a line cannot be parsed, `skip` is called and
    the line is skipped; without `skip`, InputError is raised.
    """
    prepared = PreparedQuery(query, skip)
    keys = prepared.keys(url)
    with open_cluster(cluster, query.shard_rule) as reader:
        for lines in prepared.answer(OpenCluster.of(reader), keys):
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
    with open_cluster(cluster, query.shard_rule) as reader:
        yield from answer_many(OpenCluster.of(reader), prepared, urls)
