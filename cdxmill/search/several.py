"""Several sources -> the answer of one cluster that has all their lines.

question                  -> a part for each source, the rest        what needs no other line: key range, times, filters
answers of the sources    -> one, sorted, no line twice
its lines                 -> collapse, order, limit                  as in one cluster
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from typing import ClassVar

from cdxmill.errors import CorruptError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import Query
from cdxmill.search.lookup import Skip, is_one_cluster, lookup_many
from cdxmill.search.many import Answer, Lists
from cdxmill.search.opened import OpenCluster, merge_backwards, page_bounds
from cdxmill.search.query import (
    CRAWL,
    Estimate,
    Pages,
    PreparedQuery,
    check_fields,
    count_blocks,
    estimate,
)
from cdxmill.search.sources import LineSource, SearchedCluster, Source, find_sources, open_listed
from cdxmill.stages.lines.merge_lines import merge_lines
from cdxmill.stages.zipnum.secondary_index import SecondaryIndex

_BATCH = 1000


class SourcedLine(bytes):
    """A line that knows the position of its source in the list of sources, by its class: there is one for each source."""

    __slots__ = ()
    source: ClassVar[int] = 0


def source_of(line: bytes) -> int:
    """The position of the source that a line is from; 0 for the lines of a single source."""
    return line.source if isinstance(line, SourcedLine) else 0


class SeveralSources:
    """Open sources that are searched as one cluster with all their lines. Raises UsageError.

    If several sources have a line, it is that of the first one. With `with_crawl`, lines of a crawl have its name; without,
    all lines know their source.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        opened: Sequence[LineSource],
        query: Query,
        skip: Skip | None,
        with_crawl: bool = True,
    ) -> None:
        asked = PreparedQuery(query, skip)
        has_crawl = any(source.crawl for source in sources)
        self._reads_crawl = has_crawl and not {None, CRAWL}.isdisjoint(asked.read)
        is_late = query.resolve_revisits or self._reads_crawl
        self._is_backwards = asked.is_reversed and query.collapse is None and not query.resolve_revisits
        early = Query(match_type=query.match_type, sort=query.sort if self._is_backwards else "default")
        rest = replace(query, page=None, sort="default" if self._is_backwards else query.sort)
        if not is_late:
            early = replace(early, filter=query.filter, from_ts=query.from_ts, to=query.to)
            rest = replace(rest, filter=(), from_ts=None, to=None)
        self._part, self._rest = PreparedQuery(early, skip), PreparedQuery(rest, skip)
        self._part.few = asked.few
        self._part.most = query.limit if asked.few and not is_late and query.collapse is None else None
        self._part.unknown, self._part.has_times = (), asked.has_times
        self._part.read = [name for name in asked.read if name != CRAWL]
        self._asked, self.sources, self._opened = asked, sources, opened
        named = [source.crawl if with_crawl or is_late else "" for source in sources]
        self._endings = [b', "crawl": "%b"}' % crawl.encode() if crawl else b"" for crawl in named]
        self._are_sourced = any(self._endings) or not with_crawl
        of_source = ({"__slots__": (), "source": number} for number in range(len(opened)))
        self._kinds = [type("LineOfSource", (SourcedLine,), one) for one in of_source]
        self._place = ", ".join(one.name for one in opened)

    def answers(self, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers for `urls`, in their order. Raises UsageError and InputError like `lookup`."""
        asked = map(self._page, urls) if self._asked.query.page is not None else self._together(urls)
        for answers in asked:
            error = next((answer.error for answer in answers if answer.error is not None), None)
            url = answers[0].url
            yield Answer(url, self._printed(answers) if error is None else (), error)

    def count(self, url: str) -> int:
        """The number of lines in the answer. Raises as `answers`."""
        first = self._opened[0]
        if len(self._opened) == 1 and isinstance(first, SearchedCluster) and not self._reads_crawl:
            return self._asked.count(first.opened, self._asked.keys(url))
        return sum(map(len, self.lists(url)))

    def lists(self, url: str) -> Iterator[list[bytes]]:
        """The lines of the answer for one URL. Raises as `answers`."""
        for answer in self.answers([url]):
            if answer.error is not None:
                raise answer.error
            yield from answer.lists

    def estimate(self, url: str) -> Estimate:
        """The estimated number of lines of a URL. Lines of files and prefix B-trees are counted. Raises as `answers`.

        Sources may have lines in common, so `least` is that of one source. Crawls have none: the names of their
        archives differ.
        """
        keys = self._asked.keys(url)
        found = [self._estimate(one, url, keys) for one in self._opened]
        of_crawls = [one.least for one, source in zip(found, self.sources, strict=True) if source.crawl]
        least = max(sum(of_crawls), *(one.least for one in found))
        known = [one.most for one in found if one.most is not None]
        most = sum(known) if len(known) == len(found) else None
        return Estimate(sum(one.lines for one in found), least, most, sum(one.blocks for one in found))

    def _estimate(self, source: LineSource, url: str, keys: KeyRange) -> Estimate:
        if isinstance(source, SearchedCluster):
            return estimate(source.opened, self._asked, keys)
        lines = sum(len(lines) for answer in source.answers(self._part, [url]) for lines in answer.lists)
        return Estimate(lines, lines, lines, 0)

    def count_pages(self, url: str) -> Pages:
        """The number of pages of a URL. Raises UsageError for a prefix B-tree or a server: they have none here."""
        keys, size = self._asked.keys(url), self._asked.query.page_size
        low, high, _ = keys
        blocks = sum(count_blocks(one, low, high) for one in self._indexes(low, high))
        if blocks <= len(self._opened) and not any(self.lists(url)):
            blocks = 0  # as in pywb, which reads a single block
        return Pages(-(-blocks // size), size, blocks)

    def _clusters(self) -> list[OpenCluster]:
        """The sources, which have to be clusters or CDX files."""
        found = [one.opened for one in self._opened if isinstance(one, SearchedCluster)]
        if len(found) < len(self._opened):
            raise UsageError(f"{self._place}: only clusters have pages; use --limit, or --from and --to")
        return found

    def _indexes(self, low: bytes, high: bytes) -> list[SecondaryIndex]:
        """The indexes of all clusters and their overlays."""
        return [index for one in self._clusters() for index in one.indexes(low, high)]

    def _together(self, urls: Sequence[str]) -> Iterator[Sequence[Answer]]:
        """The answers of all sources for each URL."""
        return zip(*(one.answers(self._part, urls) for one in self._opened), strict=True)

    def _page(self, url: str) -> Sequence[Answer]:
        """The answers of all sources for one page of a URL: the range of keys in which `page_size` blocks begin."""
        clusters, page, size = self._clusters(), self._asked.query.page or 0, self._asked.query.page_size
        try:
            low, high, _ = self._asked.narrowed(self._asked.keys(url))
        except UsageError as error:
            return [Answer(url, (), error)]
        keys = KeyRange(*page_bounds(self._indexes(low, high), low, high, page, size))
        return [Answer(url, self._part.answer(one, keys)) for one in clusters]

    def _printed(self, answers: Sequence[Answer]) -> Iterator[list[bytes]]:
        """The printed lines of the answers for one URL."""
        self._check_fields(answers[0].url)
        found = self._named(self._merged([answer.lists for answer in answers]))
        yield from self._asked.printed(self._rest.choose(found, self._place), self._place)

    def _check_fields(self, url: str) -> None:
        """Raise UsageError if a field is asked for that is neither known nor in a source. This is done once."""
        if self._asked.unknown:
            keys = self._asked.narrowed(self._asked.keys(url))
            stored = chain.from_iterable(one.fields(keys) for one in self._opened)
            check_fields(self._asked.unknown, stored, self._place)
            self._asked.unknown = ()

    def _named(self, lists: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
        """Lines of crawls with the name of their crawl."""
        if not any(self._endings):
            return lists
        return ([self._with_crawl(line) for line in lines] for lines in lists)

    def _with_crawl(self, line: bytes) -> bytes:
        ending = self._endings[source_of(line)]
        return type(line)(line[:-1] + ending) if ending and line.endswith(b"}") else line

    def _merged(self, answers: Sequence[Lists]) -> Iterator[list[bytes]]:
        """The lines of all answers in their order, each once."""
        if len(answers) == 1:
            return iter(answers[0])
        sorted_lists = [self._sourced(lists, number) for number, lists in enumerate(answers)]
        if not self._is_backwards:
            return merge_lines(sorted_lists)
        most = self._rest.query.limit or _BATCH  # no line is read that is not needed
        return merge_backwards(sorted_lists, min(most, _BATCH))

    def _sourced(self, lists: Lists, number: int) -> Iterator[list[bytes]]:
        """Lines that know their source, in lists that are not empty. Raises CorruptError if they are not sorted."""
        kind = self._kinds[number]
        last: list[bytes] = []
        for lines in filter(None, lists):
            if lines != sorted(lines, reverse=self._is_backwards) or not self._follow(last, lines):
                hint = "check it with cdxmill verify, or build it again"
                raise CorruptError(self._opened[number].name, "its lines are not sorted", hint)
            last = lines
            yield list(map(kind, lines)) if self._are_sourced else lines

    def _follow(self, last: list[bytes], lines: list[bytes]) -> bool:
        """Whether lines come after the last ones."""
        return not last or (lines[0] <= last[-1] if self._is_backwards else lines[0] >= last[-1])


@contextmanager
def open_several(
    sources: Sequence[Source], query: Query, skip: Skip | None = None, *, with_crawl: bool = True
) -> Iterator[SeveralSources]:
    """Open sources to search them as one. `skip` is called for the crawls of a pattern that have no index, too.

    Raises UsageError, InputError, also inside the `with`.
    """
    with ExitStack() as files:
        opened = open_present(sources, files, query, skip)
        yield SeveralSources(list(opened), list(opened.values()), query, skip, with_crawl)


def open_present(
    sources: Sequence[Source], files: ExitStack, query: Query, skip: Skip | None = None
) -> dict[Source, LineSource]:
    """The sources, opened until `files` are closed, without the crawls of a pattern that have no index (see `open_listed`).

    Raises UsageError, InputError; also if no source is left.
    """
    rule = query.shard_index_loc
    found = {source: open_listed(source, files, skip, rule) for source in sources}
    opened = {source: one for source, one in found.items() if one is not None}
    if not opened:
        open_listed(sources[0], files, None, rule)
    return opened


def lookup_in_sources(
    sources: Sequence[Source], urls: Sequence[str], query: Query, skip: Skip | None = None
) -> Iterator[Answer]:
    """The answers for `urls` in several clusters, crawls and files, as if all lines were in one. Lines of a crawl have its name.

    Raises UsageError and InputError like `lookup`.
    """
    with open_several(sources, query, skip) as several:
        yield from several.answers(urls)


def lookup_named(
    named: str, urls: Iterable[str], query: Query, skip: Skip | None = None, newest: int | None = None
) -> Iterator[Answer]:
    """The answers for `urls` in what the user named: one cluster or CDX file, or several sources. Raises as `lookup`.

    `newest` is as in `find_sources`.
    """
    if is_one_cluster(named) and newest is None:
        return lookup_many(named, urls, query, skip)
    return lookup_in_sources(find_sources(named, None, newest), list(urls), query, skip)
