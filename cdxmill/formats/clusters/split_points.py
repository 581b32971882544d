"""Split points, the keys at which the shards of a cluster start: as text, as a SequenceFile, or as JSON of webarchive-indexing's Spark job.

Text: one point per line. SequenceFile<Text, NullWritable>, uncompressed, version 6, as Hadoop's
TotalOrderPartitioner reads it:

    "SEQ" 6 | key class, value class (vint length + UTF-8) | 0 0 (no compression)
    | 0 0 0 0 (no metadata) | sync marker (16 bytes)
    record: length (4 B, big endian) | key length (4 B) | vint size + key | (no value)
    sync:   -1 (4 B) | sync marker; before a record if it is 102,400 B or more after the last one (Hadoop 3)

A split point is the first key and timestamp of a shard. Bytes that are not UTF-8 are written as surrogates.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

_KEY_CLASS = b"org.apache.hadoop.io.Text"
_BYTES_CLASS = b"org.apache.hadoop.io.BytesWritable"
_VALUE_CLASS = b"org.apache.hadoop.io.NullWritable"
_SYNC_SPACING = 102_400
_ESCAPE = 0xFFFFFFFF
"""The length -1."""
_SYNC_SIZE = 16


def parse_text(data: bytes) -> list[bytes]:
    """Parse a text file. Raises ValueError if the split points are not strictly increasing."""
    lines = data.split(b"\n")
    return _checked([line for line in lines if line])


def format_text(points: Sequence[bytes]) -> bytes:
    """Split points as a text file. Without points it is empty."""
    return b"".join(point + b"\n" for point in points)


def parse(data: bytes) -> list[bytes]:
    """Parse either kind of file. Raises ValueError."""
    is_text = data[:3] != b"SEQ" or data[3:4] >= b" "
    return parse_text(data) if is_text else parse_sequence_file(data)


def format_sequence_file(points: Sequence[bytes], sync: bytes | None = None) -> bytes:
    """Split points as Hadoop 3.4 writes them, except the sync marker, which is computed from the points.

    >>> parse_sequence_file(format_sequence_file([b"com,a)/ 2020", b"com,b)/ 2021"]))
    [b'com,a)/ 2020', b'com,b)/ 2021']
    """
    return _format(_KEY_CLASS, [_text(point) for point in points], sync or _marker(points))


def format_partition_file(points: Sequence[bytes]) -> bytes:
    """Split points for TotalOrderPartitioner with keys of bytes: SequenceFile<BytesWritable, NullWritable>."""
    keys = [len(point).to_bytes(4, "big") + point for point in points]
    return _format(_BYTES_CLASS, keys, _marker(points))


def _marker(points: Sequence[bytes]) -> bytes:
    return hashlib.md5(format_text(points), usedforsecurity=False).digest()


def _format(key_class: bytes, keys: Sequence[bytes], marker: bytes) -> bytes:
    head = b"SEQ\x06" + _text(key_class) + _text(_VALUE_CLASS) + bytes(6) + marker
    parts, size, last_sync = [head], len(head), 0
    for key in keys:
        if size >= last_sync + _SYNC_SPACING:
            parts.append(_ESCAPE.to_bytes(4, "big") + marker)
            size += len(parts[-1])
            last_sync = size
        parts.append(len(key).to_bytes(4, "big") + len(key).to_bytes(4, "big") + key)
        size += len(parts[-1])
    return b"".join(parts)


def parse_sequence_file(data: bytes) -> list[bytes]:
    """Parse a SequenceFile<Text, NullWritable> with any spacing of sync markers.

    Raises ValueError if it is another file, is compressed or truncated, or its points are not strictly increasing.
    """
    try:
        return _checked(list(_records(data)))
    except IndexError:
        raise ValueError("the SequenceFile is truncated") from None


def _records(data: bytes) -> Iterator[bytes]:
    if data[:4] != b"SEQ\x06":
        raise ValueError("not a SequenceFile of version 6")
    key_class, pos = _read_text(data, 4)
    value_class, pos = _read_text(data, pos)
    if (key_class, value_class, data[pos], data[pos + 1]) != (_KEY_CLASS, _VALUE_CLASS, 0, 0):
        raise ValueError("not an uncompressed SequenceFile with Text keys and NullWritable values")
    pos = _skip_metadata(data, pos + 2) + _SYNC_SIZE
    marker = data[pos - _SYNC_SIZE : pos]
    if len(marker) < _SYNC_SIZE:
        raise IndexError
    while pos < len(data):
        length = _read_number(data, pos)
        if length == _ESCAPE:
            if data[pos + 4 : pos + 4 + _SYNC_SIZE] != marker:
                raise ValueError(f"corrupt SequenceFile: no sync marker at {pos + 4}")
            pos += 4 + _SYNC_SIZE
            continue
        key, end = _read_text(data, pos + 8)
        if not length == _read_number(data, pos + 4) == end - pos - 8:
            raise ValueError(f"corrupt SequenceFile: the lengths at {pos} do not match")
        yield key
        pos = end


def _skip_metadata(data: bytes, pos: int) -> int:
    count = _read_number(data, pos)
    pos += 4
    for _ in range(2 * count):
        _, pos = _read_text(data, pos)
    return pos


def _read_number(data: bytes, pos: int) -> int:
    if pos + 4 > len(data):
        raise IndexError
    return int.from_bytes(data[pos : pos + 4], "big")


def _checked(points: list[bytes]) -> list[bytes]:
    for index in range(1, len(points)):
        if points[index - 1] >= points[index]:
            raise ValueError(
                f"split points must increase, but number {index + 1} does not: {points[index][:80]!r}"
            )
    return points


def _text(value: bytes) -> bytes:
    return _vint(len(value)) + value


def _vint(value: int) -> bytes:
    """Hadoop's WritableUtils.writeVInt for a number >= 0."""
    if value <= 127:
        return bytes((value,))
    size = (value.bit_length() + 7) // 8
    return (-112 - size & 0xFF).to_bytes(1, "big") + value.to_bytes(size, "big")


def _read_text(data: bytes, pos: int) -> tuple[bytes, int]:
    first = data[pos]
    pos += 1
    size = first
    if first > 127:
        width = 0x90 - first
        if not 0 < width <= 4:
            raise ValueError(f"corrupt SequenceFile: bad length at {pos - 1}")
        size = int.from_bytes(data[pos : pos + width], "big")
        pos += width
    if pos + size > len(data):
        raise IndexError
    return data[pos : pos + size], pos + size


def parse_boundaries(data: bytes) -> list[bytes]:
    """The split points in a file. Raises ValueError.

    >>> parse_boundaries(b'[["com,a)/", "20200101000000"], ["com,b)/", ""]]')
    [b'com,a)/ 20200101000000', b'com,b)/']
    """
    try:
        rows: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise ValueError("is not a list of [key, timestamp]")
    points = [" ".join(filter(None, row)).encode("utf-8", "surrogateescape") for row in rows]
    if any(not point or b"\n" in point for point in points):
        raise ValueError("a split point is empty or has a line end")
    return _checked(points)


def _is_row(row: object) -> bool:
    return isinstance(row, list) and len(row) == 2 and all(isinstance(value, str) for value in row)


def format_boundaries(points: Sequence[bytes]) -> bytes:
    """The content of the file. A split point is divided at its first space.

    >>> format_boundaries([b"com,a)/ 20200101000000", b"com,b)/"])
    b'[["com,a)/", "20200101000000"], ["com,b)/", ""]]'
    """
    rows = [point.decode("utf-8", "surrogateescape").partition(" ")[::2] for point in points]
    return json.dumps(rows).encode()
