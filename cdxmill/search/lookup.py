"""URLs are looked up in what a user named: a cluster, or one CDX file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cdxmill.cluster.find import Rule, find_index, is_crawl, is_index_file
from cdxmill.cluster.reader import open_cluster
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.cdx_lines import CDX_NAME
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import Query
from cdxmill.search.opened import OpenCluster
from cdxmill.search.query import PreparedQuery
from cdxmill.search.servers import is_server
from cdxmill.storage.location import Location, PathOrUrl, locate

if TYPE_CHECKING:
    from cdxmill.search.many import Answer

Skip = Callable[[InputError], None]
STDIN = "-"
_TREE = ".tree"


def lookup(
    cluster: PathOrUrl,
    url: str,
    query: Query = Query(),  # noqa: B008 - nobody changes it
    skip: Skip | None = None,
) -> Iterator[bytes]:
    """The lines of `url` in a cluster or CDX file, without line ends, as pywb's CDX server would answer it.

    Raises UsageError if the query is invalid or no cluster exists there. Raises InputError if the cluster cannot
    be read or is corrupt. The answer is never silently incomplete. If a line cannot be parsed, or a block is corrupt, `skip` is called and
    it is skipped; without `skip`, InputError is raised.
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
    from cdxmill.search.many import answer_many

    prepared = PreparedQuery(query, skip)
    with open_searched(cluster, query.shard_index_loc) as opened:
        yield from answer_many(opened, prepared, urls)


@contextmanager
def open_searched(
    path: PathOrUrl, rule: Rule | None = None, keys: KeyRange | None = None
) -> Iterator[OpenCluster]:
    """Open the cluster or CDX file at a path or URL. If all questions are about the range `keys`, give it.

    Raises UsageError if there is no cluster, InputError if it cannot be read or is corrupt, also inside the `with`.
    """
    place = locate(path)
    if not is_cdx_file(place):
        with open_cluster(place, rule) as reader:
            yield OpenCluster.of(reader)
        return
    if rule is not None:
        raise UsageError(f"{path}: --shard-index-loc needs a cluster, and this is a CDX file")
    from cdxmill.search.cdx_file import open_cdx_file  # most questions are about clusters

    with open_cdx_file(place, keys) as file:
        yield OpenCluster.of(file)


def is_cdx_file(place: Location) -> bool:
    """Whether it is a CDX file and not a cluster: by the ending of a URL; for a path or -, if it is no directory.

    Raises InputError if the storage gives no answer.
    """
    found = None if place.is_remote else place.status()
    if found is None:
        return place.text == STDIN or CDX_NAME.search(place.text) is not None
    return not found.is_directory and not is_index_file(place)


def is_prefix_index(path: str) -> bool:
    """Whether a path or URL names a prefix B-tree: it ends in .tree, or it is a local file with the header of one."""
    place = locate(path)
    if place.is_remote:
        return path.endswith(_TREE)
    if not Path(place.local).is_file():
        return path.endswith(_TREE) and not place.exists()
    return path.endswith(_TREE) or _has_tree_header(place)


def _has_tree_header(place: Location) -> bool:
    # slow to import, and most searches are in clusters
    from cdxmill.formats.tree.tree_header import OLD_HEADER, is_tree
    from cdxmill.storage.reading import first_bytes

    return is_tree(first_bytes(place, OLD_HEADER), place.size())


def is_one_cluster(text: str) -> bool:
    """Whether `text` is the path or URL of one cluster or CDX file: no name of a crawl, not several, no server, not -."""
    is_other = is_named_crawl(text) or text == STDIN or is_server(text) or is_prefix_index(text)
    return names_in(text) == [text] and not is_other


def names_in(text: str) -> list[str]:
    """The names of what is searched: `text` itself if it exists, else its parts between commas."""
    place = locate(text)
    is_one = not place.is_remote and place.exists()
    return [text] if is_one else [name.strip() for name in text.split(",") if name.strip()]


@contextmanager
def in_order(source: str, urls: Iterable[str | None]) -> Iterator[None]:
    """Raise UsageError in place of another error if a URL is what can be searched, and the `source` is not."""
    try:
        yield
    except (UsageError, InputError):
        other = next((url for url in urls if url and _is_source(url)), None)
        if other is None or _is_source(source):
            raise
        raise UsageError(f"{source}: is no index, but {other} is; give {other} first, then the URL") from None


def _is_source(text: str) -> bool:
    """Whether a text names what can be searched, as far as that is known without a request.

    A page has an http URL, too: of these, only an ending shows that it is an index.
    """
    place = locate(text)
    if place.is_remote:
        has_ending = CDX_NAME.search(text) or is_index_file(place) or is_server(text) or is_prefix_index(text)
        return place.scheme not in ("http", "https") or bool(has_ending)
    try:
        return is_named_crawl(text) or is_prefix_index(text) or is_cdx_file(place) or bool(find_index(place))
    except (UsageError, InputError):
        return False


def is_named_crawl(name: str) -> bool:
    """Whether it is the name of a crawl, and no path of that name exists."""
    return is_crawl(name) and not locate(name).exists()
