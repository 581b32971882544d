"""`cdxmill verify` of a cluster without cluster.json finds signs that it is not complete."""

from __future__ import annotations

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
