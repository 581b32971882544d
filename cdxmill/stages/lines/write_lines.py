"""Lines -> a file. A gzip file has members of about 1 MiB of text, so that readers can inflate a whole member."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from cdxmill.formats.clusters.zipnum_block import Compressor
from cdxmill.stages.lines.group_lines import group_lines
from cdxmill.stages.lines.line_lists import text_of

MEMBER = 1 << 20


def write_lines(lists: Iterable[list[bytes]], file: IO[bytes], name: str) -> None:
    """Write lines, each with an LF, to `file`, which gets the name `name`: gzipped if that ends in `.gz`."""
    if name.lower().endswith(".gz"):
        write_gzip_lines(lists, file)
        return
    for lines in lists:
        file.write(text_of(lines))


def write_gzip_lines(lists: Iterable[list[bytes]], file: IO[bytes]) -> int:
    """Write lines, each with an LF, to `file`. Returns the number of compressed bytes.

    If there are no lines, one empty member is written.
    """
    size, compressor = 0, Compressor()
    for lines in lists:
        for group in group_lines(lines, MEMBER):
            size += file.write(compressor.compress(text_of(group)))
    return size or file.write(compressor.compress(b""))
