"""`cdxmill verify` of a cluster without cluster.json finds signs that it is not complete."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .checking import found, shard_files


def without_last_shard(cluster: Path) -> None:
    """No trace of the last shard but the split points."""
    name = shard_files(cluster)[-1].name
    for path in (cluster / name, cluster / name.replace("cdx", "part").removesuffix(".gz")):
        path.unlink()
    for path in cluster.glob("cluster.*"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(line for line in lines if name.encode() not in line))


def without_second_shard(cluster: Path) -> None:
    """What a killed job leaves: shards and parts, some of them."""
    for path in [*cluster.glob("*-00001*"), *cluster.glob("cluster.*"), *cluster.glob("splits.*")]:
        path.unlink()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (without_last_shard, "has split points for 4 shards, but 3 were found"),
        (without_second_shard, "cdx-00001.gz: is missing, but there is cdx-00003.gz"),
        (lambda cluster: (cluster / "_temporary").mkdir(), "_temporary: a run that writes this cluster"),
        (
            lambda cluster: (cluster / "_report-00001").touch(),
            "_report-00001: a run that writes this cluster",
        ),
        (lambda cluster: (cluster / ".work").mkdir(), ".work: a run that writes this cluster"),
    ],
)
def test_signs_of_an_incomplete_cluster_are_found_without_the_manifest(
    damage: Callable[[Path], None], reason: str, cluster: Path
) -> None:
    (cluster / "cluster.json").unlink()
    assert found(cluster) == []
    damage(cluster)
    assert any(reason in line for line in found(cluster)), found(cluster)


def test_of_each_sign_the_first_is_reported_alone(cluster: Path) -> None:
    for pattern in ("*-00001*", "*-00002*", "cluster.*", "splits.*"):
        for path in cluster.glob(pattern):
            path.unlink()
    for name in ("_report-00001", "_temporary"):
        (cluster / name).mkdir()
    lines = found(cluster)
    assert sum("is missing, but there is" in line for line in lines) == 1, lines
    assert sum("a run that writes this cluster" in line for line in lines) == 1, lines


@pytest.mark.parametrize(
    "name",
    ["_temporary", "_report-00012", ".work", ".run-3", ".cdx-00000.gz.1.tmp", ".part-00001.tmp", ".cluster.idx.tmp"],
)  # fmt: skip
@pytest.mark.parametrize("also", ["", "x"])
def test_only_what_a_run_leaves_is_a_sign_of_it(name: str, also: str, cluster: Path) -> None:
    (cluster / "cluster.json").unlink()
    (cluster / f"{name}{also}").touch()
    (cluster / f"{also}-{name}").touch()
    wanted = f"{cluster / name}: a run that writes this cluster has not finished"
    assert [line.partition(";")[0] for line in found(cluster)] == ([] if also else [wanted])


@pytest.mark.parametrize(
    ("absent", "told"),
    [
        ([], []),
        ([0], ["cdx-00000.gz: is missing, but there is cdx-00003.gz"]),
        ([0, 2], ["cdx-00000.gz: is missing, but there is cdx-00003.gz"]),
        ([2], ["cdx-00002.gz: is missing, but there is cdx-00003.gz"]),
        ([3], []),
        ([1, 2, 3], []),
    ],
)
def test_the_first_number_that_is_missing_is_reported(
    absent: list[int], told: list[str], cluster: Path
) -> None:
    for pattern in (*(f"*-0000{number}*" for number in absent), "cluster.*", "splits.*"):
        for path in cluster.glob(pattern):
            path.unlink()
    assert found(cluster) == [f"{cluster}/{line}" for line in told]


def test_both_files_of_split_points_are_compared_with_the_number_of_shards(cluster: Path) -> None:
    without_last_shard(cluster)
    (cluster / "cluster.json").unlink()
    reason = "has split points for 4 shards, but 3 were found"
    assert found(cluster) == [f"{cluster}/{name}: {reason}" for name in ("splits.txt", "splits.seq")]
    (cluster / "splits.txt").write_bytes(b"b\na\n")
    first, second = found(cluster)
    assert first.startswith(f"{cluster}/splits.txt: ")
    assert second == f"{cluster}/splits.seq: {reason}"


@pytest.mark.parametrize("name", ["cdx-00009.gz", "part-00009", "overlay-00009-1.gz"])
def test_files_of_no_shard_are_reported(name: str, cluster: Path) -> None:
    shutil.copyfile(cluster / "part-00003", cluster / name)
    assert found(cluster) == [
        f"{cluster / name}: does not belong to this cluster: its index has no lines for it"
    ]


def test_an_index_with_lines_for_another_shard_is_reported(cluster: Path) -> None:
    index = (cluster / "cluster.idx").read_bytes()
    for name in ("cluster.idx", "cluster.summary"):
        (cluster / name).write_bytes(index.replace(b"cdx-00003", b"cdx-00004"))
    lines = found(cluster)
    assert f"{cluster}/cluster.idx: cdx-00004.gz is not in cluster.json" in lines
    assert not any(f"cdx-0000{number}.gz is not in" in line for line in lines for number in range(4))


def test_a_cluster_of_shards_without_an_index_is_checked(cluster: Path) -> None:
    for path in [*cluster.glob("cluster.*"), *cluster.glob("splits.*")]:
        path.unlink()
    assert found(cluster) == []
    shard = cluster / "cdx-00002.gz"
    shard.write_bytes(shard.read_bytes()[:-1])
    assert all(line.startswith(f"{shard}@") for line in found(cluster))
    assert found(cluster) != []


def test_parts_are_missed_if_none_is_there_but_the_manifest_is(cluster: Path) -> None:
    for path in cluster.glob("part-*"):
        path.unlink()
    assert sorted(line.partition(" (")[0] for line in found(cluster)) == [
        f"{cluster}/part-0000{number}: cannot be read" for number in range(4)
    ]
    (cluster / "cluster.json").unlink()
    assert found(cluster) == []
