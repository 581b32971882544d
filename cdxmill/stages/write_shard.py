"""Sorted lines -> one shard of a ZipNum cluster and its part of the secondary index."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from cdxmill.formats.zipnum_block import Compressor
from cdxmill.formats.zipnum_index import BlockRef, format_part_line, key_of
from cdxmill.stages.line_lists import text_of

BLOCK_LINES = 3000


class ShardReport(NamedTuple):
    """What a finished shard holds; `sha256` is that of the shard file."""

    lines: int
    blocks: int
    bytes: int
    sha256: str


def write_shard(
    lists: Iterable[list[bytes]],
    name: str,
    shard: IO[bytes],
    part: IO[bytes],
    compressor: Compressor,
    block_lines: int = BLOCK_LINES,
) -> ShardReport:
    """Write sorted lines to `shard` in blocks, and a line a block to `part`.

    Requires: `lists` give sorted, distinct lines without line ends. A shard without lines
    is one empty gzip member, its part is empty.
    """
    offset = count = blocks = 0
    digest = hashlib.sha256()
    for lines in _blocks(lists, block_lines):
        data = compressor.compress(text_of(lines))
        part.write(format_part_line(BlockRef(key_of(lines[0]), name.encode(), offset, len(data))))
        shard.write(data)
        digest.update(data)
        offset, count, blocks = offset + len(data), count + len(lines), blocks + 1
    if not blocks:
        data = compressor.compress(b"")
        shard.write(data)
        digest.update(data)
        offset = len(data)
    return ShardReport(count, blocks, offset, digest.hexdigest())


def _blocks(lists: Iterable[list[bytes]], size: int) -> Iterator[list[bytes]]:
    held: list[bytes] = []
    for lines in lists:
        held += lines
        whole = len(held) - len(held) % size
        for start in range(0, whole, size):
            yield held[start : start + size]
        del held[:whole]
    if held:
        yield held
