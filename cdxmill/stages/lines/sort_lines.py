"""Lines in any order -> sorted runs on scratch space, in memory for one chunk of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import chain
from typing import IO

from cdxmill.stages.lines.line_lists import cut_blocks, distinct, without_headers
from cdxmill.stages.lines.sorted_file import SeekPoints
from cdxmill.stages.lines.sorted_runs import JOINED, Run, write_run, write_seek_points
from cdxmill.stages.lines.sorted_start import SortedStart

CHUNK = 96 << 20
"""Bytes of lines that are held before they are spilled, with Python's overhead per line."""
_OVERHEAD = 41
"""Bytes that Python adds to a line: a reference and the header of a bytes object."""

Create = Callable[[str], AbstractContextManager[IO[bytes]]]


class LineSorter:
    """Takes the lines of inputs and spills them to scratch space as sorted runs.

    `begin` marks the start of an input, and `undo` forgets that input: of a corrupt input no line
    remains, and no line of another input is lost.
    """

    def __init__(self, create: Create, name: str, chunk: int = CHUNK) -> None:
        self._create, self._name, self._chunk = create, name, chunk
        self._lines: list[bytes] = []
        self._size = 0
        self._mark = (0, 0, 0)
        self._written = 0
        self.runs: list[Run] = []

    def begin(self) -> None:
        """Mark the start of an input."""
        self._mark = len(self._lines), self._size, len(self.runs)

    def undo(self) -> None:
        """Forget all lines and runs since `begin`."""
        held, self._size, runs = self._mark
        del self._lines[held:], self.runs[runs:]

    def add(self, lines: list[bytes]) -> None:
        """Take `lines`. Empty and header lines are dropped when the lines are sorted."""
        self._lines += lines
        self._size += sum(map(len, lines)) + _OVERHEAD * len(lines)
        if self._size >= self._chunk:
            self._spill_inputs_apart()

    def adopt(self, source: str, seek_points: SeekPoints) -> None:
        """Take the sorted file at the path `source` as a run."""
        name = self._next_name()
        with self._create(name) as file:
            self.runs.append(write_seek_points(file, name, source, seek_points))

    def add_sorted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Write the start of a text to a run, as far as its lines are in order. Returns the pieces that follow."""
        start = SortedStart(pieces)
        texts = iter(start)
        first = next(texts, None)
        if first is not None:
            name = self._next_name()
            with self._create(name) as file:
                self.runs.append(write_run(file, name, chain((first,), texts)))
        return start.rest()

    def finish(self) -> list[Run]:
        """Spill the lines that are held. Returns all runs."""
        self._spill(self.take(), len(self.runs))
        return self.runs

    def take(self) -> list[bytes]:
        """Remove and return the lines that are held and not spilled yet, in the order they came."""
        lines, self._lines, self._size = self._lines, [], 0
        return lines

    def _spill_inputs_apart(self) -> None:
        held, size, runs = self._mark
        if held:
            before, self._lines = self._lines[:held], self._lines[held:]
            self._size -= size
            have = len(self.runs)
            self._spill(before, runs)  # in front of the runs of this input
            self._mark = 0, 0, runs + len(self.runs) - have
        else:
            self._spill(self.take(), len(self.runs))

    def _spill(self, lines: list[bytes], place: int) -> None:
        lines = sort_captures(lines)
        if lines:
            name, kept = self._next_name(), distinct(lines)
            with self._create(name) as file:
                run = write_run(file, name, cut_blocks([kept], JOINED))
            self.runs.insert(place, run._replace(duplicates=len(lines) - len(kept)))

    def _next_name(self) -> str:
        self._written += 1
        return f"{self._name}-{self._written - 1:05d}.run"


def sort_captures(lines: list[bytes]) -> list[bytes]:
    """`lines` without empty lines and CDX headers. Sorts the list itself, as bytes."""
    lines.sort()
    return without_headers(lines)
