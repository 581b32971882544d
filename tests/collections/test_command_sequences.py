"""Drawn sequences of add, remove, compact and merge: the lines are those of a set after each, whatever came before.

CDXMILL_COLLECTIONS sets the number of sequences.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from cdxmill.cluster import change
from cdxmill.storage.location import locate

from .collection import Collection

SEQUENCES = int(os.environ.get("CDXMILL_COLLECTIONS") or 40)
FEW = max(2, SEQUENCES // 20)
STEPS = 6
POINTS = [b"com,example)/3", b"com,example,shop)/", b"com,example2)/", b"org,", b"org,example)/ 2014", b"zz"]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads the cluster, and the machine stays on."""
    monkeypatch.setattr(change, "LOCATIONS_FIRST", 0)
    monkeypatch.setattr(os, "fsync", lambda _: None)


def run(made: Collection, seed: int) -> None:
    """Build a cluster, and do some commands."""
    rng = made.rng
    made.scratch.mkdir()
    try:
        made.build(sorted(rng.sample(POINTS, rng.choice([0, 1, 3, 6]))))
        for _ in range(STEPS):
            made.step()
    except Exception as error:
        raise AssertionError(f"sequence {seed}: {made.done}") from error


@pytest.mark.parametrize("part", range(4))
def test_the_lines_are_those_of_a_set_after_any_sequence(
    part: int, real: list[bytes], tmp_path: Path
) -> None:
    for seed in range(part, SEQUENCES, 4):
        scratch = tmp_path / str(seed)
        run(Collection(locate(str(scratch / "C")), scratch, real, Random(seed)), seed)


def test_several_processes_make_the_same(real: list[bytes], tmp_path: Path) -> None:
    """So do shards that cluster.loc says are elsewhere, too."""
    for seed in range(FEW):
        files = []
        for processes in (1, 3):
            scratch = tmp_path / f"{seed}-{processes}"
            made = Collection(locate(str(scratch / "C")), scratch, real, Random(seed), processes)
            made.location = str(scratch / "C")
            run(made, seed)
            found = made.files()
            files.append({name: data for name, data in found.items() if name.startswith(("cdx-", "part-"))})
        assert files[0] == files[1]


def test_on_s3(real: list[bytes], tmp_path: Path, bucket: str) -> None:
    for seed in range(FEW // 2):
        scratch = tmp_path / str(seed)
        run(Collection(locate(f"{bucket}/{tmp_path.name}/{seed}/C"), scratch, real, Random(seed)), seed)
