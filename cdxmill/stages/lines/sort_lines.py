"""An external sort: lines in any order -> sorted runs on scratch space, which are read again by ranges of lines.

    block...   4-byte length (little endian), zstd data: about 64 KiB of lines, each with its LF
    footer     zstd data: `<position of a block> <its first line>` for each block, joined by LF

So a range of lines can be read without the rest of the run. If the input itself is sorted, the file on scratch space
has only the footer, and its positions are those of sorted_input.py.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain, count
from typing import IO, NamedTuple

from cdxmill.errors import StoppedError
from cdxmill.stages.lines.line_lists import (
    TextBlock,
    cut_blocks,
    distinct,
    lines_between,
    split_lines,
    without_headers,
)
from cdxmill.stages.lines.sorted_input import SPAN, SeekPoints, SortedStart, read_between
from cdxmill.stages.window import MemberError, ReadAt, Window

BLOCK = 1 << 16
"""Plain bytes per block: a merge holds at least one block of each run."""
LEVEL = -5
"""zstd -5 compresses CDXJ lines 3.2:1 in half of the time of zstd 1, which compresses them 4.7:1."""

_RATIO = 3
_AHEAD = 1 << 14
JOINED = 4000
"""Lines that are joined to one text before it is cut into blocks."""

OpenRun = Callable[[str], ReadAt]


class Run(NamedTuple):
    """A run: its name on scratch space, the offsets where its footer starts and ends, and what it holds.

    `lines` counts the lines, `duplicates` the equal lines that were removed. `source` is the path of the
    sorted input that has the lines, or "" if they are in the run. `stop` is the position of their end.
    """

    name: str
    footer: int
    end: int
    lines: int
    duplicates: int
    stop: int
    source: str = ""

    def whole(self) -> Slice:
        """All lines of the run."""
        return Slice(self, 0, self.stop)


class Slice(NamedTuple):
    """The lines of a run that are >= `low` and < `high` (None: no bound); they lie between two positions."""

    run: Run
    start: int
    end: int
    low: bytes | None = None
    high: bytes | None = None

    def packed(self) -> int:
        """The approximate number of bytes on disk."""
        return (self.end - self.start) // (SPAN if self.run.source else 1)


def write_run(file: IO[bytes], name: str, texts: Iterable[TextBlock]) -> Run:
    """Write sorted, distinct lines to `file` as the run `name`."""
    pack = _packer()
    firsts: list[tuple[int, bytes]] = []
    offset = written = 0
    for lines, text in texts:
        written += lines
        with memoryview(text) as view:
            for start, end in _blocks(text):
                data = pack(view[start:end])
                firsts.append((offset, bytes(view[start : text.index(b"\n", start)])))
                file.write(len(data).to_bytes(4, "little") + data)
                offset += 4 + len(data)
    return Run(name, offset, offset + _write_footer(file, firsts), written, 0, offset)


def _blocks(text: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Where the text is cut into parts of about BLOCK bytes, each of whole lines."""
    start = 0
    while start < len(text):
        end = text.rfind(b"\n", start, start + BLOCK) + 1 or text.index(b"\n", start) + 1
        yield start, end
        start = end


def write_seek_points(file: IO[bytes], name: str, source: str, seek_points: SeekPoints) -> Run:
    """Write the footer that makes the sorted input at the path `source` a run called `name`."""
    size = _write_footer(file, seek_points.firsts)
    return Run(name, 0, size, seek_points.lines, 0, seek_points.stop, source)


def _write_footer(file: IO[bytes], firsts: Sequence[tuple[int, bytes]]) -> int:
    text = b"\n".join([b"%d %b" % first for first in firsts])
    return file.write(_packer()(text))


