"""Files are grouped by their sizes: all of them, in order, in so few groups that their runs can be merged at once."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.inputs.cdx_files import CdxSource, Inventory
from cdxmill.stages.lines.merge_lines import MOST_RUNS
from cdxmill.storage.location import Location, locate
from cdxmill.tasks.sampling import group_sources, guess_ceiling, shards_by_size
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


LINES = b"".join(b"com,a)/%04d 2020 {}\n" % number for number in range(500))


def inventory_of(directory: Path, size: int, *files: bytes) -> Inventory:
    """Files of which the inventory says that they have `size` bytes together."""
    for number, data in enumerate(files):
        (directory / f"{number}.cdxj").write_bytes(data)
    places = [locate(directory / f"{number}.cdxj") for number in range(len(files))]
    return Inventory([CdxSource(place, size // len(files), 0) for place in places])


@pytest.mark.parametrize(
    ("files", "times", "size", "ceiling"),
    [
        ([LINES], 1000, 1000, 1.25 * 1000 / 500_000),
        ([LINES, LINES], 1000, 1000, 1.25 * 1000 / 1_000_000),
        ([LINES], 1000, 500_000, 1.0),
        ([gzip.compress(LINES, mtime=0)], 1, 100, 1.0),
        ([b"x" * 500], 20_000, 100, 1.0),
        ([b""], 1, 100, 1.0),
        ([gzip.compress(LINES, mtime=0)[:-1]], 90_000, 1000, 1.25 * 1000 / (500 * 90_000)),
        ([b"\x1f\x8bno gzip" * 99], 10_000, 1000, 1.0),
    ],
)
def test_the_lines_are_guessed_from_the_starts_of_the_files(
    files: list[bytes], times: int, size: int, ceiling: float, tmp_path: Path
) -> None:
    inventory = inventory_of(tmp_path, sum(map(len, files)) * times, *files)
    assert guess_ceiling(inventory, size) == pytest.approx(ceiling, rel=0.01)


def test_the_lines_of_8_mib_are_not_guessed(tmp_path: Path) -> None:
    for size, is_guessed in ((8 << 20) - 1, False), (8 << 20, True):
        assert (guess_ceiling(inventory_of(tmp_path, size, LINES), 10) < 1) is is_guessed
