"""The split points of webarchive-indexing's Spark job: a JSON list of [key, timestamp].

A split point is the first key and timestamp of a shard. Bytes that are not UTF-8 are written as surrogates.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any


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
    if not all(points) or any(one >= other for one, other in pairwise(points)):
        raise ValueError("the split points are empty or not in order")
    if any(b"\n" in point for point in points):
        raise ValueError("a split point has a line end")
    return points


def _is_row(row: object) -> bool:
    return isinstance(row, list) and len(row) == 2 and all(isinstance(value, str) for value in row)


def format_boundaries(points: Sequence[bytes]) -> bytes:
    """The content of the file. A split point is divided at its first space.

    >>> format_boundaries([b"com,a)/ 20200101000000", b"com,b)/"])
    b'[["com,a)/", "20200101000000"], ["com,b)/", ""]]'
    """
    rows = [point.decode("utf-8", "surrogateescape").partition(" ")[::2] for point in points]
    return json.dumps(rows).encode()
