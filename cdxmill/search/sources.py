"""What captures are searched in: clusters, prefix B-trees, files with CDX lines, and standard input, one or several at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cdxmill.cluster.archive_index import ArchivePlaces, archives_of
from cdxmill.cluster.find import archives_of_crawls, crawls_like, find_index, index_of_crawl
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.zipnum import INDEX
from cdxmill.formats.lines.capture_fields import Format, line_format
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.option import text_list
from cdxmill.options.queries import Query
from cdxmill.search.lookup import (
    STDIN,
    Skip,
    is_cdx_file,
    is_named_crawl,
    is_prefix_index,
    names_in,
    open_searched,
)
from cdxmill.search.many import Answer, answer_many
from cdxmill.search.query import OpenCluster, PreparedQuery
from cdxmill.stages.lines.cdx_text import read_content
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines
from cdxmill.stages.window import MemberError, ReadAt, Window
from cdxmill.storage.interface import Entry
from cdxmill.storage.local import spooled
from cdxmill.storage.location import locate

if TYPE_CHECKING:
    from cdxmill.search.prefix_index import OpenTree

EVERYTHING = "*"
"""The query for all lines of a file or of standard input."""
_BATCH = 1000
_ALL = KeyRange(b"", b"\xff")


class LineSource(Protocol):
    """An open source of index lines."""

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers for `urls`, in their order. Raises InputError, UsageError."""


class Source(NamedTuple):
    """What the user named, the path or URL of its cluster or file, and where the archives of its lines are.

    `crawl` is its name if it is a crawl that was given by name; else "".
    """

    name: str
    places: ArchivePlaces
    crawl: str = ""

    @property
    def cluster(self) -> str:
        """The path or URL of the cluster."""
        return index_of_crawl(self.crawl) if self.crawl else self.name

    @property
    def has_lines(self) -> bool:
        """Whether it is a file with lines, or standard input, and not a cluster."""
        is_file = self.name == STDIN or (is_cdx_file(locate(self.name)) and not self.is_tree)
        return not self.crawl and is_file

    @property
    def is_tree(self) -> bool:
        """Whether it is a prefix B-tree."""
        return not self.crawl and is_prefix_index(self.name)


def find_sources(text: str, archives: str | None) -> list[Source]:
    """The sources that `text` names, separated by commas. Raises UsageError, InputError."""
    found: dict[Source, None] = {}
    for name in names_in(text):
        if is_named_crawl(name):
            places = ArchivePlaces(archives or archives_of_crawls())
            found.update(dict.fromkeys(Source(one, places, one) for one in crawls_like(name)))
        else:
            found[_source(name, archives)] = None
    if not found:
        raise UsageError("no source given; name a cluster, a crawl, a .cdxj file or -")
    return list(found)


def _source(name: str, archives: str | None) -> Source:
    place = locate(name)
    if name == STDIN or is_prefix_index(name):
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
    if source.name == STDIN or place.is_remote:
        return None
    return (place / INDEX).status() or place.status()


@contextmanager
def open_source(source: Source) -> Iterator[LineSource]:
    """Open a source. Raises UsageError and InputError as `open_cluster`, also inside the `with`."""
    with ExitStack() as files:
        if source.name == STDIN:
            file = files.enter_context(spooled())  # several queries read it several times
            while piece := sys.stdin.buffer.read(1 << 20):
                file.write(piece)
            file.flush()
            yield _LineFile("stdin", lambda offset, size: os.pread(file.fileno(), size, offset))
        elif source.is_tree:
            from cdxmill.search.prefix_index import open_prefix_index  # most sources are clusters

            yield _Tree(files.enter_context(open_prefix_index(source.name)))
        else:
            yield _Cluster(source, files.enter_context(open_searched(source.cluster)))


