"""One query -> the lines of a cluster, as pywb's CDX server would answer it.

URL, match type  -> key range        formats/lookup_query
key range        -> blocks           stages/zipnum/secondary_index
blocks           -> lines            stages/zipnum/find_lines, block_text
lines            -> chosen lines     stages/lines/choose_lines
chosen lines     -> printed lines    formats/answer_line
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from cdxmill.cluster.locations import Rule
from cdxmill.cluster.reader import ClusterReader
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.answer_line import OUTPUTS, header, line_format
from cdxmill.formats.line_filter import parse_filter
from cdxmill.formats.lookup_query import KeyRange, key_range, narrowed, time_range
from cdxmill.formats.zipnum_index import BlockRef
from cdxmill.stages.lines import choose_lines
from cdxmill.stages.zipnum.find_lines import (
    BlockReader,
    DamagedCluster,
    find_backwards,
    find_lines,
    texts,
    wanted_blocks,
)

PAGE_SIZE = 10
"""Blocks on a page, as in pywb."""
SORTS = ("default", "reverse", "newest", "closest")

_T = TypeVar("_T")


class Page(NamedTuple):
    """One page of an answer, `size` blocks long. The first page has the number 0."""

    number: int
    size: int = PAGE_SIZE


@dataclass(frozen=True, kw_only=True)
class Query:
    """Everything that is asked besides the URL, with the names of pywb's CDX server.

    `page` None means all pages, `limit` None all lines, `fields` None all fields. `output` None prints lines as
    they are in the cluster.
    """

    match_type: str | None = None
    first: str | None = None
    last: str | None = None
    filters: tuple[str, ...] = ()
    collapse: str | None = None
    resolve_revisits: bool = False
    sort: str = "default"
    closest: str | None = None
    limit: int | None = None
    page: Page | None = None
    fields: tuple[str, ...] | None = None
    output: str | None = None
    shard_rule: Rule | None = None


@dataclass(frozen=True)
class OpenCluster:
    """A cluster that is open for many queries.

    `blocks` reads its blocks. With `join`, neighboring blocks are read in one request.
    """

    reader: ClusterReader
    blocks: BlockReader
    join: bool

    @classmethod
    def of(cls, reader: ClusterReader) -> OpenCluster:
        """The cluster of `reader`. Blocks are joined if each read costs a network request."""
        return cls(reader, BlockReader(reader.read), reader.is_remote)


class PreparedQuery:
    """A query that was checked, with its filters compiled. Raises UsageError."""

    def __init__(self, query: Query) -> None:
        _check(query)
        self.query = query
        self._times = _checked(time_range, query.first, query.last)
        self._filters = [_checked(parse_filter, text) for text in query.filters]
        self._token = (
            None if query.collapse is None else _checked(choose_lines.collapse_token, query.collapse)
        )
        if query.closest is not None:
            _checked(choose_lines.seconds, query.closest)
        self._is_reversed = query.sort in ("reverse", "newest") and query.closest is None
        self._format = line_format(query.output, query.fields, query.resolve_revisits)
        self.header = header(query.output, query.fields, query.resolve_revisits)

    def keys(self, url: str) -> KeyRange:
        """The key range of a URL. Raises UsageError."""
        try:
            return key_range(url, self.query.match_type)
        except ValueError as error:
            raise UsageError(f"{url}: not a URL that can be looked up ({error})") from None

    def narrowed(self, keys: KeyRange) -> KeyRange:
        """The key range to read. For one URL, it is cut to the time range."""
        return keys if self.query.resolve_revisits else narrowed(keys, self._times)

    def answer(self, cluster: OpenCluster, keys: KeyRange) -> Iterator[list[bytes]]:
        """The printed lines of the answer, in lists. Raises InputError, UsageError."""
        chosen = self._chosen_in_order(cluster, keys)
        make = self._format
        if make is None:
            yield from chosen
            return
        for lines in chosen:
            try:
                yield [make(line) for line in lines]
            except ValueError as error:
                raise InputError(cluster.reader.cluster, str(error)) from None

    def count(self, cluster: OpenCluster, keys: KeyRange) -> int:
        """The number of lines in the answer. Each block is read once."""
        query = self.query
        low, high, _ = self.narrowed(keys)
        is_narrowed = (low, high) != (keys.low, keys.high) or not (query.first or query.last)
        if self._filters or self._token or query.limit or not is_narrowed:
            return sum(map(len, self._chosen_in_order(cluster, keys)))
        total = 0
        for text in texts(self._blocks(cluster, low, high), cluster.blocks, low, cluster.join):
            found, is_beyond = text.count(low, high)
            total += found
            if is_beyond:
                break
        return total

    def _blocks(self, cluster: OpenCluster, low: bytes, high: bytes) -> Iterator[BlockRef]:
        """The blocks that may contain the answer, or those of one page."""
        blocks = wanted_blocks(cluster.reader.index, low, high)
        page = self.query.page
        if page is None:
            return blocks
        paged = islice(blocks, page.number * page.size, (page.number + 1) * page.size)
        first = next(paged, None)
        if first is not None:
            return chain([first], paged)
        if page.number > 0:
            raise UsageError(
                f"page {page.number} does not exist; the first page is 0, --show-num-pages prints their number"
            )
        return iter(())

    def _chosen_in_order(self, cluster: OpenCluster, keys: KeyRange) -> Iterator[list[bytes]]:
        """The lines of the answer as they are in the cluster, in the order that was asked for."""
        query, limit = self.query, self.query.limit
        low, high, _ = self.narrowed(keys)
        blocks = self._blocks(cluster, low, high)
        if self._is_reversed and not (query.resolve_revisits or self._token):
            backwards = find_backwards(list(blocks), cluster.blocks, low, high, cluster.join)
            latest_first = (lines[::-1] for lines in self._chosen(backwards, cluster))
            return latest_first if limit is None else choose_lines.take_first(latest_first, limit)
        few = limit is not None and not self._is_reversed and query.closest is None
        found = self._chosen(find_lines(blocks, cluster.blocks, low, high, cluster.join, few), cluster)
        if query.closest is not None:
            return choose_lines.sort_closest(found, query.closest, limit)
        if self._is_reversed:
            return choose_lines.reverse_lines(found, limit)
        return found if limit is None else choose_lines.take_first(found, limit)

    def _chosen(self, lists: Iterator[list[bytes]], cluster: OpenCluster) -> Iterator[list[bytes]]:
        """The lines that pass all filters, in the order of pywb's steps."""
        if self.query.resolve_revisits:
            lists = choose_lines.resolve_revisits(lists)
        if self._filters:
            lists = choose_lines.keep_passing(lists, self._filters)
        if any(self._times):
            lists = choose_lines.keep_within(lists, self._times)
        if self._token is not None:
            lists = choose_lines.collapse(lists, self._token)
        try:
            yield from lists
        except DamagedCluster:
            raise
        except ValueError as error:
            raise InputError(cluster.reader.cluster, str(error)) from None


def _check(query: Query) -> None:
    if query.limit is not None and query.limit < 1:
        raise UsageError(f"invalid limit {query.limit}: expected at least 1")
    if query.page is not None and (query.page.number < 0 or query.page.size < 1):
        raise UsageError(f"invalid page {query.page.number} of {query.page.size} blocks")
    if query.sort not in SORTS:
        raise UsageError(f"invalid --sort {query.sort!r}: expected one of {', '.join(SORTS)}")
    if query.sort == "closest" and query.closest is None:
        raise UsageError("--sort closest needs --closest TIMESTAMP")
    if query.output is not None and query.output not in OUTPUTS:
        raise UsageError(f"invalid --output {query.output!r}: expected one of {', '.join(OUTPUTS)}")


def _checked(make: Callable[..., _T], *values: object) -> _T:
    """The result of `make`. Its ValueError becomes a UsageError."""
    try:
        return make(*values)
    except ValueError as error:
        raise UsageError(str(error)) from None
