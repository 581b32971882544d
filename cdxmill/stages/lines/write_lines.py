"""Lines -> a gzip file whose members have about 1 MiB of text, so that readers can inflate a whole member."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from cdxmill.formats.clusters.zipnum_block import Compressor
from cdxmill.stages.lines.group_lines import group_lines
from cdxmill.stages.lines.line_lists import text_of

MEMBER = 1 << 20


def write_gzip_lines(lists: Iterable[list[bytes]], file: IO[bytes], compressor: Compressor) -> int:
    """Write lines, each with an LF, to `file`. Returns the number of compressed bytes.

    If there are no lines, one empty member is written.
    """
    size = 0
    for lines in lists:
        for group in group_lines(lines, MEMBER):
            size += file.write(compressor.compress(text_of(group)))
    return size or file.write(compressor.compress(b""))
