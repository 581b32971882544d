"""docs/costs.md: the results follow from the formulas and inputs, and docs/emr.md has the same inputs."""

from __future__ import annotations

import re
from pathlib import Path

from bench.costs import compute

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/costs.md").read_text()


def test_the_results_follow_from_the_formulas() -> None:
    assert compute(PAGE) == PAGE


def test_changed_inputs_change_the_results() -> None:
    changed = compute(PAGE.replace("| `archives` | archives | 90000 |", "| `archives` | archives | 45000 |"))
    assert "| 125 |" in changed
    assert len(re.findall(r"` \| [\d.]+ \|$", PAGE, re.M)) > 14


def test_both_pages_have_the_same_inputs() -> None:
    emr = (ROOT / "docs/emr.md").read_text()
    for said in (
        "90,000 archives of 1 GB, 3 billion captures",
        "100 MB a second",
        "0.9 GB a second",
        "250 core-hours",
    ):
        assert said in emr
    assert "| `zipnum_cpu`" in PAGE
    hadoop = re.search(r"CPU of a million lines \| (\d+) s at most", emr)
    assert hadoop is not None
    assert f"zipnum on Hadoop, at most | {hadoop[1]} |" in PAGE
