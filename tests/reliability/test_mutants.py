"""A minute of `bench.mutants`: damaged archives of every container, checked by other readers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bench.mutants.__main__ import run
from bench.mutants.archives import load
from bench.mutants.judge import Truth, truth_of

SEED = 2024
MOST_BYTES = 20_000
SECONDS = 50
AT_A_TIME = 50
LEAST = 100
"""Mutants that even a slow machine makes."""


@pytest.fixture(scope="module")
def truth(samples: Path, pywb_warcs: Path) -> Truth:
    return truth_of(
        load([pywb_warcs, samples / "commoncrawl+whirlwind-python", samples / "iipc+jwarc"], MOST_BYTES)
    )


def test_the_sources_have_every_container(truth: Truth) -> None:
    kinds = {truth.sources[number].kind for number in truth.usable}
    assert kinds >= {"gz", "plain", "zst", "zst-nosum", "zst-dict", "arc", "arc.gz"}


def test_no_line_of_a_mutant_is_wrong_and_no_record_is_lost_silently(truth: Truth) -> None:
    end, start = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        report = run(truth, SEED, range(start, start + AT_A_TIME))
        assert report.faults == []
        start += AT_A_TIME
    assert start >= LEAST
