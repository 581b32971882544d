"""The content of a record, in pieces -> its header, its HTTP head and its payload."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from cdxmill.capture import Record
from cdxmill.stages.records.parse_header import RecordError, parse_header
from cdxmill.stages.records.payload_digest import payload_start
from cdxmill.stages.records.take_record import BLOCK_HEAD


class RecordParts(NamedTuple):
    """The header of a record, its HTTP head (b"" if there is none), both with their blank line, and the payload."""

    header: bytes
    http_head: bytes
    payload: Iterator[bytes]


def record_parts(record: Record, content: Iterator[bytes]) -> RecordParts:
    """The parts of `record`, whose bytes are `content`. The payload is read when it is iterated."""
    data, start = next(content, b""), 0
    while not start:
        try:
            _, start, _ = parse_header(data)
        except RecordError:  # the record is valid, so its header ends in a later piece
            data += next(content)
    block = _first(chain((data[start:],), content), record.size)
    head = b""
    for piece in block:
        head += piece
        if len(head) >= BLOCK_HEAD:
            break
    end = payload_start(record.headers, head)
    return RecordParts(data[:start], head[:end], chain((head[end:],), block))


def _first(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The first `size` bytes."""
    for piece in pieces:
        yield piece[:size]
        size -= min(size, len(piece))
        if not size:
            return
