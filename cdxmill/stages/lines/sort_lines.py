"""Lines in any order -> sorted runs on scratch space, with memory for one chunk of lines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO

from cdxmill.stages.lines.line_lists import cut_blocks, distinct, without_headers
from cdxmill.stages.lines.sorted_file import SeekPoints
from cdxmill.stages.lines.sorted_runs import JOINED, Run, write_run, write_seek_points

CHUNK = 96 << 20
"""Bytes of lines, with Python's 41 for each object, that are held before they are spilled."""
_OVERHEAD = 41

Create = Callable[[str], AbstractContextManager[IO[bytes]]]


class LineSorter:
    """Takes the lines of inputs and spills them to scratch space as sorted runs.

    `begin` marks where an input starts, `undo` forgets it: no line of a damaged input
    is left behind, and no line of another input is lost with it.
    """

    def __init__(self, create: Create, name: str, chunk: int = CHUNK) -> None:
        self._create, self._name, self._chunk = create, name, chunk
        self._lines: list[bytes] = []
        self._size = 0
        self._mark = (0, 0, 0)
        self._written = 0
        self.runs: list[Run] = []

    def begin(self) -> None:
        """An input starts here."""
        self._mark = len(self._lines), self._size, len(self.runs)

    def undo(self) -> None:
        """Forget all since `begin`."""
        held, self._size, runs = self._mark
        del self._lines[held:], self.runs[runs:]

    def add(self, lines: list[bytes]) -> None:
        """Take `lines`; empty and header lines are dropped when they are sorted."""
        self._lines += lines
        self._size += sum(map(len, lines)) + _OVERHEAD * len(lines)
        if self._size >= self._chunk:
            self._spill_inputs_apart()

    def adopt(self, source: str, places: SeekPoints) -> None:
        """Take the sorted file at the path `source` as a run of its own."""
        name = self._next_name()
        with self._create(name) as file:
            self.runs.append(write_seek_points(file, name, source, places))

    def finish(self) -> list[Run]:
        """Spill what is held; all runs."""
        self._spill(self.take())
        return self.runs

    def take(self) -> list[bytes]:
        """The lines that are held and not spilled yet, as they came; none is held any more."""
        lines, self._lines, self._size = self._lines, [], 0
        return lines

    def _spill_inputs_apart(self) -> None:
        held, size, _ = self._mark
        if held:
            before, self._lines = self._lines[:held], self._lines[held:]
            self._size -= size
            self._spill(before)
            self._mark = 0, 0, len(self.runs)
        else:
            self._spill(self.take())

    def _spill(self, lines: list[bytes]) -> None:
        lines = sort_captures(lines)
        if lines:
            name, kept = self._next_name(), distinct(lines)
            with self._create(name) as file:
                run = write_run(file, name, cut_blocks([kept], JOINED))
            self.runs.append(run._replace(duplicates=len(lines) - len(kept)))

    def _next_name(self) -> str:
        self._written += 1
        return f"{self._name}-{self._written - 1:05d}.run"


def sort_captures(lines: list[bytes]) -> list[bytes]:
    """`lines` sorted as bytes, in place, without empty lines and CDX headers."""
    lines.sort()
    return without_headers(lines)
