"""Sorted lines -> one shard of a ZipNum cluster and its part of the secondary index."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import IO

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import BlockRef, format_part_line, key_of
from cdxmill.stages.lines.line_lists import TextBlock


def write_shard(
    blocks: Iterable[TextBlock], name: str, shard: IO[bytes], part: IO[bytes], compressor: Compressor
) -> ShardEntry:
    """Write sorted lines: to `shard` one gzip member per block, to `part` one line per block.

    A shard without lines is one empty gzip member, and its part is empty. Requires: the lines of `blocks` are sorted
    and distinct.
    """
    offset = count = number = 0
    digest = hashlib.sha256()
    for lines, text in blocks:
        key = key_of(bytes(text[: text.index(b"\n")]))
        data = compressor.compress_block(lines, text, key)
        part.write(format_part_line(BlockRef(key, name.encode(), offset, len(data))))
        shard.write(data)
        digest.update(data)
        offset, count, number = offset + len(data), count + lines, number + 1
    if not number:
        data = compressor.compress(b"")
        shard.write(data)
        digest.update(data)
        offset = len(data)
    return ShardEntry(name, offset, count, number, digest.hexdigest())
