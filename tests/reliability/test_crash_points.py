"""Some crash points of each command that writes. `python -m bench.crash` tries all of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.crash.__main__ import all_points, findings, without_fault
from bench.crash.runs import CrashBench
from bench.crash.scenarios import all_scenarios

from ..material.processes import COMMAND

POINTS = 4


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, pywb_warcs: Path) -> CrashBench:
    return CrashBench(Path(COMMAND), pywb_warcs, tmp_path_factory.mktemp("crash") / "work")


NAMES = (
    "index",
    "recompress",
    "scan",
    "reindex",
    "sample",
    "zipnum-2",
    "zipnum-over",
    "build",
    "publish",
    "add-2",
    "add-overlay",
    "remove-overlay",
    "copy-2",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_of_the_file_system_loses_nothing(name: str, bench: CrashBench) -> None:
    (scenario,) = (one for one in all_scenarios(bench) if one.name == name)
    wanted = without_fault(bench, scenario)
    points = random.Random(14).sample(all_points(bench, scenario), POINTS)
    found = [text for point in points for text in findings(bench, scenario, point, wanted)]
    assert found == []
