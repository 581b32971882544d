"""Large sorted gzip files are read again in place of being spilled: the cluster is the same."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands.clusters import zipnum
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import StoppedError
from cdxmill.running.failures import Failures
from cdxmill.stages.lines import sorted_input
from cdxmill.stages.lines.sort_lines import OpenRun, Run, Slice, cut_runs
from cdxmill.tasks import sampling, sorting

from ..material.cdx_files import many_lines, sort_unique, write_gzip, write_plain
from ..material.clusters import check_cluster, published


@pytest.fixture(autouse=True)
def _all_count_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "LEAST_SORTED", 1)
    monkeypatch.setattr(sampling, "_LEAST", 1)
    monkeypatch.setattr(sorted_input, "APART", 1000)
    monkeypatch.setattr(sorted_input, "BATCH", 5000)


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    """Sorted files of many members, with lines in common and twice, and some that have to be spilled."""
    lines = many_lines(4000)
    paths = [
        write_gzip(
            tmp_path / f"{number}.cdx.gz", sorted([*lines[number::5], *lines[:20], *lines[number::15]]), 60
        )
        for number in range(4)
    ]
    paths.append(write_gzip(tmp_path / "one-member.cdx.gz", sorted(lines[4::5])))
    paths.append(write_gzip(tmp_path / "twice.cdx.gz", sorted(lines[:90] * 2), 9))
    paths.append(write_gzip(tmp_path / "header.cdx.gz", [b" CDX N b a", *sorted(lines[:900])], 9))
    paths.append(write_gzip(tmp_path / "unsorted.cdx.gz", lines[:900], 9))
    paths.append(write_plain(tmp_path / "plain.cdx", sorted(lines[:900])))
    paths.append(write_gzip(tmp_path / "sorted-at-first.cdx.gz", [*sorted(lines[50:950]), *lines[:50]]))
    paths.append(write_gzip(tmp_path / "one-member-header.cdx.gz", [b" CDX N b a", *sorted(lines[:900])]))
    return paths


def build(paths: list[Path], directory: Path, failures: Failures | None = None, processes: int = 1) -> None:
    options = ZipnumOptions(shards=5, block_lines=100, quiet=True, processes=processes)
    build_cluster(list(map(str, paths)), directory, options, failures or Failures())


def sources_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are runs as they are, once a cluster is built."""
    sources: list[str] = []

    def noting(runs: Sequence[Run], points: Sequence[bytes], open_run: OpenRun) -> list[list[Slice]]:
        sources.extend(Path(run.source).name for run in runs if run.source)
        return cut_runs(runs, points, open_run)

    monkeypatch.setattr(zipnum, "cut_runs", noting)
    return sources


@pytest.mark.parametrize("processes", [1, 2])
def test_sorted_files_give_the_cluster_that_spilled_ones_give(
    inputs: list[Path], processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = sources_of(monkeypatch)
    build(inputs, tmp_path / "C", processes=processes)
    assert sorted(sources) == [f"{number}.cdx.gz" for number in range(4)]
    check_cluster(tmp_path / "C", sort_unique(inputs), 100)
    monkeypatch.setattr(sorting, "LEAST_SORTED", 1 << 40)
    build(inputs, tmp_path / "spilled")
    assert published(tmp_path / "C") == published(tmp_path / "spilled")


@pytest.mark.parametrize("place", [0, 5000, 11_999], ids=["start", "middle", "end"])
@pytest.mark.parametrize("write", [write_plain, write_gzip], ids=["plain", "one-member"])
def test_a_file_of_many_pieces_loses_nothing_where_its_order_ends(
    write: Callable[[Path, list[bytes]], Path], place: int, tmp_path: Path
) -> None:
    lines = sorted(many_lines(12_000))
    path = write(tmp_path / "lines.cdx", [*lines[:place], *lines[:place:-1], lines[place]])
    build([path], tmp_path / "C")
    check_cluster(tmp_path / "C", sort_unique([path]), 100)


@pytest.mark.parametrize("number", [1, 4], ids=["members", "one-member"])
def test_a_damaged_sorted_file_is_told_once_and_leaves_no_line(
    number: int, inputs: list[Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    damaged = inputs.pop(number)
    data = bytearray(damaged.read_bytes())
    data[-100] ^= 1
    damaged.write_bytes(data)
    failures = Failures()
    build([inputs[0], damaged, *inputs[1:]], tmp_path / "C", failures)
    assert failures.count == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"{damaged}: ")
    assert "none of its lines are in the cluster" in line
    check_cluster(tmp_path / "C", sort_unique(inputs), 100)


def before_shards(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """`change` is done between the two readings of the inputs."""
    write_shards = zipnum._write_shards

    def changed(*args: Any) -> Any:
        change()
        return write_shards(*args)

    monkeypatch.setattr(zipnum, "_write_shards", changed)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "0.cdx.gz: cannot be read (No such file or directory); run it again"),
        ("other", "0.cdx.gz: .*; run it again"),
        ("newer", "inputs were changed while they were read; run it again"),
    ],
)
def test_a_sorted_file_that_is_changed_meanwhile_stops_it(
    name: str, message: str, inputs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: dict[str, Callable[[], object]] = {
        "gone": inputs[0].unlink,
        "other": lambda: inputs[0].write_bytes(gzip.compress(b"com,a)/ 2020 {}\n")),
        "newer": lambda: os.utime(inputs[0], (1, 1)),
    }
    saved = shutil.copyfile(inputs[0], tmp_path / "saved")
    before_shards(monkeypatch, changes[name])
    with pytest.raises(StoppedError, match=message.replace("(", r"\(").replace(")", r"\)")):
        build(inputs, tmp_path / "C")
    assert not (tmp_path / "C/cluster.json").exists()
    monkeypatch.undo()
    shutil.copyfile(saved, inputs[0])
    build(inputs, tmp_path / "C")
    check_cluster(tmp_path / "C", sort_unique(inputs), 100)
