"""Counting the bytes that are read, so that progress can be shown."""

from __future__ import annotations

from cdxmill.running.processes import count_bytes
from cdxmill.stages.window import ReadAt


def counted(read_at: ReadAt) -> ReadAt:
    """`read_at`, but it counts each byte from the first read on once, however often it is read."""
    furthest: int | None = None

    def counting(offset: int, size: int) -> bytes:
        nonlocal furthest
        data = read_at(offset, size)
        if furthest is None:
            furthest = offset
        if offset + len(data) > furthest:
            count_bytes(offset + len(data) - furthest)
            furthest = offset + len(data)
        return data

    return counting
