"""The inputs of a prefix B-tree that the user named -> sorted lines. An input that is not sorted is an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import le
from typing import NamedTuple, TypeVar

from cdxmill.errors import InputError
from cdxmill.inputs.cdx_files import chunk_of
from cdxmill.inputs.pipes import STDIN, is_pipe, open_pipe
from cdxmill.running.counted_reads import counted
from cdxmill.stages.inflate import MemberError
from cdxmill.stages.lines import check_lines
from cdxmill.stages.lines.check_lines import REBUILD
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines
from cdxmill.stages.lines.read_content import read_content
from cdxmill.stages.window import Window
from cdxmill.storage.unchanged import open_unchanged
from cdxmill.tasks.tree_items import NoItemError, whole_lines

_SORT = "sort it with LC_ALL=C sort, or build a cluster of it with cdxmill zipnum and use that"
_PIPED = 1 << 18
"""Bytes per read of a pipe."""
_T = TypeVar("_T")


class TreeSource(NamedTuple):
    """An input: its name in messages, its first line, and its text in pieces."""

    label: str
    first: bytes
    pieces: Iterator[bytes]

    @property
    def has_pointers(self) -> bool:
        """Whether its lines are keys and pointers, with a tab after the key, and no CDX lines."""
        return b"\t" in self.first.partition(b" ")[0]

    def lists(self) -> Iterator[list[bytes]]:
        """Its lines, checked to be sorted, in lists. CDX lines are checked, too. Raises InputError."""
        pieces = self.pieces if self.has_pointers else check_lines.checked(self.pieces)
        with_errors = _with_errors(self.label, split_lines(pieces))
        return in_order(self.label, with_errors)

    def texts(self) -> Iterator[bytes]:
        """Its text in pieces that end with a line. Raises InputError."""
        return _with_errors(self.label, whole_lines(self.pieces))


def open_source(path: str) -> TreeSource:
    """Open a file, URL, named pipe or standard input. Raises InputError if it cannot be read or is empty."""
    label = "standard input" if path == STDIN else path
    pieces = _with_errors(label, _piped(path) if is_pipe(path) else _content(path))
    head: list[bytes] = []
    for piece in pieces:
        head.append(piece)
        lines = b"".join(head).split(b"\n")
        first = next(filter(is_capture_line, lines[:-1]), b"")
        if first or len(head) > 64:  # a file of other things than lines
            return TreeSource(label, first, chain(head, pieces))
    first = next(filter(is_capture_line, b"".join(head).split(b"\n")), b"")
    return TreeSource(label, first, iter(head))


def _piped(path: str) -> Iterator[bytes]:
    """The content of a pipe, gzip or plain. It is read once, from its start to its end."""
    with open_pipe(path) as read:
        yield from read_content(Window(lambda offset, size: read(size), _PIPED))


def _content(path: str) -> Iterator[bytes]:
    with open_unchanged(path) as read_at:
        window = Window(counted(read_at), chunk_of(path))
        if not window.get(0, 1):
            raise InputError(path, "the file is empty", REBUILD)
        yield from read_content(window)


def _with_errors(label: str, values: Iterable[_T]) -> Iterator[_T]:
    try:
        yield from values
    except (MemberError, NoItemError, check_lines.LineError) as error:
        raise InputError(label, str(error), REBUILD) from None


def in_order(label: str, lists: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """The same lists. Raises InputError at a line that is less than the one before."""
    last = b""
    for lines in lists:
        if lines[0] < last or not all(map(le, lines, islice(lines, 1, None))):
            raise not_sorted(label, *_disorder(last, lines))
        last = lines[-1]
        yield lines


def _disorder(last: bytes, lines: Sequence[bytes]) -> tuple[bytes, bytes]:
    before = last
    for line in lines:
        if line < before:
            return before, line
        before = line
    return before, before


def not_sorted(label: str, before: bytes, line: bytes) -> InputError:
    """The error for a line that is less than the one before."""
    return InputError(label, f"not sorted: {line[:_SHOWN]!r} comes after {before[:_SHOWN]!r}", _SORT)
