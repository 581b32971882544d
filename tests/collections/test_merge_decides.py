"""What `merge` gives to the build of the new cluster: shards, split points, archives, and whether blocks are copied."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.cluster import change
from cdxmill.cluster.write import read_manifest
from cdxmill.commands.clusters import zipnum
from cdxmill.commands.clusters.zipnum import Beside
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.collections import merge as module
from cdxmill.commands.collections.merge import merge
from cdxmill.commands.collections.merge_shards import make_merged
from cdxmill.commands.collections.other_clusters import OtherCluster
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.zipnum import MANIFEST
from cdxmill.inputs.cdx_files import Inventory
from cdxmill.messages import Step
from cdxmill.options.collections import Merging
from cdxmill.running.failures import Failures
from cdxmill.running.progress import listened_to
from cdxmill.storage.location import locate

LINES = [b"com,a)/%02d 2020 {}" % number for number in range(20)]
POINT = b"com,a)/06"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clusters with blocks of 2 lines: even and odd, which begin their second shard at POINT; one, of all lines in one shard; and
    over, as even, with an overlay of one line."""
    place = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change, "LOCATIONS_FIRST", 0)
        patch.setattr(os, "fsync", lambda _: None)
        (place / "points").write_bytes(POINT + b"\n")
        for name, lines in (("even", LINES[::2]), ("odd", LINES[1::2]), ("one", LINES), ("more", LINES[1:2])):
            (place / f"{name}.cdxj").write_bytes(b"\n".join([*lines, b""]))
        common: dict[str, Any] = {"numlines": 2, "processes": 1}
        for name in ("even", "odd"):
            cdxmill.zipnum(place / f"{name}.cdxj", output=place / name, splits=place / "points", **common)
        cdxmill.zipnum(place / "one.cdxj", output=place / "one", shards=1, **common)
        shutil.copytree(place / "even", place / "over")
        cdxmill.add(place / "over", place / "more.cdxj", cdx=True, mode="overlay", keep_old=0, processes=1)
    return place


Given = tuple[list[str], str, ZipnumOptions, Beside]


