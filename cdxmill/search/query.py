"""One query -> the lines of a cluster, their number or an estimate, as pywb's CDX server would answer it.

URL, match type  -> key range        formats/lines/lookup_query
key range        -> blocks           stages/zipnum/secondary_index
blocks           -> lines            stages/zipnum/find_lines
lines            -> chosen lines     stages/lines/choose_lines
chosen lines     -> printed lines    formats/lines/capture_fields
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise
from typing import NamedTuple, TypeVar

from cdxmill.cluster.reader import damage_as_input_error
from cdxmill.errors import CorruptError, InputError, UsageError
from cdxmill.formats.clusters.zipnum import BLOCK_LINES, BlockRef, number_of
from cdxmill.formats.lines.capture_fields import (
    ALSO,
    FIELDS,
    are_cdxj,
    as_cdxj,
    header,
    line_format,
    stored_fields,
)
from cdxmill.formats.lines.lookup_query import (
    Compile,
    KeyRange,
    Passes,
    key_range,
    narrowed,
    parse_filter,
    time_range,
)
from cdxmill.formats.lines.timestamp import timestamp_of
from cdxmill.options.option import text_list
from cdxmill.options.queries import Query, Question, Selection
from cdxmill.search.opened import OpenCluster, no_page, page_bounds
from cdxmill.stages.lines import choose_lines
from cdxmill.stages.zipnum.find_lines import SkipBlock, count_lines, find_backwards, find_lines, wanted_blocks
from cdxmill.stages.zipnum.secondary_index import DamagedCluster, SecondaryIndex

CRAWL = "crawl"
"""The field that says from which crawl a line is."""


def unknown_fields(names: Iterable[str]) -> tuple[str, ...]:
    """The names that no line of cdxmill or pywb has.

    >>> unknown_fields(["status", "statuscode", "staus"])
    ('staus',)
    """
    return tuple(name for name in names if name not in (*FIELDS, CRAWL) and name not in ALSO)


def check_fields(names: Iterable[str], stored: Iterable[str], place: str) -> None:
    """Raise UsageError if one of `names` is not among the `stored` fields, which those of `place` are.

    Other tools write fields of their own, so an unknown name may be right.
    """
    found = dict.fromkeys((*FIELDS, *stored)) if names else {}
    for name in names:
        if name not in found:
            raise UsageError(
                f"unknown field {name!r}, which {place} does not have; known are {', '.join(found)}"
            )


def stored_near(cluster: OpenCluster, low: bytes, high: bytes) -> Iterable[str]:
    """The fields of the lines in the first blocks of a cluster, and of a key range."""
    found: dict[str, None] = {}
    for line in _first_lines(cluster, low, high):
        try:
            found.update(dict.fromkeys(stored_fields(line)))
        except (ValueError, RecursionError):  # reported where the line is needed
            continue
    return found


def _first_lines(cluster: OpenCluster, low: bytes, high: bytes) -> Iterator[bytes]:
    """The lines of two blocks of the cluster and each overlay, and of two of the range, the first of which may end before it."""
    blocks = cluster.new_blocks()
    for first, last in ((b"", b"\xff"), (low, high)):
        for index in cluster.own_indexes(first, last):
            for block in islice(wanted_blocks(index, first, last), 2):
                yield from blocks.text_of(block, b"").between(b"", b"\xff")[0]
    for one in cluster.others:
        yield from _first_lines(one, low, high)


_LONGEST = 200
"""Characters of a URL in a message."""
_T = TypeVar("_T")


def query_of(asked: Selection) -> Query:
    """The question among other arguments."""
    names = (Question if isinstance(asked, Question) else Selection).__dataclass_fields__
    return Query(**{name: getattr(asked, name) for name in names})


class PreparedQuery:
    """A query that was checked, with its filters compiled. Raises UsageError.

    `skip` is called for each line that is needed and cannot be parsed, and the line is skipped. It is called with CorruptError
    for a block that cannot be read; unless it raises this, the block is skipped. Without `skip`, both raise InputError. Lines that
    are not `visible` are as if they did not exist.
    """

    def __init__(
        self,
        query: Query,
        skip: Callable[[InputError], None] | None = None,
        visible: Passes | None = None,
        compile_pattern: Compile = re.compile,
    ) -> None:
        if query.sort == "closest" and query.closest is None:
            raise UsageError("--sort closest needs --closest TIMESTAMP")
        self.query = query
        self._skip, self._visible = skip, visible
        self._reported: set[tuple[str, int | None]] = set()
        self._times = _checked(time_range, query.from_ts, query.to)
        self.has_times = any(self._times)
        filters = [_checked(parse_filter, text, compile_pattern) for text in text_list(query.filter)]
        self._filters = [found.passes for found in filters]
        collapse = None if query.collapse is None else _checked(choose_lines.parse_collapse, query.collapse)
        self._token = collapse and collapse.token
        self.read = [found.field for found in (*filters, *([collapse] if collapse else ()))]
        """The fields that decide which lines are chosen; None if that is the whole line, or time and status."""
        asked = (*self.read, *(query.fields or ()))
        self.unknown = unknown_fields(name for name in asked if name is not None)
        """Fields that no line of cdxmill or pywb has: they have to be found in the cluster."""
        if query.closest is not None:
            _checked(choose_lines.seconds, query.closest)
        self.is_reversed = query.sort in ("reverse", "newest") and query.closest is None
        self.few = query.limit is not None and not self.is_reversed and query.closest is None
        """Whether few lines are read, of many: the first reads are small."""
        self.most: int | None = None
        """The number of first lines that are enough, if a source that is asked for its lines may be told."""
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
            yield from self.printed(self._chosen_in_order(cluster, keys), cluster.reader.cluster)

    def printed(self, lists: Iterator[list[bytes]], place: str) -> Iterator[list[bytes]]:
        """Chosen lines, which are from `place`, as they are printed."""
        make = self._format
        if make is None:
            return lists
        invalid = self._invalid_of(place)
        return (
            lines
            if make is as_cdxj and are_cdxj(lines)
            else [line for line in choose_lines.each(make, lines, invalid) if line is not None]
            for lines in lists
        )

    def count(self, cluster: OpenCluster, keys: KeyRange) -> int:
        """The number of lines in the answer. Each block is read once. Raises InputError."""
        with damage_as_input_error(cluster.reader.cluster):
            self._check_fields(cluster, keys)
            return self._count(cluster, keys)

    def _check_fields(self, cluster: OpenCluster, keys: KeyRange) -> None:
        """Raise UsageError if a field is asked for that is neither known nor in the cluster. This is done once."""
        if self.unknown:
            low, high, _ = self.narrowed(keys)
            check_fields(self.unknown, stored_near(cluster, low, high), cluster.reader.cluster)
            self.unknown = ()

    def choose(self, lists: Iterator[list[bytes]], place: str) -> Iterator[list[bytes]]:
        """The chosen lines of sorted `lists`, which are from the file `place`, in the order that was asked for."""
        found = self._chosen(lists, self._invalid_of(place))
        if self.query.closest is not None:
            return choose_lines.sort_closest(found, self.query.closest, self.query.limit)
        if self.is_reversed:
            return choose_lines.reverse_lines(found, self.query.limit)
        return found if self.query.limit is None else choose_lines.take_first(found, self.query.limit)

    def skip_block(self, cluster: OpenCluster) -> SkipBlock | None:
        """What is done with a block that cannot be read. Each is reported once, and a file that cannot be read, too."""
        reported, skip = self._reported, self._skip
        if skip is None:
            return None

        def report(block: BlockRef, error: DamagedCluster | InputError) -> None:
            path = f"{cluster.reader.cluster}/{block.shard.decode(errors='replace')}"
            is_block = isinstance(error, DamagedCluster)
            place = path, block.offset if is_block else None
            if place not in reported:
                what = "the lines of this block" if is_block else "its lines"
                skip(CorruptError(path, f"{error.reason}; {what} are missing", DamagedCluster.hint, place[1]))
                reported.add(place)

        return report

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
        if self._visible or self._filters or self._token or query.limit or not is_narrowed:
            return sum(map(len, self._chosen_in_order(cluster, keys)))
        if query.page is not None or cluster.is_merged(low, high):
            return sum(map(len, self._lists(cluster, low, high, backwards=False)))
        blocks = wanted_blocks(cluster.reader.index, low, high)
        return count_lines(blocks, cluster.blocks, low, high, cluster.join, self.skip_block(cluster))

    def _page(self, cluster: OpenCluster, low: bytes, high: bytes) -> tuple[bytes, bytes, list[BlockRef]]:
        """The bounds of the page that was asked for, and its blocks. With overlays, which have blocks, too, there are none."""
        page, size = self.query.page or 0, self.query.page_size
        if cluster.is_merged(low, high):
            return *page_bounds(cluster.indexes(low, high), low, high, page, size), []
        blocks = list(islice(wanted_blocks(cluster.reader.index, low, high), page * size, (page + 1) * size))
        if not blocks and page:
            raise no_page(page)
        return low, high, blocks

    def _lists(self, cluster: OpenCluster, low: bytes, high: bytes, backwards: bool) -> Iterator[list[bytes]]:
        """The lines of a range, or of one page of it. If they are read `backwards`, the last list is the first one."""
        skip = self.skip_block(cluster)
        if self.query.page is not None:
            low, high, blocks = self._page(cluster, low, high)
            if blocks and backwards:
                return find_backwards(blocks, cluster.blocks, low, high, cluster.join, skip)
            if blocks:
                return find_lines(blocks, cluster.blocks, low, high, cluster.join, self.few, skip)
        return cluster.backwards(low, high, skip) if backwards else cluster.lines(low, high, self.few, skip)

    def _chosen_in_order(self, cluster: OpenCluster, keys: KeyRange) -> Iterator[list[bytes]]:
        """The lines of the answer as they are in the cluster, in the order that was asked for."""
        query, limit = self.query, self.query.limit
        low, high, _ = self.narrowed(keys)
        place = cluster.reader.cluster
        is_backwards = self.is_reversed and not (query.resolve_revisits or self._token)
        if is_backwards:
            found = self._lists(cluster, low, high, backwards=True)
            latest_first = (lines[::-1] for lines in self._chosen(found, self._invalid_of(place)))
            return latest_first if limit is None else choose_lines.take_first(latest_first, limit)
        if self._is_nearest(keys):
            return self._nearest(cluster, low, high)
        return self.choose(self._lists(cluster, low, high, backwards=False), place)

    def _is_nearest(self, keys: KeyRange) -> bool:
        """Whether the lines next to a moment are the answer, so that others need not be read."""
        query = self.query
        is_simple = query.page is None and not query.resolve_revisits and self._token is None
        return keys.is_one_url and query.closest is not None and query.limit is not None and is_simple

    def _nearest(self, cluster: OpenCluster, low: bytes, high: bytes) -> Iterator[list[bytes]]:
        """The lines nearest to a moment, for one URL. A partial timestamp in a line counts where it is sorted."""
        moment, limit = self.query.closest or "", self.query.limit or 0
        middle = low.partition(b" ")[0] + b" " + (timestamp_of(moment.encode()[:14]) or b"")
        middle = min(max(low, middle), high)
        invalid = self._invalid_of(cluster.reader.cluster)
        skip = self.skip_block(cluster)
        earlier = cluster.backwards(low, middle, skip)
        later = cluster.lines(middle, high, True, skip)
        before = (lines[::-1] for lines in self._chosen(earlier, invalid))
        return choose_lines.nearest(before, self._chosen(later, invalid), moment, limit)

    def _chosen(self, lists: Iterator[list[bytes]], invalid: choose_lines.Invalid) -> Iterator[list[bytes]]:
        """The lines that pass all filters, in the order of pywb's steps."""
        if self._visible is not None:
            lists = choose_lines.keep_passing(lists, [self._visible], invalid)
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