def lookup_in_sources(
    sources: Sequence[Source], urls: Sequence[str], query: Query, skip: Skip | None = None
) -> Iterator[Answer]:
    """The answers for `urls` in several clusters, crawls and files at once, merged. Lines of a crawl have its name.

    Raises UsageError and InputError like `lookup`.
    """
    prepared = PreparedQuery(replace(query, output=None, fields=None), skip)
    if query.page is not None:
        raise UsageError("--page needs a single cluster; name its directory or URL")
    if query.closest is not None and len(sources) > 1:
        raise UsageError("--closest needs a single source")
    make = line_format(query.output, PreparedQuery(query).fields, query.resolve_revisits)
    with ExitStack() as files:
        opened = [files.enter_context(open_source(source)) for source in sources]
        for answers in zip(*(one.answers(prepared, urls) for one in opened), strict=True):
            lines = [
                _named(answer.lists, source.crawl) for answer, source in zip(answers, sources, strict=True)
            ]
            merged = (
                merge(*lines, reverse=query.sort in ("reverse", "newest")) if len(lines) > 1 else lines[0]
            )
            lists = _batched(islice(merged, query.limit))
            yield Answer(answers[0].url, lists if make is None else _made(lists, make), answers[0].error)


def _made(lists: Iterable[list[bytes]], make: Format) -> Iterator[list[bytes]]:
    for lines in lists:
        yield [make(line) for line in lines]


def _named(lists: Iterable[list[bytes]], crawl: str) -> Iterator[bytes]:
    """The lines of an answer; those of a crawl with the field `crawl`."""
    ending = b', "crawl": "%b"}' % crawl.encode()
    for lines in lists:
        for line in lines:
            yield line[:-1] + ending if crawl and line.endswith(b"}") else line


def _batched(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Lines in lists."""
    while some := list(islice(lines, _BATCH)):
        yield some


class _Cluster:
    """A cluster or a CDX file. All lines of a file can be asked for."""

    def __init__(self, source: Source, opened: OpenCluster) -> None:
        self._source, self._opened = source, opened

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers of the cluster or file."""
        if EVERYTHING not in urls:
            yield from answer_many(self._opened, prepared, urls)
            return
        if not self._source.has_lines:
            raise UsageError("no QUERY given; name URLs, such as '*.example.com'")
        with locate(self._source.name).open_ranges() as read_at:
            yield from _LineFile(self._source.name, read_at).answers(prepared, urls)


class _Tree:
    """A prefix B-tree."""

    def __init__(self, index: OpenTree) -> None:
        self._index = index

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers of the tree."""
        from cdxmill.search.prefix_index import key_ranges_of_url
        from cdxmill.search.tree_query import check_stored

        query, layout = prepared.query, self._index.layout
        check_stored(layout, text_list(query.filter), query.fields or (), prepared.has_times)
        for url in urls:
            if url == EVERYTHING:
                raise UsageError("no QUERY given; name URLs, such as '*.example.com'")
            try:
                ranges = key_ranges_of_url(url, layout, query.match_type)
            except UsageError as error:
                yield Answer(url, (), error)
                continue
            yield Answer(url, prepared.choose(self._index.captures(ranges), self._index.path))


class _LineFile:
    """A file of CDX or CDXJ lines in any order. It is read once for each query."""

    def __init__(self, name: str, read_at: ReadAt) -> None:
        self._name, self._read_at = name, read_at

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers of the file."""
        for url in urls:
            try:
                keys = _ALL if url == EVERYTHING else prepared.narrowed(prepared.keys(url))
            except UsageError as error:
                yield Answer(url, (), error)
                continue
            yield Answer(url, prepared.choose(self._within(keys), self._name))

    def _within(self, keys: KeyRange) -> Iterator[list[bytes]]:
        try:
            for lines in split_lines(read_content(Window(self._read_at))):
                found = [line.rstrip(b"\r") for line in lines if keys.low <= line < keys.high]
                yield [line for line in found if is_capture_line(line)]
        except MemberError as error:
            raise InputError(self._name, str(error), "fetch the file again") from None