@pytest.fixture
def given(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Given]:
    """What the build was given, in each call."""
    for name in ("even", "odd", "one", "over"):
        shutil.copytree(built / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    seen: list[Given] = []

    def build(
        shards: list[str], place: str, options: ZipnumOptions, failures: Failures, beside: Beside
    ) -> None:
        seen.append((shards, str(place), options, beside))

    monkeypatch.setattr(module, "build_cluster", build)
    return seen


def run(*clusters: str, **options: Any) -> Failures:
    failures = Failures(printed=False)
    merge(Merging(list(clusters), **{"output": "new", "numlines": 2, "processes": 1, **options}), failures)
    return failures


def test_all_shards_and_overlays_are_merged(given: list[Given]) -> None:
    assert run("over", "odd").count == 0
    ((shards, place, _, _),) = given
    names = [
        "over/cdx-00000.gz",
        "over/cdx-00001.gz",
        "over/overlay-00001-1.gz",
        "odd/cdx-00000.gz",
        "odd/cdx-00001.gz",
    ]
    assert ([os.path.relpath(one) for one in shards], os.path.relpath(place)) == (names, "new")


@pytest.mark.parametrize(
    ("clusters", "options", "points"),
    [
        (["even", "odd"], {}, (POINT,)),
        (["even", "even"], {}, (POINT,)),
        (["even"], {}, (POINT,)),
        (["even", "one"], {}, None),
        (["one"], {}, ()),
        (["even", "odd"], {"shards": 3}, None),
        (["even", "odd"], {"splits": "others"}, (b"com,a)/03",)),
    ],
)
def test_the_split_points_that_all_clusters_have_are_used_unless_others_are_asked_for(
    clusters: list[str], options: dict[str, Any], points: tuple[bytes, ...] | None, given: list[Given]
) -> None:
    Path("others").write_bytes(b"com,a)/03\n")
    run(*clusters, **options)
    ((_, _, found, _),) = given
    assert (found.points is None) == (points is None)
    assert points is None or tuple(found.points or ()) == points


def test_split_points_that_are_given_are_read_once(
    given: list[Given], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may come from a pipe."""
    read: list[str] = []

    def read_once(path: str) -> list[bytes]:
        read.append(path)
        return [b"com,a)/03"]

    monkeypatch.setattr(zipnum, "read_splits", read_once)
    run("even", "odd", splits="pipe")
    assert (read, given[0][2].points) == (["pipe"], (b"com,a)/03",))


@pytest.mark.parametrize(
    ("spoil", "options", "is_copied"),
    [
        ("", {}, True),
        ("", {"numlines": 3}, False),
        ("", {"compressor": "zlib"}, False),
        ("", {"level": 1}, False),
        ("manifest", {}, False),
        ("index", {}, False),
        ("exclude", {}, False),
    ],
)
def test_blocks_are_copied_if_all_clusters_are_sound_and_have_such_blocks(
    spoil: str, options: dict[str, Any], is_copied: bool, given: list[Given]
) -> None:
    """What the new cluster excludes may be in any block."""
    if spoil == "manifest":
        Path("odd/cluster.json").unlink()
    elif spoil == "index":
        Path("odd/cluster.idx").write_bytes(Path("odd/cluster.idx").read_bytes().replace(b"\t", b" ", 1))
    elif spoil == "exclude":
        Path("new").mkdir()
        Path("new/exclude.txt").write_text("a.com/05\n")
    failures = run("even", "odd", **options)
    assert bool(failures.count) == (spoil == "index")
    ((_, _, found, _),) = given
    assert (found.method == "merge") == is_copied
    if is_copied:
        assert found.make is not None
        (clusters,) = found.make.args  # type: ignore[attr-defined]
        assert [one.place.name for one in clusters] == ["even", "odd"]


@pytest.mark.parametrize(
    ("lists", "content"),
    [
        ({}, None),
        ({"even": "a\t/1/a\n"}, b"a\t/1/a\n"),
        ({"even": "a\t/1/a\n", "odd": "a\t/2/a\t/1/a\nb\t/b\n"}, b"a\t/1/a\t/2/a\nb\t/b\n"),
        ({"odd": ""}, None),
    ],
)
def test_the_archives_of_all_clusters_are_listed(
    lists: dict[str, str], content: bytes | None, given: list[Given]
) -> None:
    for name, text in lists.items():
        Path(name, "archives.tsv").write_text(text)
    run("even", "odd")
    ((_, _, _, beside),) = given
    assert beside == (Beside() if content is None else Beside(["archives.tsv"], content))


def test_a_cluster_is_not_merged_into_itself(given: list[Given]) -> None:
    for name in ("odd", "./odd", str(Path("odd").absolute())):
        with pytest.raises(UsageError) as told:
            run("even", "odd", output=name)
        assert str(told.value).endswith(
            "odd: is one of the clusters that are merged; choose another directory"
        )
    assert given == []


def test_clusters_without_shards_give_nothing(given: list[Given]) -> None:
    for name in ("x", "y"):
        Path(name).mkdir()
        Path(name, "cluster.idx").touch()
    with pytest.raises(InputError) as told:
        run("x", "y")
    assert str(told.value) == "x, y: no shards, so there is nothing to merge; check it with cdxmill verify"


def made(options: ZipnumOptions, *names: str) -> tuple[Any, list[bytes]]:
    """What is made of clusters; and all lines."""
    places = [locate(name) for name in names]
    others = [OtherCluster(place, read_manifest(place / MANIFEST)) for place in places]
    Path("new").mkdir()
    found = make_merged(others, Inventory([]), locate("new"), options, Failures(printed=False))
    return found, gzip.decompress(
        b"".join(Path("new", one.name).read_bytes() for one in found.shards)
    ).splitlines()


@pytest.mark.parametrize(
    ("names", "points", "shards", "sizes", "total"),
    [
        (["even", "odd"], (POINT,), 0, [6, 14], 20),
        (["even", "one"], (), 0, [20], 30),
        (["even", "odd"], (b"com,a)/03", b"com,a)/15", b"x"), 0, [3, 12, 5, 0], 20),
        (["even"], None, 1, [10], 10),
        (["one"], None, 2, [10, 10], 20),
        (["over", "odd"], (POINT,), 0, [6, 14], 21),
    ],
)
@pytest.mark.usefixtures("given")
def test_merged_shards_have_all_lines_once(
    names: list[str], points: tuple[bytes, ...] | None, shards: int, sizes: list[int], total: int
) -> None:
    """All lines that came in are counted."""
    steps: list[Step] = []
    options = ZipnumOptions(points=points, shards=shards, block_lines=2, processes=1, quiet=False)
    with listened_to(steps.append):
        found, lines = made(options, *names)
    assert [one.lines for one in found.shards] == sizes
    assert [one.name for one in found.shards] == [f"cdx-{number:05d}-1.gz" for number in range(len(sizes))]
    assert lines == sorted({*lines})
    assert found.taken == total
    if points is not None:
        assert tuple(found.points) == points
    merging = [step for step in steps if step.name == "merging shards"]
    assert (merging[-1].done, merging[-1].total, merging[-1].total_bytes) == (len(sizes), len(sizes), 0)
