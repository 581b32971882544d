"""Clusters whose lines come into another one: whether their blocks are copied, which are corrupt, and the lines in some bounds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.cluster import change
from cdxmill.cluster.write import read_manifest
from cdxmill.commands.collections import add_clusters, other_clusters
from cdxmill.commands.collections.add_clusters import lines_of_cluster, why_not_added
from cdxmill.commands.collections.other_clusters import (
    OtherCluster,
    OtherClusters,
    check_shards,
    why_not_copied,
)
from cdxmill.errors import InputError, OutageError
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry, UsedCompressor
from cdxmill.formats.clusters.zipnum import MANIFEST, BlockRef, parse_index_line
from cdxmill.messages import Step
from cdxmill.options.collections import Adding
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import listened_to
from cdxmill.search.lookup import open_searched
from cdxmill.stages.lines.drop_lines import LineRange
from cdxmill.storage.location import Location, locate

LINES = [b"com,a)/%d 2020 {}" % number for number in range(9)]
EXTRA = [b"com,a)/%d 2021 {}" % number for number in range(0, 9, 4)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clusters of LINES: plain, of shards with 3, 2 and 1 blocks of at most 2 lines; and over, which has EXTRA in an overlay, too."""
    place = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change, "LOCATIONS_FIRST", 0)
        patch.setattr(os, "fsync", lambda _: None)
        for name, lines in (("lines", LINES), ("extra", EXTRA)):
            (place / f"{name}.cdxj").write_bytes(b"\n".join([*lines, b""]))
        (place / "points").write_text("com,a)/5\ncom,a)/8\n")
        for name in ("plain", "over"):
            cdxmill.zipnum(
                place / "lines.cdxj", output=place / name, splits=place / "points", numlines=2, processes=1
            )
        cdxmill.add(place / "over", place / "extra.cdxj", cdx=True, mode="overlay", keep_old=0, processes=1)
        for name in ("plain", "over"):
            (place / name / "cluster.loc").unlink()  # it has the places of the shards here
    return place


