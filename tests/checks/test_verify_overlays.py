"""`cdxmill verify` of a cluster with overlays: their files are checked, and their lines are compared with the inputs, too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cdxmill
from cdxmill.checks.claims import ClusterFiles, overlay_tasks, read_claims, shard_tasks
from cdxmill.storage.location import locate

from ..material.cdx_files import write_gzip, write_plain
from .checking import found

OLD = [b"com,a)/%03d 2020 {}" % number for number in range(60)]
FIRST = [b"com,a)/%03d 2021 {}" % number for number in range(0, 60, 7)]
FIRST += [b"com,a)/059 2021%04d {}" % number for number in range(600)]
"""Three blocks."""
SECOND = [FIRST[3], b"com,a)/000 2022 {}", b"org,z)/ 2020 {}"]


def make(directory: Path, old: list[bytes], *added: list[bytes]) -> Path:
    """A cluster of five shards with overlays. The third shard has no lines. Its cluster.loc has relative paths, so that it can be copied."""
    (directory / "inputs").mkdir(parents=True)
    path = write_gzip(directory / "inputs/old.cdxj.gz", old)
    (directory / "points").write_bytes(b"com,a)/020\ncom,a)/0205\ncom,a)/0206\ncom,a)/040\n")
    cdxmill.zipnum(path, output=directory / "C", splits=directory / "points", numlines=4, processes=1)
    for number, lines in enumerate(added):
        new = write_plain(directory / f"inputs/{number}.cdxj", lines)
        cdxmill.add(directory / "C", new, cdx=True, mode="overlay", processes=1)
    rows = [row.split("\t")[0] for row in (directory / "C/cluster.loc").read_text().splitlines()]
    (directory / "C/cluster.loc").write_text("".join(f"{name}\t{name}\n" for name in rows))
    return directory


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("overlays"), OLD, FIRST, SECOND)


@pytest.fixture
def overlaid(built: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(built / "C", tmp_path / "C"))


def overlays(cluster: Path) -> list[Path]:
    return sorted(cluster.glob("overlay-*.gz"))


def against(cluster: Path, *lines: bytes) -> list[str]:
    """What is reported if these are the lines of the inputs."""
    path = write_plain(cluster.parent / "given.cdxj", list(lines))
    return [line.removeprefix(f"{cluster}: ") for line in found(cluster, against=[str(path)], processes=1)]


def test_a_sound_cluster_has_the_lines_of_all_inputs(built: Path, overlaid: Path) -> None:
    assert len(overlays(overlaid)) == 2
    assert found(overlaid) == []
    assert found(overlaid, against=[str(built / "inputs")], processes=1) == []


@pytest.mark.parametrize(
    ("without", "told"),
    [
        ([], []),
        (OLD[:1], ["1 line not in the inputs; the first one: b'com,a)/000 2020 {}'"]),
        (FIRST[1:9], ["8 lines not in the inputs; the first one: b'com,a)/007 2021 {}'"]),
        (SECOND[2:], ["1 line not in the inputs; the first one: b'org,z)/ 2020 {}'"]),
    ],
)
@pytest.mark.parametrize("more", [[], [b"com,a)/0195 2020 {}"], [b"com,a)/ 2020 {}", b"org,zz)/ 2020 {}"]])
def test_lines_of_shards_and_overlays_are_compared_with_the_inputs(
    without: list[bytes], told: list[str], more: list[bytes], overlaid: Path
) -> None:
    kept = [line for line in {*OLD, *FIRST, *SECOND} if line not in without]
    missing = f"{len(more)} line{'s' * (len(more) > 1)} of the inputs missing; the first one: {more[:1]!r}"
    wanted = [missing.replace("[", "").replace("]", "")] if more else []
    assert against(overlaid, *sorted([*kept, *more])) == [*wanted, *told]


def test_overlays_of_shards_without_lines_are_compared(tmp_path: Path) -> None:
    cluster = make(tmp_path / "empty", [], SECOND) / "C"
    assert found(cluster) == []
    assert against(cluster, *SECOND) == []
    assert against(cluster, *SECOND[:2]) == ["1 line not in the inputs; the first one: b'org,z)/ 2020 {}'"]


def test_a_filter_that_is_not_that_of_the_overlay_is_reported_alone(overlaid: Path) -> None:
    one, other = (path.with_suffix(".keys") for path in overlays(overlaid))
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    assert found(overlaid) == [f"{one}: is not the key filter of {one.stem}.gz"]
    one.write_bytes(data[:-1])
    assert found(overlaid) == [f"{one}: is not the key filter of {one.stem}.gz"]
    one.unlink()
    (line,) = found(overlaid)
    assert line.startswith(f"{one}: cannot be read")


@pytest.mark.parametrize("ending", [".gz", ".idx"])
def test_a_damaged_file_of_an_overlay_is_reported_and_its_filter_is_not(ending: str, overlaid: Path) -> None:
    path = overlays(overlaid)[1].with_suffix(ending)
    data = path.read_bytes()
    for changed in (data[:-1], data[:-9] + bytes([data[-9] ^ 1]) + data[-8:], b""):
        path.write_bytes(changed)
        lines = found(overlaid)
        assert lines
        assert all(line.startswith(f"{overlaid}/{path.stem}.") for line in lines), lines
        assert not any(".keys" in line for line in lines)
    path.unlink()
    line, *others = found(overlaid)
    assert line.startswith(f"{path}: cannot be read")
    assert all(" is not at " in line for line in others)


def test_each_filter_is_checked_though_another_overlay_is_damaged(overlaid: Path) -> None:
    one, other = overlays(overlaid)
    for path in (one.with_suffix(".idx"), other.with_suffix(".keys")):
        path.write_bytes(path.read_bytes()[:-1])
    lines = found(overlaid)
    assert f"{other.with_suffix('.keys')}: is not the key filter of {other.name}" in lines
    assert not any("overlay-00001-1.keys" in line for line in lines)


def test_the_part_of_an_overlay_is_written_as_cdxmill_writes_it(overlaid: Path) -> None:
    path = overlays(overlaid)[1].with_suffix(".idx")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\t1\n"))
    (line,) = found(overlaid)
    assert line.startswith(f"{path}: line 1 is b'com,a)/000 2022")


def test_an_overlay_that_the_manifest_does_not_list_is_foreign(overlaid: Path) -> None:
    shutil.copyfile(overlays(overlaid)[0], overlaid / "overlay-00009-9.gz")
    assert found(overlaid) == [
        f"{overlaid}/overlay-00009-9.gz: does not belong to this cluster: its index has no lines for it"
    ]


def test_what_is_known_of_shards_and_overlays_before_they_are_read(overlaid: Path) -> None:
    """Changes leave blocks of unequal length. Without cluster.json nothing is known of that, nor of overlays."""
    files = ClusterFiles(locate(overlaid))
    claims = read_claims(files, lambda failures: None)
    place, index = locate(overlaid), locate(overlaid / "cluster.idx")
    for one, number in zip(overlay_tasks(files, claims), (1, 2), strict=True):
        name = f"overlay-0000{number}-{number}"
        assert one[:4] == (f"{name}.gz", place / f"{name}.gz", place / f"{name}.idx", None)
        assert (one.block_lines, one.section_lines, one.exact, one.is_even) == (450, 0, True, False)
    for has_manifest in (True, False):
        for number, shard in enumerate(shard_tasks(files, claims)):
            name = f"cdx-0000{number}.gz"
            assert shard[:4] == (name, place / name, place / f"part-0000{number}", index)
            wanted = (6, 500, True, False) if has_manifest else (None, 0, False, True)
            assert (shard.block_lines, shard.section_lines, shard.exact, shard.is_even) == wanted
            assert shard.numbered
        for absent in ("cluster.json", "cluster.loc"):
            (overlaid / absent).unlink(missing_ok=True)
        files = ClusterFiles(locate(overlaid))
        claims = read_claims(files, lambda failures: None)
    assert overlay_tasks(files, claims) == []
    for path in overlaid.glob("part-*"):
        path.unlink()
    tasks = shard_tasks(ClusterFiles(locate(overlaid)), claims)
    assert [one.part_file for one in tasks] == [None] * 5
