"""Some crash points of each command that writes. `crash_points.py` tries all of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ..material.processes import COMMAND
from .crash_points import all_points, findings, without_fault
from .crash_runs import CrashBench
from .crash_scenarios import all_scenarios

POINTS = 4


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, pywb_warcs: Path) -> CrashBench:
    return CrashBench(Path(COMMAND), pywb_warcs, tmp_path_factory.mktemp("crash") / "work")


@pytest.mark.parametrize("name", ["index", "sample", "zipnum-2", "build", "publish"])
def test_a_fault_of_the_file_system_loses_nothing(name: str, bench: CrashBench) -> None:
    (scenario,) = (one for one in all_scenarios(bench) if one.name == name)
    wanted = without_fault(bench, scenario)
    points = random.Random(14).sample(all_points(bench, scenario), POINTS)
    found = [text for point in points for text in findings(bench, scenario, point, wanted)]
    assert found == []
