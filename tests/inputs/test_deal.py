"""Files are dealt to tasks by their sizes: all of them, in order, and to so few tasks that their runs can be merged at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.inputs import cdx_files
from cdxmill.inputs.cdx_files import deal
from cdxmill.inputs.sorting import share_of_runs
from cdxmill.stages.lines.merge_runs import MOST_RUNS

GIB = 1 << 30


def dealt(sizes: list[int]) -> list[list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cdx_files, "ask_all", lambda _, paths: [int(path.split("-")[1]) for path in paths])
        return deal([f"{number}-{size}" for number, size in enumerate(sizes)])


@given(st.lists(st.integers(0, 4 * GIB), max_size=40), st.integers(1, 60))
def test_all_files_are_dealt_in_order_to_tasks_whose_runs_are_few(sizes: list[int], times: int) -> None:
    sizes *= times
    groups = dealt(sizes)
    assert [path for group in groups for path in group] == [
        f"{number}-{size}" for number, size in enumerate(sizes)
    ]
    assert len(groups) * share_of_runs(len(groups)) <= MOST_RUNS


@pytest.mark.parametrize(("size", "least"), [(3 << 20, 60), (20 << 20, 190)])
def test_a_crawl_is_work_for_many_processes(size: int, least: int) -> None:
    assert least <= len(dealt([size] * 90_000)) <= 400


def test_little_is_one_task() -> None:
    assert len(dealt([1000] * 2000)) == 1
