"""A gzip CDX file that is sorted already: a run as it is, to be read again in place of being spilled.

A place in such a file is a number: the offset of a gzip member, times SPAN, and the bytes of the
member's content before the place.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import islice
from operator import lt
from typing import NamedTuple

from cdxmill.stages.inflate import MemberError, inflate
from cdxmill.stages.read_lines import LineCutter
from cdxmill.stages.window import ReadAt, Window

SPAN = 1 << 40
APART = 1 << 16
"""Plain bytes between two places that are noted, at the least."""

_AHEAD = 1 << 17
_FIRST_CAPTURE = b" CDY"
"""Empty and header lines sort below it."""


class Places(NamedTuple):
    """`firsts`: (place, the line that starts there); `stop`: the place of the file's end; how many lines."""

    firsts: list[tuple[int, bytes]]
    stop: int
    lines: int


def note_places(window: Window, most: int) -> Generator[bytes, None, Places | None]:
    """The file's content, in pieces, and at last places of lines in it.

    None as soon as the lines turn out not to be strictly increasing, or not to be captures alone, or a
    gzip member to have more than `most` plain bytes: who reads from a place inflates its member from
    the start. Raises MemberError where gzip data are damaged or cut.
    """
    firsts: list[tuple[int, bytes]] = []
    pos = count = have = noted = 0
    last, cutter = _FIRST_CAPTURE, LineCutter()
    while window.get(pos, 1):
        member, size = inflate(window, pos), 0
        for piece in member:
            yield piece
            inside = bool(cutter.begun)
            lines = cutter.cut(piece)
            if lines and not firsts:
                firsts.append((0, lines[0]))
            elif not size and len(lines) > inside and have >= noted + APART:
                firsts.append((pos * SPAN + inside * (piece.find(b"\n") + 1), lines[inside]))
                noted = have
            size += len(piece)
            if size > most or not _increase(last, lines):
                return None
            last, count = lines[-1] if lines else last, count + len(lines)
        pos, have = member.end, have + size
    rest = cutter.end()
    if not _increase(last, rest) or not (firsts or rest):
        return None
    return Places(firsts or [(0, rest[0])], pos * SPAN, count + len(rest))


def _increase(last: bytes, lines: list[bytes]) -> bool:
    return not lines or (last < lines[0] and all(map(lt, lines, islice(lines, 1, None))))


def read_places(read_at: ReadAt, start: int, stop: int) -> Iterator[bytes]:
    """The file's content between two places, in pieces.

    Raises MemberError where the file is not the one that the places were noted in.
    """
    window = Window(read_at, _AHEAD)
    (pos, skip), (last, most) = divmod(start, SPAN), divmod(stop, SPAN)
    while pos < last or (pos == last and most):
        member = inflate(window, pos)
        at = 0
        for piece in member:
            part = piece[skip : most - at] if pos == last else piece[skip:]
            skip = max(skip - len(piece), 0)
            at += len(piece)
            yield part
            if pos == last and at >= most:
                return
        if pos == last:
            break
        pos = member.end
    if pos != last or most:
        raise MemberError("the file was changed while it was read", pos)