class Pages(NamedTuple):
    """The answer to showNumPages, with pywb's names."""

    pages: int
    pageSize: int  # noqa: N815
    blocks: int


class Estimate(NamedTuple):
    """The estimated number of lines, with its bounds. `most` is None if the cluster does not record its block size."""

    lines: int
    least: int
    most: int | None
    blocks: int


def count_pages(cluster: OpenCluster, keys: KeyRange, size: int) -> Pages:
    """The number of pages of `size` blocks. If only one block may have lines, it is read, as in pywb."""
    low, high, _ = keys
    indexes = cluster.indexes(low, high)
    blocks = sum(count_blocks(index, low, high) for index in indexes)
    if blocks <= len(indexes) and next(cluster.lines(low, high), None) is None:
        blocks = 0
    return Pages(-(-blocks // size), size, blocks)


def count_blocks(index: SecondaryIndex, low: bytes, high: bytes) -> int:
    """The number of blocks that may have lines >= `low` and < `high`, from their numbers. Without numbers, they are counted."""
    if next(wanted_blocks(index, low, high), None) is None:
        return 0
    begin, end = (number_of(index.last_before(key) or b"") for key in (low, high))
    if begin is not None and end is not None and end >= begin:
        return end - begin + 1
    return sum(1 for _ in wanted_blocks(index, low, high))


def estimate(cluster: OpenCluster, prepared: PreparedQuery, keys: KeyRange) -> Estimate:
    """The number of lines in a key range. No block is read, but the lines of a CDX file are counted.

    The block before the range may reach into it, and the last block may reach beyond it. Each counts as half a
    block. All blocks between count whole. The bounds hold if all blocks are full but the last one of each shard, or if the
    cluster was changed by cdxmill. The lines of overlays are counted. Raises UsageError for times in a range of URLs: the index does not tell which lines have
    them.
    """
    if prepared.has_times and not keys.is_one_url and cluster.reader.block_lines() != 0:
        raise UsageError("--estimate takes --from and --to for a single URL only; use --count")
    low, high, _ = prepared.narrowed(keys)
    own = _estimate(cluster, prepared, keys)
    counts = [sum(map(len, lists)) for lists in cluster.lines_of(cluster.overlays(low, high), low, high)]
    most = None if own.most is None else own.most + sum(counts)
    return Estimate(own.lines + sum(counts), max(own.least, *counts, 0), most, own.blocks + len(counts))


def _estimate(cluster: OpenCluster, prepared: PreparedQuery, keys: KeyRange) -> Estimate:
    """The estimate of the lines in the shards, or in a CDX file."""
    low, high, _ = prepared.narrowed(keys)
    blocks = list(wanted_blocks(cluster.reader.index, low, high))
    if not blocks:
        return Estimate(0, 0, 0, 0)
    recorded = cluster.reader.block_lines()
    if recorded == 0:
        lines = prepared.count(cluster, keys)
        return Estimate(lines, lines, lines, len(blocks))
    full = recorded or BLOCK_LINES
    begun = sum(block.key >= low for block in blocks)
    whole = [block.shard == following.shard for block, following in pairwise(blocks) if block.key >= low]
    middle = len(whole) * full + (full // 2) * (len(blocks) - len(whole))
    if recorded is None or not cluster.reader.has_full_blocks():
        most = None if recorded is None else len(blocks) * full * 3 // 2
        return Estimate(max(begun, middle), begun, most, len(blocks))
    least = sum(full if is_full else 1 for is_full in whole) + (begun > 0)
    return Estimate(max(least, middle), least, len(blocks) * full, len(blocks))
