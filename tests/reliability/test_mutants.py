"""Some of `bench.mutants`: damaged archives of every container, checked by other readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.mutants.__main__ import run
from bench.mutants.archives import load
from bench.mutants.judge import Truth, truth_of

SEED = 2024
MOST_BYTES = 20_000
MUTANTS = 40_000


@pytest.fixture(scope="module")
def truth(samples: Path, pywb_warcs: Path) -> Truth:
    return truth_of(
        load([pywb_warcs, samples / "commoncrawl+whirlwind-python", samples / "iipc+jwarc"], MOST_BYTES)
    )


def test_the_sources_have_every_container(truth: Truth) -> None:
    kinds = {truth.sources[number].kind for number in truth.usable}
    assert kinds >= {"gz", "plain", "zst", "zst-nosum", "zst-dict", "arc", "arc.gz"}


def test_no_line_of_a_mutant_is_wrong_and_no_record_is_lost_silently(truth: Truth) -> None:
    assert run(truth, SEED, range(MUTANTS)).faults == []
