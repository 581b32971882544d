"""lookup: a question -> the lines of a cluster, as pywb's CDX server would answer it.

url, match type      -> range of keys        formats/lookup_query
range                -> blocks -> lines      stages/secondary_index, find_lines, block_text
filters, sort ...    -> lines asked for      stages/choose_lines
output, fields       -> lines printed        formats/answer_line
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeVar

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


Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked besides the URL, in the words of pywb's CDX server."""

    match_type: str | None = None
    first: str | None = None
    last: str | None = None
    filters: tuple[str, ...] = ()
    collapse: str | None = None
    resolve_revisits: bool = False
    sort: str = "default"
    closest: str | None = None
    limit: int | None = None
    page: int | None = None
    page_size: int = PAGE_SIZE
    fields: tuple[str, ...] | None = None
    output: str | None = None
    shard_rule: Rule | None = None


ONLY_THE_URL = Question()


class Opened:
    """A cluster that is asked again and again."""

    def __init__(self, reader: ClusterReader) -> None:
        self.reader = reader
        self.blocks = BlockReader(reader.read)
        self.join = reader.is_remote


class Asking:
    """A question made ready: its filters compiled, its bounds known. Raises UsageError."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._times = _usage(time_range, question.first, question.last)
        self._filters = [_usage(parse_filter, text) for text in question.filters]
        self._token = (
            None if question.collapse is None else _usage(choose_lines.collapse_token, question.collapse)
        )
        if question.sort not in SORTS:
            raise UsageError(f"--sort is one of {', '.join(SORTS)}, not {question.sort}")
        if (question.sort == "closest") > (question.closest is not None):
            raise UsageError("--sort closest needs --closest TIMESTAMP")
        if question.closest is not None:
            _usage(choose_lines.seconds, question.closest)
        if question.output is not None and question.output not in OUTPUTS:
            raise UsageError(f"--output is one of {', '.join(OUTPUTS)}, not {question.output}")
        self._is_reversed = question.sort in ("reverse", "newest") and question.closest is None
        self._format = line_format(question.output, question.fields, question.resolve_revisits)
        self.header = header(question.output, question.fields, question.resolve_revisits)

    def keys(self, url: str) -> KeyRange:
        """The range of keys of a URL. Raises UsageError."""
        try:
            return key_range(url, self.question.match_type)
        except ValueError as error:
            raise UsageError(f"{url}: not a URL that can be looked up ({error})") from None

    def narrowed(self, keys: KeyRange) -> KeyRange:
        """The range that has to be read: of one URL only the time that is asked for."""
        return keys if self.question.resolve_revisits else narrowed(keys, self._times)

    def answer(self, cluster: Opened, keys: KeyRange) -> Iterator[list[bytes]]:
        """The lines of the answer as they are printed, in lists. Raises InputError, UsageError."""
        chosen = self._ordered(cluster, keys)
        make = self._format
        for lines in chosen:
            if make is None:
                yield lines
                continue
            try:
                yield [make(line) for line in lines]
            except ValueError as error:
                raise InputError(cluster.reader.cluster, str(error)) from None

    def count(self, cluster: Opened, keys: KeyRange) -> int:
        """How many lines the answer has; each block is read once."""
        question = self.question
        low, high, _ = self.narrowed(keys)
        is_narrowed = (low, high) != keys[:2] or not (question.first or question.last)
        if self._filters or self._token or question.limit or not is_narrowed:
            return sum(map(len, self._ordered(cluster, keys)))
        total = 0
        for text in texts(self._blocks(cluster, low, high), cluster.blocks, low, cluster.join):
            found, is_beyond = text.count(low, high)
            total += found
            if is_beyond:
                break
        return total

    def _ordered(self, cluster: Opened, keys: KeyRange) -> Iterator[list[bytes]]:
        """The lines of the answer as they stand in the cluster."""
        question, limit = self.question, self.question.limit
        low, high, _ = self.narrowed(keys)
        blocks = self._blocks(cluster, low, high)
        if self._is_reversed and not (question.resolve_revisits or self._token):
            back = find_backwards(list(blocks), cluster.blocks, low, high, cluster.join)
            turned = (lines[::-1] for lines in self._chosen(back, cluster))
            return turned if limit is None else choose_lines.take_first(turned, limit)
        is_cut = limit is not None and not self._is_reversed and question.closest is None
        found = self._chosen(find_lines(blocks, cluster.blocks, low, high, cluster.join, is_cut), cluster)
        if question.closest is not None:
            return choose_lines.sort_closest(found, question.closest, limit)
        if self._is_reversed:
            return choose_lines.turn_round(found, limit)
        return found if limit is None else choose_lines.take_first(found, limit)

    def _blocks(self, cluster: Opened, low: bytes, high: bytes) -> Iterator[BlockRef]:
        """The blocks that may have the answer, those of the page where one is asked for."""
        blocks = wanted_blocks(cluster.reader.index, low, high)
        page, size = self.question.page, self.question.page_size
        if page is None:
            return blocks
        paged = islice(blocks, page * size, (page + 1) * size)
        first = next(paged, None)
        if first is None and page:
            raise UsageError(
                f"there is no page {page}; --show-num-pages tells how many there are, the first is 0"
            )
        return paged if first is None else chain([first], paged)

    def _chosen(self, lists: Iterator[list[bytes]], cluster: Opened) -> Iterator[list[bytes]]:
        if self.question.resolve_revisits:
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


def _usage(make: Callable[..., Made], *values: object) -> Made:
    try:
        return make(*values)
    except ValueError as error:
        raise UsageError(str(error)) from None
