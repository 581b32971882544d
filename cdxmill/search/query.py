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
from typing import TypeVar

from cdxmill.cluster.reader import damage_as_input_error
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.zipnum_index import BlockRef
from cdxmill.formats.lines.answer_line import header, line_format
from cdxmill.formats.lines.capture_fields import ALSO
from cdxmill.formats.lines.line_filter import parse_filter
from cdxmill.formats.lines.lookup_query import KeyRange, key_range, narrowed, time_range
from cdxmill.options.queries import Query
from cdxmill.search.field_names import BlockSource, check_fields, unknown_fields
from cdxmill.stages.lines import choose_lines
from cdxmill.stages.zipnum.find_lines import (
    BlockReader,
    find_backwards,
    find_lines,
    texts,
    wanted_blocks,
)

_LONGEST = 200
"""Characters of a URL in a message."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class OpenCluster:
    """A cluster or CDX file that is open for many queries.

    `blocks` reads its blocks. With `join`, neighboring blocks are read in one request.
    """

    reader: BlockSource
    blocks: BlockReader
    join: bool

    @classmethod
    def of(cls, reader: BlockSource) -> OpenCluster:
        """The cluster of `reader`. Blocks are joined if each read costs a network request."""
        return cls(reader, reader.blocks(), reader.is_remote)


class PreparedQuery:
    """A query that was checked, with its filters compiled. Raises UsageError.

    `skip` is called for each line that is needed and cannot be parsed, and the line is skipped. Without it, such a
    line raises InputError.
    """

    def __init__(self, query: Query, skip: Callable[[InputError], None] | None = None) -> None:
        if query.sort == "closest" and query.closest is None:
            raise UsageError("--sort closest needs --closest TIMESTAMP")
        self.query = query
        self._skip = skip
        self._times = _checked(time_range, query.from_ts, query.to)
        self.has_times = any(self._times)
        filters = [_checked(parse_filter, text) for text in query.filters]
        self._filters = [found.passes for found in filters]
        collapse = None if query.collapse is None else _checked(choose_lines.parse_collapse, query.collapse)
        self._token = collapse and collapse.token
        asked = (*(found.field for found in filters), collapse and collapse.field, *(query.fields or ()))
        self._unchecked = unknown_fields(name for name in asked if name is not None)
        if query.closest is not None:
            _checked(choose_lines.seconds, query.closest)
        self._is_reversed = query.sort in ("reverse", "newest") and query.closest is None
        self.fields = query.fields and tuple(ALSO.get(name, name) for name in query.fields)
        self._format = line_format(query.output, self.fields, query.resolve_revisits)
        self.header = header(query.output, self.fields, query.resolve_revisits)

    def keys(self, url: str) -> KeyRange:
        """The key range of a URL. Raises UsageError."""
        try:
            return key_range(url, self.query.match_type)
        except ValueError as error:
            raise UsageError(f"{url[:_LONGEST]}: not a URL that can be looked up ({error})") from None

    def narrowed(self, keys: KeyRange) -> KeyRange:
        """The key range to read. For one URL, it is cut to the time range."""
        return keys if self.query.resolve_revisits else narrowed(keys, self._times)

    def answer(self, cluster: OpenCluster, keys: KeyRange) -> Iterator[list[bytes]]:
        """The printed lines of the answer, in lists. Raises InputError, UsageError."""
        with damage_as_input_error(cluster.reader.cluster):
            self._check_fields(cluster, keys)
            chosen = self._chosen_in_order(cluster, keys)
            make = self._format
            if make is None:
                yield from chosen
                return
            invalid = self._invalid_of(cluster.reader.cluster)
            for lines in chosen:
                yield [line for line in choose_lines.each(make, lines, invalid) if line is not None]

    def count(self, cluster: OpenCluster, keys: KeyRange) -> int:
        """The number of lines in the answer. Each block is read once. Raises InputError."""
        with damage_as_input_error(cluster.reader.cluster):
            self._check_fields(cluster, keys)
            return self._count(cluster, keys)

    def _check_fields(self, cluster: OpenCluster, keys: KeyRange) -> None:
        """Raise UsageError if a field is asked for that is neither known nor in the cluster. This is done once."""
        if self._unchecked:
            low, high, _ = self.narrowed(keys)
            check_fields(self._unchecked, cluster.reader, low, high)
            self._unchecked = ()

    def choose(self, lists: Iterator[list[bytes]], place: str) -> Iterator[list[bytes]]:
        """The chosen lines of sorted `lists`, which are from the file `place`, in the order that was asked for."""
        found = self._chosen(lists, self._invalid_of(place))
        if self.query.closest is not None:
            return choose_lines.sort_closest(found, self.query.closest, self.query.limit)
        if self._is_reversed:
            return choose_lines.reverse_lines(found, self.query.limit)
        return found if self.query.limit is None else choose_lines.take_first(found, self.query.limit)

    def _invalid_of(self, place: str) -> choose_lines.Invalid:
        """What is done with a line that cannot be parsed."""

        def invalid(line: bytes, error: Exception) -> None:
            reason = str(error) if isinstance(error, ValueError) else f"too many nested values: {line[:80]!r}"
            wrong = InputError(place, reason)
            if self._skip is None:
                raise wrong from None
            self._skip(wrong)

        return invalid

    def _count(self, cluster: OpenCluster, keys: KeyRange) -> int:
        query = self.query
        low, high, _ = self.narrowed(keys)
        is_narrowed = (low, high) != (keys.low, keys.high) or not (query.from_ts or query.to)
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
        page, size = self.query.page, self.query.page_size
        if page is None:
            return blocks
        paged = islice(blocks, page * size, (page + 1) * size)
        first = next(paged, None)
        if first is not None:
            return chain([first], paged)
        if page > 0:
            raise UsageError(
                f"page {page} does not exist; the first page is 0, --show-num-pages prints their number"
            )
        return iter(())

    def _chosen_in_order(self, cluster: OpenCluster, keys: KeyRange) -> Iterator[list[bytes]]:
        """The lines of the answer as they are in the cluster, in the order that was asked for."""
        query, limit = self.query, self.query.limit
        low, high, _ = self.narrowed(keys)
        blocks = self._blocks(cluster, low, high)
        place = cluster.reader.cluster
        if self._is_reversed and not (query.resolve_revisits or self._token):
            backwards = find_backwards(list(blocks), cluster.blocks, low, high, cluster.join)
            latest_first = (lines[::-1] for lines in self._chosen(backwards, self._invalid_of(place)))
            return latest_first if limit is None else choose_lines.take_first(latest_first, limit)
        few = limit is not None and not self._is_reversed and query.closest is None
        return self.choose(find_lines(blocks, cluster.blocks, low, high, cluster.join, few), place)

    def _chosen(self, lists: Iterator[list[bytes]], invalid: choose_lines.Invalid) -> Iterator[list[bytes]]:
        """The lines that pass all filters, in the order of pywb's steps."""
        if self.query.resolve_revisits:
            lists = choose_lines.resolve_revisits(lists, invalid)
        if self._filters:
            lists = choose_lines.keep_passing(lists, self._filters, invalid)
        if any(self._times):
            lists = choose_lines.keep_within(lists, self._times)
        if self._token is not None:
            lists = choose_lines.collapse(lists, self._token, invalid)
        return lists


def _checked(make: Callable[..., _T], *values: object) -> _T:
    """The result of `make`. Its ValueError becomes a UsageError."""
    try:
        return make(*values)
    except ValueError as error:
        raise UsageError(str(error)) from None
