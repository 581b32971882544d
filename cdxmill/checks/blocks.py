"""The lines of a shard that was found valid before, read a second time."""

from __future__ import annotations

from collections.abc import Iterator

from cdxmill.errors import InputError
from cdxmill.stages.window import ReadAt
from cdxmill.stages.zipnum.check_shard import Fault, read_blocks


def valid_blocks(path: str, read_at: ReadAt) -> Iterator[list[bytes]]:
    """The lines of each block. Raises InputError if the shard at `path` is no longer valid."""
    for block in read_blocks(read_at, {}):
        if isinstance(block, Fault):
            raise InputError(path, block.reason, "the file was changed during the check; run it again")
        yield block.lines
