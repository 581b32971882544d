"""docs/costs.md: results are those of its formulas and inputs; rates are those of bench/measured/speed.md."""

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


def test_rates_and_prices_are_on_this_page_only() -> None:
    engines = (ROOT / "docs/engines.md").read_text()
    assert "](costs.md#amazon-emr)" in engines
    assert not re.search(r"MB (a|per) second|GB (a|per) second|core-hours|million lines|an hour", engines)


def test_the_rates_are_not_above_those_of_the_benchmarks() -> None:
    """Each section of bench/measured/speed.md on one core: MB of its WARC, and CPU seconds of cdxmill."""
    page = (ROOT / "bench/measured/speed.md").read_text()
    sections = re.findall(
        r"### Indexing, one core.*?\n([\d.]+) MB of WARC.*?^\| cdxmill \| ([\d.]+) ", page, re.S | re.M
    )
    rates = [float(size) / float(seconds) for size, seconds in sections]
    assert len(rates) == 3
    assert f"| {int(min(rates)) // 100 * 100} |" in PAGE
    assert all(f" {rate:.0f} MB per second" in " ".join(PAGE.split()) for rate in rates)
