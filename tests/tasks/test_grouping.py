"""Files are grouped by their sizes: all of them, in order, in so few groups that their runs can be merged at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.inputs.cdx_files import CdxSource
from cdxmill.stages.lines.merge_lines import MOST_RUNS
from cdxmill.storage.location import Location
from cdxmill.tasks.sampling import group_sources, shards_by_size
from cdxmill.tasks.sorting import share_of_runs

GIB = 1 << 30


def sources(sizes: list[int]) -> list[CdxSource]:
    return [CdxSource(Location(str(number)), size, 0) for number, size in enumerate(sizes)]


@given(st.lists(st.integers(0, 4 * GIB), max_size=40), st.integers(1, 60))
def test_all_files_are_grouped_in_order_and_leave_few_runs(sizes: list[int], times: int) -> None:
    files = sources(sizes * times)
    groups = group_sources(files)
    assert [source for group in groups for source in group] == files
    assert len(groups) * share_of_runs(len(groups)) <= MOST_RUNS


@pytest.mark.parametrize(("size", "least"), [(3 << 20, 60), (20 << 20, 190)])
def test_a_crawl_is_work_for_many_processes(size: int, least: int) -> None:
    assert least <= len(group_sources(sources([size] * 90_000))) <= 400


def test_a_task_of_spark_that_is_repeated_reads_256_mb_at_most() -> None:
    """It had at most 200 tasks, of 1.5 GB each for a crawl, whatever the number of cores."""
    groups = group_sources(sources([3 << 20] * 90_000), 800, 100_000)
    assert max(sum(source.size for source in group) for group in groups) <= 256 << 20
    assert len(groups) > 1000
    assert len(group_sources(sources([1 << 20] * 90_000), 5000, 100_000)) > 4000, "as many as there are cores"


def test_little_is_one_task() -> None:
    assert len(group_sources(sources([1000] * 2000))) == 1


@pytest.mark.parametrize(
    ("sizes", "shards"),
    [
        ({}, 1),
        ({"a.cdx.gz": 0}, 1),
        ({"a.cdx.gz": 64 << 20}, 1),
        ({"a.cdx.gz": (64 << 20) + 1}, 2),
        ({"a.CDX.GZ": (64 << 20) + 1}, 2),
        ({"a.cdxj": 6 * (64 << 20)}, 1),
        ({"a.cdxj": 6 * ((64 << 20) + 1)}, 2),
        ({"a.cdx.gz": 32 << 20, "b.cdx.gz": 32 << 20}, 1),
        ({"a.cdx.gz": 32 << 20, "b.cdx.gz": 32 << 20, "c.cdxj": 6}, 2),
        ({"a.cdx.gz": 299 * (64 << 20)}, 299),
        ({"a.cdx.gz": 300 * (64 << 20) + 1}, 300),
    ],
    ids=lambda value: (
        "+".join(f"{name}={size}" for name, size in value.items()) if isinstance(value, dict) else None
    ),
)
def test_a_shard_is_for_64_mib_of_gzipped_lines(sizes: dict[str, int], shards: int) -> None:
    assert shards_by_size([CdxSource(Location(name), size, 0) for name, size in sizes.items()]) == shards
