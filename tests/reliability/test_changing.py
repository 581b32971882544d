"""Archives that are truncated, grow or are replaced while they are read. Readers end, and never take parts of both for a whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.mutants.archives import Source, load
from bench.mutants.judge import index
from cdxmill.capture import Damage
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import index_archive

TRIALS = 600
MOST_LINES = 10_000


@pytest.fixture(scope="module")
def sources(pywb_warcs: Path) -> list[Source]:
    return [source for source in load([pywb_warcs], 30_000) if source.kind != "zst-dict"]


def changed(old: bytes, rng: random.Random) -> tuple[str, bytes, bytes]:
    """What happens, and the bytes before and after."""
    at = rng.randrange(len(old) + 1)
    kind = rng.choice(("truncated", "truncated", "grown", "replaced"))
    if kind == "grown":
        return kind, old[:at], old
    return kind, old, old[:at] if kind == "truncated" else old[at:] + old[:at]


def test_files_that_change_while_they_are_read(sources: list[Source]) -> None:
    for number in range(TRIALS):
        rng = random.Random(number)
        source = rng.choice(sources)
        kind, before, after = changed(b"".join(source.parts), rng)
        calls, change = 0, rng.randrange(1, 12)

        def read_at(offset: int, size: int) -> bytes:
            nonlocal calls
            calls += 1
            return (before if calls <= change else after)[offset : offset + size]  # noqa: B023 - called at once

        indexer = index_archive(read_at, b"x", CaptureOptions(), "cdxj", rng.choice((4096, 16384)))
        lines = 0
        for some in indexer:
            lines += len(some)
            assert lines < MOST_LINES, (number, source.name, kind)
        damage: list[Damage] = indexer.findings.damage
        assert all("; -" not in one.reason for one in damage), (number, damage)
        if kind == "truncated" and not damage:
            assert lines >= len(index(after)[0]), (number, source.name, source.kind)
