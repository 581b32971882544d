"""docs/costs.md: its results are those of its formulae over its inputs, and its inputs those of docs/emr.md."""

from __future__ import annotations

import re
from pathlib import Path

from bench.costs import compute

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/costs.md").read_text()


def test_the_results_are_those_of_the_formulae() -> None:
    assert compute(PAGE) == PAGE


def test_another_input_gives_other_results() -> None:
    changed = compute(PAGE.replace("| `archives` | archives | 90000 |", "| `archives` | archives | 45000 |"))
    assert "| 125 |" in changed
    assert len(re.findall(r"` \| [\d.]+ \|$", PAGE, re.M)) > 14


def test_both_pages_say_the_same_of_a_crawl() -> None:
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
