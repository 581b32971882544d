"""`cdxmill verify` finds a cluster.loc or cluster.json that does not match the shards."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.checks import beside
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.formats.clusters.manifest import splits_digest
from cdxmill.formats.clusters.split_points import format_sequence_file, format_text, parse_text
from cdxmill.storage.location import Location

from ..material.cdx_files import write_gzip
from ..material.clusters import write_raw_cluster
from .checking import Told, found, shard_files

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cdx-00000.gz is missing"),
        (b"cdx-00000.gz\n", "line 1 is not a shard with its locations"),
        (b"cdx-00000.gz\tcdx-00000.gz\n" * 2, "names a shard twice"),
        (b"cdx-00009.gz\tcdx-00000.gz\n", "names cdx-00009.gz, which is not a shard of this cluster"),
        (b"cdx-00000.gz\tcdx-00000.gz\tabsent/cdx-00000.gz\n", "the file is missing or unreadable"),
        (b"cdx-00000.gz\tdirectory\n", "directory: the file is missing or unreadable"),
        (b"cdx-00000.gz\tcdx-00001.gz\n", "cdx-00000.gz is not at"),
        (b"cdx-00000.gz\tchanged.gz\n", "that file has other contents"),
        (b"cdx-00000.gz\t%b\n" % (b"long" * 99), "the file is missing or unreadable"),
    ],
)
def test_locations_that_are_not_those_of_the_shards_are_found(
    content: bytes, reason: str, cluster: Path
) -> None:
    data = (cluster / "cdx-00000.gz").read_bytes()
    (cluster / "directory").mkdir()
    (cluster / "changed.gz").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    (cluster / "cluster.loc").write_bytes(content)
    assert any(reason in line for line in found(cluster))


@pytest.mark.parametrize("has_manifest", [True, False])
def test_a_shard_may_be_a_copy_with_the_same_contents(has_manifest: bool, cluster: Path) -> None:
    shards = shard_files(cluster)
    for path in shards:
        (cluster / f"copy-{path.name}").write_bytes(path.read_bytes())
    (cluster / "cluster.loc").write_text("".join(f"{one.name}\tcopy-{one.name}\n" for one in shards))
    if not has_manifest:
        (cluster / "cluster.json").unlink()
    assert found(cluster) == []
    copy = cluster / f"copy-{shards[0].name}"
    copy.write_bytes(copy.read_bytes()[:-1] + b"x")
    (told,) = found(cluster)
    assert "that file has other contents" in told


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a.warc.gz\t/a.warc.gz\nb.warc.gz\n", "line 2: expected a file name, a tab and a path or URL"),
        (b"a.warc.gz\t\n", "line 1: expected a file name"),
        (b"\t/a.warc.gz\n", "line 1: expected a file name"),
        (b"b.warc.gz\t/b\na.warc.gz\t/a\n", "line 2: out of order"),
    ],
)
def test_lines_of_archives_tsv_that_lead_nowhere_are_found(
    content: bytes, reason: str, cluster: Path
) -> None:
    (cluster / "archives.tsv").write_bytes(content)
    (told,) = found(cluster)
    assert f"archives.tsv: {reason}" in told


def test_locations_are_compared_with_the_option_location(cluster: Path) -> None:
    base = "https://index.example.org/C"
    located = [f"{path.name}\t{base}/{path.name}\n" for path in shard_files(cluster)]
    (cluster / "cluster.loc").write_text("".join(located))
    assert found(cluster, location=base) == []
    assert any(
        ", not https://other.example.org/cdx-00000.gz" in line
        for line in found(cluster, location="https://other.example.org")
    )


def test_shards_elsewhere_are_found_by_a_rule_as_lookups_find_them(
    cluster: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "there").mkdir()
    for path in shard_files(cluster):
        path.rename(tmp_path / "there" / path.name)
    (cluster / "cluster.loc").unlink()
    (cluster / "cluster.json").unlink()
    assert run_cdxmill("verify", cluster).returncode == 1
    assert run_cdxmill("verify", cluster, "--shard-index-loc", "/C/$", "/there/").returncode == 0
    done = run_cdxmill("verify", cluster, "--shard-index-loc", "(", "x")
    assert (done.returncode, b"not a regular expression" in done.stderr) == (2, True)


@pytest.mark.parametrize("ending", [".gz", ".cdx.gz"])
def test_shards_are_found_whose_names_the_index_cuts(cluster: Path, ending: str) -> None:
    for path in cluster.iterdir():
        if path.name != "cluster.idx" and not path.name.startswith("cdx-"):
            path.unlink()
    for path in shard_files(cluster):
        path.rename(path.with_name(path.name.removesuffix(".gz") + ending))
    index = cluster / "cluster.idx"
    index.write_bytes(index.read_bytes().replace(b".gz\t", b"\t"))
    assert found(cluster) == []


def change_manifest(cluster: Path, change: Callable[[dict[str, object]], object]) -> None:
    """With a checksum that fits, as a program would write it."""
    content = json.loads((cluster / "cluster.json").read_bytes())
    change(content)
    del content["sha256"]
    content["sha256"] = hashlib.sha256(json.dumps(content, indent=1).encode()).hexdigest()
    (cluster / "cluster.json").write_text(json.dumps(content, indent=1) + "\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(lines=901),
        lambda content: content.update(blocks=1),
        lambda content: content.update(numlines=41),
        lambda content: content.update(numlines=None),
        lambda content: content.update(splits_sha256="0" * 64),
        lambda content: content.update(format=2),
        lambda content: content.pop("compressor"),
        lambda content: content["compressor"].update(library="other"),
        lambda content: content["shards"][2].update(lines=1),
        lambda content: content["shards"][2].update(bytes="1"),
        lambda content: content["shards"][2].update(sha256="0" * 64),
        lambda content: content["shards"][2].update(name="cdx-00003.gz"),
        lambda content: content["shards"].pop(),
        lambda content: content.update(shards=[]),
        lambda content: content.update(shards=7),
    ],
)
def test_a_changed_manifest_is_found(change: Callable[[dict[str, object]], object], cluster: Path) -> None:
    change_manifest(cluster, change)
    assert found(cluster)


def test_sound_shards_are_compared_with_the_manifest_though_another_is_damaged(cluster: Path) -> None:
    change_manifest(cluster, lambda content: content["shards"][2].update(sha256="0" * 64))  # type: ignore[index]
    shard = shard_files(cluster)[0]
    shard.write_bytes(shard.read_bytes()[:-9])
    lines = found(cluster)
    assert any(line.startswith(f"{shard}@") for line in lines)
    assert any("cdx-00002.gz: sha256 is " in line for line in lines)
    assert not any("cdx-00000.gz: " in line and "in cluster.json" in line for line in lines)


@pytest.mark.parametrize(
    ("shard", "line", "after", "reason"),
    [
        (1, 0, b"", None),
        (1, 0, b"\0", "cdx-00001.gz: starts with .*, which is below its split point "),
        (0, -1, b"", "cdx-00000.gz: ends with .*, which is not below the next split point "),
        (0, -1, b"\0", None),
    ],
)
def test_a_line_that_equals_a_split_point_belongs_to_the_shard_behind_it(
    shard: int, line: int, after: bytes, reason: str | None, cluster: Path
) -> None:
    points = parse_text((cluster / "splits.txt").read_bytes())
    points[0] = gzip.decompress(shard_files(cluster)[shard].read_bytes()).splitlines()[line] + after
    (cluster / "splits.txt").write_bytes(format_text(points))
    (cluster / "splits.seq").write_bytes(format_sequence_file(points))
    change_manifest(cluster, lambda content: content.update(splits_sha256=splits_digest(points)))
    told = found(cluster)
    assert len(told) == (reason is not None)
    assert reason is None or re.search(reason, told[0])


def test_shards_behind_one_without_lines_are_compared_with_their_split_points(tmp_path: Path) -> None:
    path = write_gzip(tmp_path / "a.cdxj.gz", [b"com,a)/ 2020 {}", b"org,a)/ 2020 {}"])
    options = ZipnumOptions(shards=3, points=(b"a", b"n"), quiet=True)
    build_cluster([str(path)], tmp_path / "C", options, Told())
    assert found(tmp_path / "C") == []
    points = [b"a", b"z"]
    (tmp_path / "C/splits.txt").write_bytes(format_text(points))
    (tmp_path / "C/splits.seq").write_bytes(format_sequence_file(points))
    change_manifest(tmp_path / "C", lambda content: content.update(splits_sha256=splits_digest(points)))
    reason = "starts with b'org,a)/ 2020 {}', which is below its split point b'z'"
    assert found(tmp_path / "C") == [f"{tmp_path}/C/cdx-00002.gz: {reason}"]


def test_split_points_with_other_line_ends_are_found(cluster: Path) -> None:
    text = (cluster / "splits.txt").read_bytes().replace(b"\n", b"\n\n")
    (cluster / "splits.txt").write_bytes(text)
    change_manifest(cluster, lambda content: content.update(splits_sha256=hashlib.sha256(text).hexdigest()))
    assert any("it is not written as cdxmill writes it" in line for line in found(cluster))


def test_of_many_corrupt_blocks_the_first_20_are_reported(tmp_path: Path) -> None:
    write_raw_cluster(tmp_path / "C", [b"com,a)/%02d 2020 {}" % number for number in range(25)], 1)
    shard = tmp_path / "C/cdx-00000.gz"
    data = bytearray(shard.read_bytes())
    rows = [line.split(b"\t") for line in (tmp_path / "C/cluster.idx").read_bytes().splitlines()]
    for row in rows:
        data[int(row[2]) + int(row[3]) // 2] ^= 0xFF
    shard.write_bytes(data)
    told = [line for line in found(tmp_path / "C") if "cdx-00000.gz@" in line]
    assert len(told) == 21
    assert told[-1].endswith(f"@{int(rows[-1][2])}: 5 more corrupt blocks")


@pytest.mark.parametrize("name", ["splits.txt", "splits.seq"])
def test_corrupt_split_points_are_found_without_the_manifest(name: str, cluster: Path) -> None:
    (cluster / "cluster.json").unlink()
    (cluster / name).write_bytes(b"b\na\n")
    assert any(f"{name}: " in line for line in found(cluster))


def test_of_a_moved_cluster_the_first_20_locations_are_reported(tmp_path: Path) -> None:
    path = write_gzip(tmp_path / "a.cdxj.gz", [b"com,a)/ 2020 {}"])
    options = ZipnumOptions(shards=31, points=tuple(b"%02d" % number for number in range(30)), quiet=True)
    build_cluster([str(path)], tmp_path / "C", options, Told())
    (tmp_path / "C").rename(tmp_path / "moved")
    told = found(tmp_path / "moved")
    assert len(told) == 21
    assert "the file is missing or unreadable; if the cluster was moved, publish it to itself" in told[0]
    assert told[-1].endswith("cluster.loc: 11 more errors")


def test_a_location_that_is_the_shard_itself_is_not_read_again(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is written. A copy is read."""
    read: list[str] = []

    def other(place: Location) -> str:
        read.append(place.text)
        return ""

    monkeypatch.setattr(beside, "sha256_of", other)
    shards = shard_files(cluster)
    (cluster / "copy.gz").write_bytes(shards[3].read_bytes())
    places = [shards[0].name, str(shards[1]), f"../C/./{shards[2].name}", "copy.gz"]
    rows = [f"{one.name}\t{place}\n" for one, place in zip(shards, places, strict=True)]
    (cluster / "cluster.loc").write_text("".join(rows))
    (told,) = found(cluster)
    assert told.endswith(f"cdx-00003.gz is not at {cluster}/copy.gz: that file has other contents")
    assert read == [f"{cluster}/copy.gz"]


