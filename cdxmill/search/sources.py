"""What captures are searched in: clusters, prefix B-trees, files with CDX lines, and standard input, one or several at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cdxmill.cluster.archive_index import ArchivePlaces, archives_of
from cdxmill.cluster.find import Rule, archives_of_crawls, crawls_like, find_index, index_of_crawl, is_pattern
from cdxmill.errors import AbsentError, RefusedError, UsageError
from cdxmill.formats.clusters.zipnum import INDEX
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.inputs.pipes import STDIN, is_pipe
from cdxmill.search.lookup import Skip, is_cdx_file, is_named_crawl, is_prefix_index, names_in, open_searched
from cdxmill.search.many import Answer, answer_many, answer_urls
from cdxmill.search.opened import OpenCluster
from cdxmill.search.query import PreparedQuery, stored_near
from cdxmill.search.servers import SearchedServer, is_server
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import locate

if TYPE_CHECKING:
    from cdxmill.search.prefix_index import OpenTree


class LineSource(Protocol):
    """An open source of index lines."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers for `urls`, in their order; their lines are sorted. Raises InputError, UsageError."""

    def fields(self, keys: KeyRange) -> Iterable[str]:
        """Fields that its lines have beside the usual ones."""


class Source(NamedTuple):
    """What the user named, the path or URL of its cluster or file, and where the archives of its lines are.

    `crawl` is its name if it is a crawl that was given by name; else "". `is_listed` says that the user gave a pattern,
    and the list of crawls this name.
    """

    name: str
    places: ArchivePlaces
    crawl: str = ""
    is_listed: bool = False

    @property
    def cluster(self) -> str:
        """The path or URL of the cluster."""
        return index_of_crawl(self.crawl) if self.crawl else self.name

    @property
    def has_lines(self) -> bool:
        """Whether it is a file with lines, or standard input, and not a cluster."""
        is_file = self.is_pipe or (is_cdx_file(locate(self.name)) and not self.is_tree)
        return not self.crawl and is_file

    @property
    def is_pipe(self) -> bool:
        """Whether it is standard input or another pipe, which is read once."""
        return not self.crawl and is_pipe(self.name)

    @property
    def is_tree(self) -> bool:
        """Whether it is a prefix B-tree."""
        return not self.crawl and is_prefix_index(self.name)

    @property
    def is_server(self) -> bool:
        """Whether it is a CDX server."""
        return not self.crawl and is_server(self.name)


def find_sources(text: str, archives: str | None, newest: int | None = None) -> list[Source]:
    """The sources that `text` names, separated by commas; of a pattern of crawls the `newest`. Raises UsageError, InputError."""
    names = names_in(text)
    if not names:
        raise UsageError("no source given; name a cluster, a crawl, a .cdxj file or -")
    patterns = {name for name in names if is_pattern(name) and is_named_crawl(name)}
    if newest is not None and not patterns:
        raise UsageError("--newest-crawls needs names of crawls, such as 'CC-MAIN-*'")
    found: dict[str, Source] = {}
    for name in names:
        if name in patterns:
            for one in crawls_like(name, newest):
                found.setdefault(one.name, _crawl(one.name, archives)._replace(is_listed=True))
        else:
            found[name] = _crawl(name, archives) if is_named_crawl(name) else _source(name, archives)
    return list(found.values())


def _crawl(name: str, archives: str | None) -> Source:
    return Source(name, ArchivePlaces(archives or archives_of_crawls()), name)


def check_read_once(sources: str, queries: str) -> None:
    """Raise UsageError if a pipe with queries is a source, too."""
    if queries in names_in(sources) and is_pipe(queries):
        raise UsageError(f"{queries}: was given twice, but it can be read only once")


def _source(name: str, archives: str | None) -> Source:
    place = locate(name)
    if name == STDIN or is_server(name) or is_prefix_index(name):
        return Source(name, ArchivePlaces(archives))
    if is_cdx_file(place):
        if not place.exists():
            raise UsageError(f"{name}: does not exist; name a cluster, a .cdxj file or -")
        return Source(name, ArchivePlaces(archives))
    find_index(place)  # raises if there is none
    return Source(name, archives_of(place, archives))


def state_of(source: Source) -> Entry | None:
    """The size and time of a local file or cluster index; None if they are not known."""
    place = locate(source.cluster)
    if source.is_pipe or place.is_remote:
        return None
    return (place / INDEX).status() or place.status()


@contextmanager
def open_source(source: Source, rule: Rule | None = None) -> Iterator[LineSource]:
    """Open a source. Raises UsageError and InputError as `open_cluster`, also inside the `with`."""
    with ExitStack() as files:
        if rule is not None and (source.is_tree or source.is_server):
            raise UsageError(f"{source.name}: --shard-index-loc needs a cluster, and this is none")
        if source.is_server:
            yield SearchedServer(source.name)
        elif source.is_tree:
            from cdxmill.search.prefix_index import open_prefix_index  # most sources are clusters

            yield SearchedTree(files.enter_context(open_prefix_index(source.name)))
        else:
            yield SearchedCluster(files.enter_context(open_searched(source.cluster, rule)))


def open_listed(
    source: Source, files: ExitStack, skip: Skip | None, rule: Rule | None = None
) -> LineSource | None:
    """As `open_source`, until `files` are closed. For a crawl of a pattern that has no index, `skip` is called: None."""
    try:
        return files.enter_context(open_source(source, rule))
    except (UsageError, RefusedError) as error:
        if skip is None or not source.is_listed:
            raise
        reason = f"{error.path} {error.reason}" if isinstance(error, RefusedError) else "it has no index"
        skip(
            AbsentError(
                source.crawl, f"was not searched ({reason})", "the answer is that of the other crawls"
            )
        )
        return None


class SearchedCluster:
    """A cluster or a CDX file."""

    def __init__(self, opened: OpenCluster) -> None:
        self.opened = opened

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.opened.reader.cluster

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers of the cluster or file."""
        return answer_many(self.opened, prepared, urls)

    def fields(self, keys: KeyRange) -> Iterable[str]:
        """The fields of its lines, from a few of them."""
        return stored_near(self.opened, keys.low, keys.high)


class SearchedTree:
    """A prefix B-tree."""

    def __init__(self, index: OpenTree) -> None:
        self._index = index

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self._index.path

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers of the tree. Raises UsageError if the query reads a field that is not stored."""
        from cdxmill.search.prefix_index import key_ranges_of_url
        from cdxmill.search.tree_ahead import batch_of, searched_tree
        from cdxmill.search.tree_query import check_stored

        query, layout = prepared.query, self._index.layout
        check_stored(layout, prepared.read, prepared.has_times)
        searched = searched_tree(
            self._index,
            lambda url: key_ranges_of_url(url, layout, query.match_type),
            lambda ranges: prepared.choose(_sorted_by_line(self._index.captures(ranges)), self.name),
        )
        return answer_urls(searched, urls, batch_of(self._index))

    def fields(self, keys: KeyRange) -> Iterable[str]:
        """Those that all lines of cdxmill may have."""
        return ()


def _sorted_by_line(lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """Lines that are sorted by key, sorted. The lines of one URL are held in memory."""
    held: list[bytes] = []
    for lines in lists:
        held += lines
        last = held[-1].partition(b" ")[0] + b" "
        end = len(held)
        while end and held[end - 1].startswith(last):
            end -= 1
        if end:
            yield sorted(held[:end])
            del held[:end]
    if held:
        yield sorted(held)
