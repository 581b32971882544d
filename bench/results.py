"""The measurements, stored beside the corpora: the last run of each section."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench import corpora
from bench.contenders import Section
from bench.report import Result

Measured = dict[str, dict[str, dict[str, list[float]]]]
"""section -> tool -> `cpu` and `wall` (s per unit), `memory` (bytes): one number per run."""


def as_numbers(results: list[Result]) -> dict[str, dict[str, list[float]]]:
    """The costs of the tools that ran and did not fail."""
    return {
        result.name: {
            "cpu": [cost.cpu / result.units for cost in result.costs],
            "wall": [cost.wall / result.units for cost in result.costs],
            "memory": [cost.memory for cost in result.costs],
        }
        for result in results
        if not result.failure
    }


def path(quick: bool) -> Path:
    return corpora.directory(quick) / "results.json"


def load(quick: bool) -> dict[str, Any]:
    return json.loads(path(quick).read_text()) if path(quick).exists() else {}


def keep(section: Section, results: list[Result], quick: bool) -> None:
    """Store the results of a section beside those of the others. `size` is the size of the inputs in bytes."""
    size = sum(file.stat().st_size for file in section.files)
    kept = load(quick)
    kept[section.name] = {"title": section.title, "size": size, "tools": as_numbers(results)}
    path(quick).write_text(json.dumps(kept, indent=1))