def as_directory(path: Path) -> None:
    """Put a directory where a file was, so that it cannot be read."""
    path.unlink()
    path.mkdir()


def test_a_file_that_cannot_be_read_ends_no_other_check(cluster: Path) -> None:
    as_directory(cluster / "cluster.summary")
    (cluster / "cluster.loc").write_bytes(b"")
    (cluster / "splits.txt").write_bytes(b"com,a)/ 2020\n")
    told = "\n".join(found(cluster))
    assert "cluster.summary: cannot be read (Is a directory)" in told
    assert "cluster.loc: cdx-00000.gz is missing" in told
    assert "splits.txt: " in told


def test_a_corrupt_manifest_is_reported_even_if_the_index_cannot_be_read(
    cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    (cluster / "cluster.json").write_bytes(b"{}")
    as_directory(cluster / "cluster.idx")
    done = run_cdxmill("verify", "-q", cluster)
    assert done.returncode == 1
    assert b"cluster.json: " in done.stderr
    assert b"cluster.idx: cannot be read (Is a directory)" in done.stderr


def test_files_that_are_absent_together_are_all_found(cluster: Path) -> None:
    """The files beside the shards and parts have to be there if cluster.json is. The part of an absent shard is not missed."""
    shard, index = ("cdx-00001.gz", "part-00001"), ("cluster.idx", "cluster.summary")
    groups = [*combinations((*shard, *index, "cluster.loc", "splits.txt"), 2), (*index, "part-00001")]
    kept = {path.name: path.read_bytes() for path in cluster.iterdir()}
    for absent in groups:
        for with_manifest in (True, False):
            for name in absent if with_manifest else (*absent, "cluster.json"):
                (cluster / name).unlink()
            needed = set(absent if with_manifest else set(absent) & set(shard)) - set(
                shard[1:] if absent == shard else ()
            )
            text = " ".join(found(cluster, processes=1))
            assert {name for name in absent if name in text} == needed, (absent, with_manifest)
            for name in (*absent, "cluster.json"):
                (cluster / name).write_bytes(kept[name])


def test_of_a_corrupt_manifest_only_that_is_told(cluster: Path) -> None:
    (cluster / "cluster.json").write_bytes(b"{")
    (line,) = found(cluster)
    assert "cluster.json: is corrupt" in line
