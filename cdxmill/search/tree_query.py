"""One query to a prefix B-tree -> the lines to print, with the options of `lookup` that need no further file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from cdxmill.errors import CorruptError, UsageError
from cdxmill.formats.lines.capture_fields import ALSO, header, line_format
from cdxmill.formats.lines.lookup_query import KeyRange, parse_filter, time_range
from cdxmill.formats.tree.pointer_layout import Layout
from cdxmill.formats.tree.prefix_btree import Item
from cdxmill.options.option import text_list
from cdxmill.options.trees import TreeQuery
from cdxmill.search.many import answer_urls
from cdxmill.search.prefix_index import OpenTree, key_ranges, resumed
from cdxmill.search.tree_ahead import batch_of, searched_tree
from cdxmill.stages.lines import choose_lines

_STORED = ("urlkey", "timestamp", "length", "offset", "filename")
_FIELDS = {"capture": (*_STORED, "url", "status"), "classic": (*_STORED, "url")}
"""The fields that captures have, for each layout that has captures."""


class PreparedTreeQuery:
    """A query that was checked, with its filters compiled, for a tree with this layout. Raises UsageError."""

    def __init__(self, query: TreeQuery, layout: Layout) -> None:
        self.query, self.layout = query, layout
        try:
            self._times = time_range(query.from_ts, query.to)
            filters = [parse_filter(text) for text in text_list(query.filter)]
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._filters = [found.passes for found in filters]
        self._check_fields([found.field for found in filters])
        fields = query.fields and tuple(ALSO.get(name, name) for name in query.fields)
        self._format = line_format(query.output, fields)
        self.header = header(query.output, fields)

    def _check_fields(self, read: Iterable[str | None]) -> None:
        """Raise UsageError if a field is asked for that is not stored; filters `read` some of them."""
        query, has_times = self.query, any(self._times)
        if self.layout.name in _FIELDS:
            check_stored(self.layout, (*read, *(query.fields or ())), has_times)
        elif has_times or self._filters or query.fields or query.output:
            raise UsageError(f"the layout {self.layout.text!r} has no captures: no fields, times and filters")

    def ranges(self, text: str) -> list[KeyRange]:
        """The key ranges of one query. Raises UsageError."""
        query = self.query
        found = key_ranges(text, self.layout, query.match_type, query.keys)
        return (
            found if query.resume is None else resumed(found, query.resume.encode("utf-8", "surrogateescape"))
        )

    def lines(self, index: OpenTree, ranges: Iterable[KeyRange]) -> Iterator[list[bytes]]:
        """The lines to print, in lists. Raises InputError."""
        if self.layout.name not in _FIELDS:
            yield from ([self._values(item) for item in items] for items in index.items(ranges))
            return
        lists = index.captures(ranges)
        if self._filters:
            lists = choose_lines.keep_passing(lists, self._filters, _invalid_of(index.path))
        if any(self._times):
            lists = choose_lines.keep_within(lists, self._times)
        make: Callable[[bytes], bytes] | None = self._format
        yield from lists if make is None else ([make(line) for line in lines] for lines in lists)

    def _values(self, item: Item) -> bytes:
        key, pointer = item
        return b"\t".join((key, *(b"%d" % value for value in self.layout.unpack(pointer))))


def check_stored(layout: Layout, names: Iterable[str | None], has_times: bool) -> None:
    """Raise UsageError if a field or the time is asked for that is not stored: the answer would be empty. None is no field."""
    known = _FIELDS.get(layout.name or "", ())
    for name in names:
        if name is not None and ALSO.get(name, name) not in known:
            raise UsageError(f"the field {name!r} is not stored; the fields are {', '.join(known)}")
    if has_times and layout.name == "classic":
        raise UsageError("the layout classic has no timestamps, so --from and --to cannot be used")


def _invalid_of(path: str) -> choose_lines.Invalid:
    def invalid(line: bytes, error: Exception) -> None:
        raise CorruptError(path, str(error)) from None

    return invalid


def search_tree(
    index: OpenTree,
    queries: Iterable[str],
    prepared: PreparedTreeQuery,
    invalid: Callable[[UsageError], None] | None = None,
) -> Iterator[list[bytes]]:
    """The lines of queries in a prefix B-tree, in the order of the queries.

    With `invalid`, it is called for each invalid query, and the others are searched. Raises UsageError, InputError.
    """
    left = prepared.query.limit
    searched = searched_tree(index, prepared.ranges, lambda ranges: prepared.lines(index, ranges))
    for _, lists, error in answer_urls(searched, queries, batch_of(index, left)):
        if error is not None:
            if invalid is None:
                raise error
            invalid(error)
        for lines in lists:
            chosen = lines if left is None else lines[:left]
            if chosen:
                yield chosen
            if left is not None and (left := left - len(chosen)) <= 0:
                return
