"""Some crash points of each command that writes. `python -m bench.crash` tries all of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.crash.__main__ import Point, all_points, findings, shown, without_fault
from bench.crash.runs import CrashBench
from bench.crash.scenarios import all_scenarios
from cdxmill.cli.main import COMMANDS

from .writers import READ_ONLY

POINTS = 3


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, pywb_warcs: Path) -> Iterator[CrashBench]:
    with CrashBench(pywb_warcs, tmp_path_factory.mktemp("crash") / "work") as bench:
        yield bench


NAMES = (
    "index",
    "recompress",
    "scan",
    "count",
    "reindex",
    "train-dictionary",
    "prefix-index",
    "merge",
    "sample",
    "zipnum-2",
    "zipnum-over",
    "build",
    "publish",
    "add-2",
    "add-cluster",
    "remove",
    "compact",
    "copy-2",
    "export",
    "export-wacz",
    "add-overlay",
    "remove-overlay",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_of_the_file_system_loses_nothing(name: str, bench: CrashBench) -> None:
    """At some moments; and the disk gets full in the middle of the writes and stays full."""
    (scenario,) = (one for one in all_scenarios(bench) if one.name == name)
    wanted = without_fault(bench, scenario)
    every = all_points(bench, scenario)
    full = [point for point in every if point.fault == "ENOSPC+"]
    points = [*random.Random(14).sample(every, POINTS), full[len(full) // 2]]
    found = [text for point in points for text in findings(bench, scenario, point, wanted)]
    assert found == []


@pytest.mark.parametrize("name", ["add", "remove", "compact"])
def test_a_cluster_stays_as_it_was_if_the_disk_is_full(name: str, bench: CrashBench) -> None:
    """From the middle of the writes on, each of them fails: nothing can be put right either."""
    (scenario,) = (one for one in all_scenarios(bench) if one.name == name)
    bench.reset(scenario.prepare)
    writes = bench.run(scenario.command, FAULT_KINDS="write", FAULT_N="0").operations
    old = shown(bench.reset(scenario.prepare))
    done = bench.run(scenario.command, **Point("write", "ENOSPC+", writes // 2 + 1).settings())
    assert (done.status, done.fired > 0) == (3, True), done
    assert "No space left" in done.stderr
    assert shown(bench.tree()) == old


def test_every_command_that_writes_is_here(bench: CrashBench) -> None:
    names = {one.command[0] for one in all_scenarios(bench)}
    assert COMMANDS.keys() - names - READ_ONLY == set()


def test_a_disk_that_fails_leaves_no_report(bench: CrashBench) -> None:
    """It would lack a shard that may be whole. A corrupt block is reported, and the rest is in the report."""
    (scenario,) = (one for one in all_scenarios(bench) if one.name == "report-damaged")
    bench.reset(scenario.prepare)
    reads = bench.run(scenario.command, FAULT_KINDS="read", FAULT_N="0").operations
    ended = []
    for number in range(reads // 8, reads, reads // 12):
        bench.reset(scenario.prepare)
        done = bench.run(scenario.command, **Point("read", "EIO", number).settings())
        ended.append(done.status)
        if done.status == 3:
            assert "Input/output error" in done.stderr
            assert bench.tree() == {}
    assert 3 in ended
