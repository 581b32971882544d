"""A damaged archive that knows which records of its sources are untouched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .archives import Source


class Span(NamedTuple):
    """The bytes [begin, end) of a source, by its number."""

    source: int
    begin: int
    end: int


Piece = Span | bytes


class Untouched(NamedTuple):
    """A record of a source, none of whose bytes were changed, and its range in the mutant."""

    offset: int
    length: int
    source: int
    part: int


def size_of(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.end - piece.begin


class Mutant:
    """A list of spans of sources and of new bytes. `what` tells what was done."""

    def __init__(self, sources: Sequence[Source], number: int) -> None:
        self.sources, self.number, self.source = sources, number, sources[number]
        self.pieces: list[Piece] = [Span(number, 0, self.source.edges()[-1])]
        self.what: list[str] = []
        self.is_repacked = False

    def size(self) -> int:
        return sum(map(size_of, self.pieces))

    def cut_out(self, begin: int, end: int) -> list[Piece]:
        """The pieces of [begin, end)."""
        found: list[Piece] = []
        pos = 0
        for piece in self.pieces:
            low, high = max(begin - pos, 0), min(end - pos, size_of(piece))
            if low < high and isinstance(piece, bytes):
                found.append(piece[low:high])
            elif low < high and isinstance(piece, Span):
                found.append(Span(piece.source, piece.begin + low, piece.begin + high))
            pos += size_of(piece)
        return found

    def replace(self, begin: int, end: int, new: Sequence[Piece]) -> None:
        self.pieces = [*self.cut_out(0, begin), *new, *self.cut_out(end, self.size())]

    def replace_part(self, part: int, content: bytes, level: int = 6) -> None:
        """Pack `content` in the place of a part of the untouched source."""
        edges = self.source.edges()
        self.pieces = [
            Span(self.number, 0, edges[part]),
            self.source.pack(content, level),
            Span(self.number, edges[part + 1], edges[-1]),
        ]
        self.is_repacked = True

    def data(self, pieces: Sequence[Piece] | None = None) -> bytes:
        return b"".join(
            piece if isinstance(piece, bytes) else _whole(self.sources, piece.source)[piece.begin : piece.end]
            for piece in (self.pieces if pieces is None else pieces)
        )

    def kinds(self) -> set[str]:
        """The containers that it has bytes of."""
        return {self.sources[piece.source].kind for piece in self.pieces if isinstance(piece, Span)}

    def untouched(self) -> list[Untouched]:
        """Every record none of whose bytes were changed or moved apart."""
        found = []
        for at, span in self._spans():
            source, start = self.sources[span.source], 0
            for part, packed in enumerate(source.parts):
                end = start + len(packed)
                if span.begin <= start and end <= span.end and source.records[part]:
                    found.append(Untouched(at + start - span.begin, len(packed), span.source, part))
                start = end
        return found

    def _spans(self) -> list[tuple[int, Span]]:
        """The spans with their offsets; adjacent ones are joined."""
        found: list[tuple[int, Span]] = []
        pos, previous = 0, -1
        for piece in self.pieces:
            if isinstance(piece, Span):
                if (
                    previous == pos
                    and (last := found[-1][1]).source == piece.source
                    and last.end == piece.begin
                ):
                    found[-1] = (found[-1][0], last._replace(end=piece.end))
                else:
                    found.append((pos, piece))
                previous = pos + size_of(piece)
            pos += size_of(piece)
        return found


_wholes: dict[int, bytes] = {}


def _whole(sources: Sequence[Source], number: int) -> bytes:
    if number not in _wholes:
        if len(_wholes) > 500:
            _wholes.clear()
        _wholes[number] = b"".join(sources[number].parts)
    return _wholes[number]