@pytest.fixture(autouse=True)
def here(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("plain", "over"):
        shutil.copytree(built / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)


def other(name: str) -> OtherCluster:
    place = locate(name)
    return OtherCluster(place, read_manifest(place / MANIFEST))


def blocks(name: str, shard: int = 0) -> list[BlockRef]:
    rows = Path(name, f"part-{shard:05d}").read_bytes().splitlines()
    return [parse_index_line(row) for row in rows]


def spoil(name: str, shard: int, *numbers: int) -> None:
    """Make blocks of a shard corrupt."""
    path = Path(name, f"cdx-{shard:05d}.gz")
    data = bytearray(path.read_bytes())
    for number in numbers:
        start = blocks(name, shard)[number].offset
        data[start : start + 4] = b"\0\0\0\0"
    path.write_bytes(data)


USED = UsedCompressor("zlib-ng", "2.2", 5, 4)


def made(**changed: Any) -> OtherCluster:
    manifest = Manifest((ShardEntry("cdx-00000.gz", 9, 5, 3, ""),), 2, USED, "")
    return OtherCluster(Location("/d/C"), manifest._replace(**changed))


@pytest.mark.parametrize(
    ("clusters", "wanted", "why"),
    [
        ([], USED, ""),
        ([made(), made()], USED, ""),
        ([made()], USED._replace(version=""), ""),
        ([made()], USED._replace(version="2.1"), "/d/C has another compressor"),
        ([made()], USED._replace(library="zlib"), "/d/C has another compressor"),
        ([made()], USED._replace(level=6, version=""), "/d/C has another compressor"),
        ([made()], USED._replace(section_lines=0, version=""), "/d/C has another compressor"),
        ([made(), made(numlines=3)], USED, "/d/C has 3 lines per block, not 2"),
        ([made(), made(compressor=USED._replace(library="zlib"))], USED, "/d/C has another compressor"),
    ],
)
def test_blocks_are_copied_between_clusters_that_have_them_alike(
    clusters: list[OtherCluster], wanted: UsedCompressor, why: str
) -> None:
    """A wanted compressor without a version may have any."""
    assert why_not_copied(clusters, wanted, 2) == why


@pytest.mark.parametrize(
    ("corrupt", "reasons", "is_whole"),
    [
        ([], [], [True, True]),
        ([("plain", 0, [1])], ["plain/cdx-00000.gz@1: the lines of this block are missing"], [False, True]),
        ([("plain", 0, [0, 2])], ["plain/cdx-00000.gz@0: the lines of this block are missing",
                                 "plain/cdx-00000.gz@2: the lines of this block are missing"], [False, True]),
        ([("plain", 0, [0, 1, 2])], ["plain/cdx-00000.gz: none of its lines are in the cluster"], [False, True]),
        ([("over", 2, [0])], ["over/cdx-00002.gz: none of its lines are in the cluster"], [True, False]),
        ([("plain", 0, [1]), ("plain", 1, [0]), ("over", 1, [1])],
         ["plain/cdx-00000.gz@1: the lines of this block are missing", "plain/cdx-00001.gz@0: the lines of this block are missing",
          "over/cdx-00001.gz@1: the lines of this block are missing"], [False, False]),
    ],
)  # fmt: skip
def test_corrupt_blocks_are_reported_and_skipped_and_no_block_beside_them_is_copied(
    corrupt: list[tuple[str, int, list[int]]], reasons: list[str], is_whole: list[bool]
) -> None:
    for one in corrupt:
        spoil(one[0], one[1], *one[2])
    failures = Failures(printed=False)
    found = check_shards([other("plain"), other("over")], failures, 1, True)
    assert [one.is_whole for one in found] == is_whole
    assert [one._replace(is_whole=True, skipped=frozenset()) for one in found] == [
        other("plain"),
        other("over"),
    ]
    wanted = {(name, shard, blocks(name, shard)[one]) for name, shard, numbers in corrupt for one in numbers}
    assert {
        (one.place.name, int(block.shard[4:9]), block) for one in found for block in one.skipped
    } == wanted
    told = []
    for failure in failures.items:
        name, shard = failure.path.split("/")[0], int(failure.path[-8:-3])
        starts = [block.offset for block in blocks(name, shard)]
        where = "" if failure.offset is None else f"@{starts.index(failure.offset)}"
        told.append(f"{failure.path}{where}: {failure.reason.partition('; ')[2]}")
        assert failure.reason.startswith("the block is corrupt (")
        assert failure.hint == "check it with cdxmill verify, or build the cluster again"
    assert told == reasons


def test_each_shard_is_a_step_and_failures_are_shown_on_it() -> None:
    spoil("plain", 0, 0)
    failures, steps = Failures(printed=False), list[Step]()
    with listened_to(steps.append):
        check_shards([other("plain"), other("over")], failures, 1, False)
    last = steps[-1]
    assert last == Step("checking shards", 7, 7, last.bytes, 0, 1)


def test_a_missing_shard_without_blocks_costs_no_line() -> None:
    one = other("plain")
    empty = ShardEntry("cdx-00009.gz", 0, 0, 0, "")
    one = one._replace(manifest=one.manifest._replace(shards=(*one.manifest.shards, empty)))
    failures = Failures(printed=False)
    (found,) = check_shards([one], failures, 1, True)
    assert (found.is_whole, found.skipped, failures.items) == (False, frozenset(), [])


def test_a_shard_with_other_bytes_whose_blocks_can_be_read_is_not_copied() -> None:
    """They are not those that cluster.json says."""
    path = Path("plain/cdx-00001.gz")
    path.write_bytes(path.read_bytes() + b"more")
    failures = Failures(printed=False)
    (found,) = check_shards([other("plain")], failures, 1, True)
    assert (found.is_whole, found.skipped, failures.items) == (False, frozenset(), [])


def test_an_outage_is_no_corrupt_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> str:
        raise OutageError("cdx-00000.gz", "did not answer")

    for name in ("sha256_of", "lines_of"):
        with monkeypatch.context() as patch:
            patch.setattr(other_clusters, "sha256_of", lambda place: "")
            patch.setattr(other_clusters, name, fail)
            with pytest.raises(OutageError):
                check_shards([other("plain")], Failures(printed=False), 1, True)


def test_a_missing_shard_has_no_block_that_can_be_read() -> None:
    Path("plain/cdx-00001.gz").unlink()
    failures = Failures(printed=False)
    (found,) = check_shards([other("plain")], failures, 1, True)
    assert found.skipped == frozenset(blocks("plain", 1))
    assert [one.path for one in failures.items] == ["plain/cdx-00001.gz"]


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as files:
        yield files


def lines_in(others: OtherClusters, *bounds: Any, excluded: Sequence[LineRange] = ()) -> list[list[bytes]]:
    """The lines of each source."""
    found = []
    for source in others.sources(bounds or (b"", None), excluded):
        lines: list[bytes] = []
        while source.low is not None:
            if not source.is_open:
                source.unpack()
            else:
                lines += source.take(b"\xff", None)
        found.append(lines)
    return found


@pytest.mark.parametrize(
    ("low", "high"),
    [(b"", None), (b"com,a)/1", b"com,a)/2"), (b"com,a)/4 2020", b"com,a)/5"), (b"com,a)/7", None), (b"", b"com,a)/0"), (b"d", None), (b"com,a)/1", b"com,a)/10")],
)  # fmt: skip
@pytest.mark.parametrize(
    "excluded", [[], [LineRange(b"com,a)/1", b"com,a)/2"), LineRange(b"com,a)/8", b"x")]]
)
def test_all_lines_in_bounds_come_from_shards_and_overlays(
    low: bytes, high: bytes | None, excluded: list[LineRange], opened: ExitStack
) -> None:
    others = OtherClusters([other("plain"), other("over")], opened)

    def wanted(lines: list[bytes]) -> list[bytes]:
        inside = [line for line in lines if low <= line and (high is None or line < high)]
        return [line for line in inside if not any(one.low <= line < one.high for one in excluded)]

    found = [wanted(LINES), wanted(LINES), wanted(EXTRA)]
    assert lines_in(others, low, high, excluded=excluded) == found
    assert others.have_lines((low, high), excluded) == any(found)


def test_blocks_that_are_skipped_have_no_lines(opened: ExitStack) -> None:
    spoil("plain", 0, 0)
    (one,) = check_shards([other("plain")], Failures(printed=False), 1, True)
    others = OtherClusters([one], opened)
    assert lines_in(others) == [LINES[2:]]
    assert not others.have_lines((b"", LINES[1]), ())
    with pytest.raises(InputError, match=r"plain: cdx-00000\.gz@0: the block is corrupt"):
        lines_in(OtherClusters([other("plain")], opened))


def test_the_lines_of_a_block_are_counted_without_reading_it_unless_the_cluster_was_changed(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last block of a shard may have fewer lines than the others."""
    others = OtherClusters([other("plain"), other("over")], opened)
    read: list[bytes] = []
    real = other_clusters.lines_of

    def spy(block: BlockRef, reader: Any) -> list[bytes]:
        read.append(block.shard)
        return real(block, reader)

    monkeypatch.setattr(other_clusters, "lines_of", spy)
    assert others.have_lines((b"", None), ())
    assert read == []  # a block in the bounds has lines
    plain, over, young = others.sources((b"", None))
    assert (plain.may_stay, over.may_stay, young.may_stay) == (True, True, False)
    for source, number, is_read in ((plain, 0, False), (over, 1, True)):
        counts = []
        for shard in range(3):
            for block in blocks("plain", shard):
                assert source._count_of is not None
                counts.append(source._count_of(block._replace(shard=b"%d/%b" % (number, block.shard))))
        assert counts == [2, 2, 1, 2, 1, 1]
        assert bool(read) == is_read


def test_bytes_are_read_by_the_number_of_the_cluster(opened: ExitStack) -> None:
    others = OtherClusters([other("over"), other("plain")], opened)
    first = Path("plain/cdx-00001.gz").read_bytes()[2:9]
    Path("over/cdx-00001.gz").write_bytes(bytes(99))
    assert others.read(b"1/cdx-00001.gz", 2, 7) == first
    assert others.read(b"0/cdx-00001.gz", 2, 7) == bytes(7)


@pytest.mark.parametrize("excluded", [[], [LineRange(b"com,a)/1", b"com,a)/3")]])
def test_some_lines_of_a_cluster_tell_what_it_has(
    excluded: list[LineRange], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of blocks evenly over all keys, without corrupt ones."""
    one = other("over")

    def outside(lines: list[bytes]) -> list[bytes]:
        return [line for line in lines if not any(found.low <= line < found.high for found in excluded)]

    whole = [LINES[0:2], LINES[2:4], LINES[4:5], LINES[5:7], LINES[7:8], LINES[8:9], EXTRA]
    with open_searched(one.place) as cluster:
        for most, step in ((64, 1), (6, 1), (4, 1), (3, 2), (2, 3), (1, 6)):
            monkeypatch.setattr(add_clusters, "_BLOCKS", most)
            found = lines_of_cluster(one, cluster, excluded)
            assert list(found.some) == list(map(outside, whole[::step]))
            assert list(found.everything()) == list(map(outside, whole))
        few = one._replace(skipped=frozenset(blocks("over")[:2]))
        assert list(lines_of_cluster(few, cluster, excluded).everything()) == list(map(outside, whole[2:]))


LARGE = 1000


@pytest.mark.parametrize(
    ("own", "lines", "mode", "has_engine", "why"),
    [
        (LARGE - 1, 1, None, False, ""),
        (LARGE, 250, None, False, "there are few new lines"),
        (LARGE, 251, None, False, ""),
        (LARGE, 250, "rewrite", False, ""),
        (LARGE, 250, None, True, ""),
        (LARGE, 250, "overlay", False, "--mode overlay was given"),
        (9, 250, "overlay", True, "--mode overlay was given"),
    ],
)
def test_few_lines_may_become_an_overlay_of_a_large_cluster(
    own: int, lines: int, mode: str | None, has_engine: bool, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add_clusters, "LARGE", LARGE)
    one = made().manifest
    mine = change.Change(Location("/C"), one._replace(shards=(one.shards[0]._replace(lines=own),)), [], 1)
    half = (
        made(shards=(one.shards[0]._replace(lines=lines - 100),)),
        made(shards=(one.shards[0]._replace(lines=100),)),
    )
    engine = run_tasks if has_engine else None
    asked = Adding("/C", ["D"], cdx=True, mode=mode)
    assert why_not_added(mine, [], half, asked, engine) == why
    odd = half[0], half[1]._replace(manifest=half[1].manifest._replace(numlines=3))
    assert why_not_added(mine, [], odd, asked, engine) == (why or "/d/C has 3 lines per block, not 2")
    assert why_not_added(mine, ["a.cdxj"], half, asked, engine) == "a.cdxj is not a cluster with cluster.json"
    assert why_not_added(mine, [], [], asked, engine) == "/C is not a cluster with cluster.json"
    grown = mine._replace(manifest=mine.manifest._replace(overlays=one.shards))
    if mode is None:
        assert why_not_added(grown, [], half, asked, engine) == "/C has overlays"
    assert (
        why_not_added(
            mine._replace(manifest=mine.manifest._replace(compressor=USED._replace(version="1"))),
            [],
            half,
            asked,
            engine,
        )
        == why
    )