def cut_runs(runs: Sequence[Run], points: Sequence[bytes], open_run: OpenRun) -> list[list[Slice]]:
    """For each part that `points` divide the lines into: its slices of the runs."""
    bounds = [None, *points, None]
    parts: list[list[Slice]] = [[] for _ in bounds[1:]]
    for run in runs:
        for number, (start, end) in enumerate(cut_run(open_run(run.name), run, points)):
            if start < end:
                parts[number].append(Slice(run, start, end, bounds[number], bounds[number + 1]))
    return parts


def cut_run(read_at: ReadAt, run: Run, points: Sequence[bytes]) -> list[tuple[int, int]]:
    """For each part that `points` divide the run into: the positions where its blocks start and end."""
    footer = _inflater()(read_at(run.footer, run.end - run.footer))
    entries = [entry.split(b" ", 1) for entry in footer.split(b"\n")]
    firsts = [first for _, first in entries]
    bounds = [*(int(position) for position, _ in entries), run.stop]
    lows = [0, *(max(bisect_right(firsts, point) - 1, 0) for point in points)]
    highs = [*(bisect_left(firsts, point) for point in points), len(firsts)]
    return [(bounds[low], bounds[max(low, high)]) for low, high in zip(lows, highs, strict=True)]


def has_lines(open_run: OpenRun, part: Slice) -> bool:
    """Whether a slice has lines: it is cut at blocks, which may have only lines beyond its bounds."""
    return next(read_slice(open_run, part, BLOCK), None) is not None


def read_slice(open_run: OpenRun, part: Slice, size: int) -> Iterator[list[bytes]]:
    """The lines of a slice, in sorted, non-empty lists of about `size` plain bytes.

    Raises StoppedError if a sorted input has changed.
    """
    for lines in split_lines(read_text(open_run, part, size), size):
        if lines := lines_between(lines, part.low, part.high):
            yield lines


def read_text(open_run: OpenRun, part: Slice, size: int) -> Iterator[bytes]:
    """The text of the blocks of a slice, in pieces; about `size` plain bytes of a run are read at a time.

    It may begin with lines below the bounds of the slice and end with lines above them.
    Raises StoppedError if a sorted input has changed.
    """
    source = part.run.source
    if not source:
        yield from _unpacked(open_run(part.run.name), part, size // _RATIO)
        return
    try:
        yield from read_between(open_run(source), part.start, part.end)
    except MemberError as error:
        raise StoppedError(f"{source}: {error}; run it again") from None


def _unpacked(read_at: ReadAt, part: Slice, ahead: int) -> Iterator[bytes]:
    inflate = _inflater()
    window = Window(read_at, max(ahead, _AHEAD))
    pos = part.start
    while pos < part.end:
        length = int.from_bytes(window.get(pos, 4), "little")
        yield inflate(window.get(pos + 4, length))
        pos += 4 + length


def _packer() -> Callable[[bytes | memoryview], bytes]:
    import zstandard  # slow to import, and most indexes are sorted without a spill

    return zstandard.ZstdCompressor(level=LEVEL).compress


def _inflater() -> Callable[[bytes], bytes]:
    import zstandard

    return zstandard.ZstdDecompressor().decompress


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
        self._create, self._chunk = create, chunk
        self._names = (f"{name}-{number:05d}.run" for number in count())
        self._lines: list[bytes] = []
        self._size = 0
        self._mark = (0, 0, 0)
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
        name = next(self._names)
        with self._create(name) as file:
            self.runs.append(write_seek_points(file, name, source, seek_points))

    def add_sorted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Write the start of a text to a run, as far as its lines are in order. Returns the pieces that follow."""
        start = SortedStart(pieces)
        texts = iter(start)
        first = next(texts, None)
        if first is not None:
            name = next(self._names)
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
            name, kept = next(self._names), distinct(lines)
            with self._create(name) as file:
                run = write_run(file, name, cut_blocks([kept], JOINED))
            self.runs.insert(place, run._replace(duplicates=len(lines) - len(kept)))


def sort_captures(lines: list[bytes]) -> list[bytes]:
    """`lines` without empty lines and CDX headers. Sorts the list itself, as bytes."""
    lines.sort()
    return without_headers(lines)
