"""A CDX file, gzip or plain -> its lines, in lists, as bytes.

A line ends with LF alone: a CR belongs to the line. Header lines (` CDX ...`) and empty
lines are left in.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdxmill.stages.line_lists import split_lines
from cdxmill.stages.read_content import read_content
from cdxmill.stages.window import Window


def read_lines(window: Window) -> Iterator[list[bytes]]:
    """The lines of the file in `window`, in lists of about 1 MiB; none is ever empty.

    Raises MemberError where gzip data are damaged or cut.
    """
    return split_lines(read_content(window))


class LineCutter:
    """Cuts a text that comes in pieces; `begun` is what there is of a line whose end has not come."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []

    def cut(self, piece: bytes) -> list[bytes]:
        """The lines that end in the next piece of the text."""
        lines = piece.split(b"\n")
        last = lines.pop()
        if lines and self.begun:
            lines[0] = b"".join((*self.begun, lines[0]))
            self.begun = []
        if last:
            self.begun.append(last)
        return lines

    def end(self) -> list[bytes]:
        """The text has come to its end: its last line, where that has no LF."""
        return [b"".join(self.begun)] if self.begun else []
