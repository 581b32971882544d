"""A cluster without cluster.json gets the files that a change needs; those that it has stay as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cluster import change
from cdxmill.cluster.write import read_manifest, read_record
from cdxmill.commands.collections.adopt import adopt
from cdxmill.errors import InputError, UsageError
from cdxmill.running.failures import Failures
from cdxmill.storage.location import locate
from tests.material.held import check_refused

LINES = [b'com,a)/%03d 20200101000000 {"n": %d}\n' % (number, number) for number in range(30)]
POINTS = b"com,a)/010 20200101000000\ncom,a)/020 20200101000000\n"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads the cluster, and the machine stays on."""
    monkeypatch.setattr(change, "LOCATIONS_FIRST", 0)
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Three shards, each with a block of 4 lines that follows one of 6, without a cluster.json."""
    (tmp_path / "a.cdxj").write_bytes(b"".join(LINES))
    (tmp_path / "points").write_bytes(POINTS)
    place = tmp_path / "c"
    cdxmill.zipnum(tmp_path / "a.cdxj", output=place, splits=tmp_path / "points", numlines=6)
    (place / "cluster.json").unlink()
    return place


def files_of(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir() if path.name[0] != "."}


@pytest.mark.parametrize(
    "missing",
    [
        ["splits.txt", "splits.seq", "cluster.loc", "part-00000", "part-00001", "part-00002"],
        ["splits.seq"],
        ["splits.txt"],
        ["cluster.loc", "cluster.summary"],
    ],
    ids="+".join,
)
def test_missing_files_are_those_of_a_build(missing: list[str], cluster: Path) -> None:
    before = files_of(cluster)
    for name in missing:
        (cluster / name).unlink()
    adopt(cluster, Failures(printed=False), 1, True)
    after = files_of(cluster)
    manifest = read_manifest(locate(cluster / "cluster.json"))
    assert after.keys() - before.keys() <= {"cluster.json", "changes.jsonl"}
    assert {name: after[name] for name in before} == before
    assert (manifest.lines, manifest.blocks, manifest.numlines) == (30, 6, 6)
    assert [shard.lines for shard in manifest.shards] == [10, 10, 10]
    assert not cdxmill.verify(cluster).failures


def test_a_list_of_places_stays(cluster: Path) -> None:
    own = "".join(f"cdx-0000{number}.gz\thttps://a.example/{number}.gz\n" for number in range(3)).encode()
    (cluster / "cluster.loc").write_bytes(own)
    adopt(cluster, Failures(printed=False), 1, True)
    assert (cluster / "cluster.loc").read_bytes() == own


@pytest.mark.usefixtures("cluster")
def test_an_empty_shard_has_no_split_point(tmp_path: Path) -> None:
    (tmp_path / "points").write_bytes(POINTS + b"com,a)/029x\n")
    cluster = tmp_path / "d"
    cdxmill.zipnum(tmp_path / "a.cdxj", output=cluster, splits=tmp_path / "points")
    for name in ("cluster.json", "splits.txt", "splits.seq"):
        (cluster / name).unlink()
    before = files_of(cluster)
    with pytest.raises(UsageError, match="one of its shards is empty, or has a key of the next one"):
        adopt(cluster, Failures(printed=False), 1, True)
    assert files_of(cluster) == before


@pytest.mark.parametrize(
    ("point", "is_cut"), [(b'com,a)/010 20200101000000 {"n": 1}', True), (b"com,a)/010", False)]
)
def test_a_key_with_lines_in_two_shards_has_no_split_point(
    point: bytes, is_cut: bool, tmp_path: Path
) -> None:
    """Lines of this key that are added or removed later would be looked for in one of them."""
    (tmp_path / "a.cdxj").write_bytes(
        b"".join([*LINES[:11], b'com,a)/010 20200101000000 {"n": 1}\n', *LINES[11:]])
    )
    (tmp_path / "points").write_bytes(point + b"\n")
    cluster = tmp_path / "d"
    cdxmill.zipnum(tmp_path / "a.cdxj", output=cluster, splits=tmp_path / "points", processes=1)
    for name in ("cluster.json", "splits.txt", "splits.seq"):
        (cluster / name).unlink()
    if is_cut:
        with pytest.raises(UsageError, match="one of its shards is empty, or has a key of the next one"):
            adopt(cluster, Failures(printed=False), 1, True)
    else:
        adopt(cluster, Failures(printed=False), 1, True)
        assert (cluster / "cluster.json").exists()


def test_a_cluster_with_a_manifest_is_not_read(cluster: Path) -> None:
    adopt(cluster, Failures(printed=False), 1, True)
    (cluster / "cdx-00001.gz").write_bytes(b"corrupt")
    noted = Failures(printed=False)
    adopt(cluster, noted, 1, True)
    assert noted.items == []


@pytest.mark.parametrize("name", ["splits.txt", "splits.seq"])
def test_split_points_of_other_shards_are_refused_before_anything_is_written(
    name: str, tmp_path: Path, cluster: Path
) -> None:
    (tmp_path / "points").write_bytes(POINTS.replace(b"020 ", b"021 "))
    cdxmill.zipnum(tmp_path / "a.cdxj", output=tmp_path / "d", splits=tmp_path / "points")
    for missing in ("splits.txt", "splits.seq", "part-00000", "part-00001", "part-00002", "cluster.loc"):
        (cluster / missing).unlink()
    (cluster / name).write_bytes((tmp_path / "d" / name).read_bytes())
    before = files_of(cluster)
    with pytest.raises(UsageError, match=f"{name} has other split points than its shards"):
        adopt(cluster, Failures(printed=False), 1, True)
    assert files_of(cluster) == before


def test_a_cluster_with_parts_alone(cluster: Path) -> None:
    (cluster / "cluster.idx").unlink()
    adopt(cluster, Failures(printed=False), 1, True)
    assert not cdxmill.verify(cluster).failures


def test_a_shard_with_lines_of_the_next_one_is_an_error(tmp_path: Path) -> None:
    """The index, which has the first line of each block, does not show it."""
    rows = b""
    for number, lines in enumerate(([*LINES[:10], LINES[15]], LINES[10:15])):
        one = tmp_path / str(number)
        (tmp_path / "a.cdxj").write_bytes(b"".join(lines))
        cdxmill.zipnum(tmp_path / "a.cdxj", output=one, shards=1)
        name = b"cdx-0000%d.gz" % number
        rows += (one / "cluster.idx").read_bytes().replace(b"cdx-00000.gz", name)
        (one / "cdx-00000.gz").rename(tmp_path / name.decode())
    place = tmp_path / "c"
    place.mkdir()
    for path in tmp_path.glob("cdx-*"):
        path.rename(place / path.name)
    (place / "cluster.idx").write_bytes(rows)
    noted = Failures(printed=False)
    with pytest.raises(InputError, match="so it was not changed"):
        adopt(place, noted, 1, True)
    assert noted.count == 1
    assert {path.name for path in place.iterdir()} >= {"cluster.idx", "cdx-00000.gz", "cdx-00001.gz"}
    assert not (place / "part-00000").exists()


@pytest.mark.parametrize(("block_lines", "full"), [(3, 3), (4, 4), (9, 9), (10, 10), (20, 10)])
def test_a_full_block_has_as_many_lines_as_the_longest(block_lines: int, full: int, cluster: Path) -> None:
    """Also if each shard has one block, which is its last."""
    splits = cluster.parent / "points"
    cdxmill.zipnum(
        cluster.parent / "a.cdxj",
        output=cluster.parent / "d",
        splits=splits,
        numlines=block_lines,
        processes=1,
    )
    (cluster.parent / "d/cluster.json").unlink()
    told: list[str] = []
    failures = Failures(write=told.append)
    failures.add("before", None, "another input")
    adopt(cluster.parent / "d", failures, 1, True)
    manifest = read_manifest(locate(cluster.parent / "d/cluster.json"))
    assert (manifest.numlines, manifest.change, manifest.compressor.section_lines) == (full, 1, 0)
    assert told[1:] == [f"{cluster.parent}/d: note: has no cluster.json, so all of it is checked first"]
    record = read_record(locate(cluster.parent / "d"))
    assert record is not None and record[0] == "change 1"
    assert (cluster.parent / "d/.kept.json").read_bytes() == b"{}"


def test_a_change_that_only_has_to_be_finished_is_none_of_another_tool(cluster: Path) -> None:
    """Its cluster.json is in .change."""
    (cluster / ".change").mkdir()
    (cluster / ".change/ready.json").write_text("{}")
    before, told = files_of(cluster), list[str]()
    adopt(cluster, Failures(write=told.append), 1, True)
    assert (files_of(cluster), told) == (before, [])


def test_shards_elsewhere_are_not_adopted(cluster: Path) -> None:
    (cluster.parent / "x").mkdir()
    rows = []
    for number in range(3):
        name = f"cdx-0000{number}.gz"
        (cluster / name).rename(cluster.parent / "x" / name)
        rows.append(f"{name}\t{cluster.parent}/x/{name}\n")
    (cluster / "cluster.loc").write_text("".join(rows))
    before = files_of(cluster)
    with pytest.raises(UsageError) as told:
        adopt(cluster, Failures(printed=False), 1, True)
    assert str(told.value) == (
        f"{cluster}: its shards are elsewhere, or have other names than cdx-00000.gz;"
        f" make a copy that can be changed: cdxmill merge -o NEW {cluster}"
    )
    assert files_of(cluster) == before


def test_nobody_else_writes_meanwhile(cluster: Path) -> None:
    check_refused(cluster, adopt, cluster, Failures(printed=False), 1, True)
    assert not (cluster / "cluster.json").exists()
