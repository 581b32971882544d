"""Some of `bench.mutants`: damaged archives of every container, checked by other readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.mutants.__main__ import run
from bench.mutants.archives import load
from bench.mutants.grouped import run_grouped
from bench.mutants.judge import Truth, truth_of
from bench.mutants.sanitized import Batch, sanitized_package
from bench.mutants.sanitized import run as run_sanitized

SEED = 2024
MOST_BYTES = 20_000
MUTANTS = 5_000
"""With one seed: the same ones each time. More of them, and others, are for `python -m bench.mutants`."""


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


def test_the_commands_run_under_the_sanitizers(truth: Truth, tmp_path: Path) -> None:
    """Some of the 5,000 mutants of `python -m bench.mutants.sanitized`."""
    package = sanitized_package(tmp_path)
    assert run_sanitized(package, truth.sources, truth.usable, None, Batch(SEED, range(12))) is None


def test_members_and_frames_of_many_records_lose_only_what_is_damaged(truth: Truth) -> None:
    """A bad first record once cost all others of its member: 308 faults in the first 400."""
    assert run_grouped(truth.sources, SEED, range(600)) == []
