"""Prefix B-trees: `build_prefix_index`, and `PrefixIndex`, which answers questions to one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

from cdxmill.api.calls import takes
from cdxmill.api.results import PrefixIndexResult, result_of
from cdxmill.commands.prefix_index import build_tree
from cdxmill.errors import UsageError
from cdxmill.options.option import AnyPath
from cdxmill.options.trees import TreeBuilding
from cdxmill.running.failures import Failures
from cdxmill.search.prefix_index import key_ranges, open_prefix_index, resumed

Item = tuple[bytes, dict[str, int]]
"""A key, and the fields of its pointer."""


@takes(TreeBuilding)
def build_prefix_index(asked: TreeBuilding) -> PrefixIndexResult:
    """Build a prefix B-tree from sorted CDX or CDXJ files, clusters, or files of keys and pointers.

    If an input is corrupt or not sorted, InputError is raised and nothing is written. Raises UsageError for invalid
    arguments, StoppedError if the output cannot be written.
    """
    failures = Failures(printed=False)
    done = build_tree(asked, failures)
    return result_of(PrefixIndexResult, done, failures)


class PrefixIndex:
    """A prefix B-tree at a path or URL that is opened once and asked many questions. Use it in a `with` statement.

    `layout` are the fields of the pointers of a file of 2012, which does not say them; classic, unless given. Raises
    UsageError for invalid arguments, InputError if the file cannot be read or is corrupt.
    """

    def __init__(self, path: AnyPath, layout: str | None = None, keys: str | None = None) -> None:
        self._path, self._keys = os.fspath(path), keys
        self._files = ExitStack()
        self._index = self._files.enter_context(open_prefix_index(self._path, layout))
        self._is_open = True

    def __enter__(self) -> PrefixIndex:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Its iterators give no more items."""
        self._is_open = False
        self._files.close()

    def lines(
        self, query: str, match_type: str | None = None, resume: bytes | None = None
    ) -> Iterator[list[bytes]]:
        """Yield the captures of a URL, URL* or *.HOST as CDXJ lines with filename, offset and length, in lists.

        With `resume`, start at this key.
        """
        ranges = key_ranges(query, self._index.layout, match_type, self._keys)
        for lines in self._index.captures(ranges if resume is None else resumed(ranges, resume)):
            yield lines
            self._check_open()

    def items(self, query: str, match_type: str | None = None, resume: bytes | None = None) -> Iterator[Item]:
        """Yield the items of a query, for every layout. With `resume`, start at this key."""
        names, unpack = self._index.layout.fields, self._index.layout.unpack
        ranges = key_ranges(query, self._index.layout, match_type, self._keys)
        for items in self._index.items(ranges if resume is None else resumed(ranges, resume)):
            for key, pointer in items:
                yield key, dict(zip(names, unpack(pointer), strict=True))
                self._check_open()

    def pointers(self, key: bytes) -> list[bytes]:
        """Return the pointers of one key, as it is stored. This is the fast way: nothing is parsed or decoded."""
        self._check_open()
        return self._index.pointers(key)

    def archive(self, number: int) -> str:
        """Return the name of an archive by its number."""
        return self._index.archive(number)

    def _check_open(self) -> None:
        if not self._is_open:
            raise UsageError(f"{self._path}: the prefix B-tree was closed")
