"""Which files a cluster has, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cluster.find import find_index
from cdxmill.cluster.write import (
    RunRecord,
    check_installed,
    fault_of,
    fault_of_splits,
    files_of,
    files_read,
    is_shard_whole,
    kept_shards,
    read_manifest,
    shards_in,
    unpublish,
    write_archive_index,
    write_cluster_files,
)
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.split_points import format_sequence_file, format_text
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import locate

LINES = [f'com,example)/{number:03d} 2020 {{"n": "{number}"}}' for number in range(130)]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster of three shards and more than 100 blocks, with an overlay."""
    monkeypatch.chdir(tmp_path)
    Path("a.cdxj").write_text("".join(f"{line}\n" for line in LINES))
    Path("b.cdxj").write_text("com,example)/000 2021 {}\n")
    cdxmill.zipnum("a.cdxj", output="C", shards=3, numlines=1, processes=1)
    cdxmill.add("C", "b.cdxj", cdx=True, mode="overlay", processes=1, keep_old=0)
    return tmp_path / "C"


def test_a_whole_cluster_has_no_fault(cluster: Path) -> None:
    place = locate(cluster)
    assert [fault_of(place), fault_of(place, exact=True), fault_of(place, index_only=True)] == [None] * 3


OVERLAY = "overlay-00001-1"
OTHER_SPLITS = "splits.txt or splits.seq has other split points than cluster.json"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("cdx-00001.gz", "cdx-00001.gz is missing or has another size than in cluster.json"),
        (f"{OVERLAY}.gz", f"{OVERLAY}.gz is missing or has another size than in cluster.json"),
        (f"{OVERLAY}.idx", f"{OVERLAY}.idx is missing"),
        (f"{OVERLAY}.keys", f"{OVERLAY}.keys is missing"),
        ("part-00002", "part-00002 is missing"),
        ("cluster.idx", "cluster.idx is missing"),
        ("cluster.summary", "cluster.summary is missing"),
        ("cluster.loc", "cluster.loc is missing"),
        ("splits.txt", "splits.txt is missing"),
        ("splits.seq", "splits.seq is missing"),
    ],
)
def test_a_missing_file_is_a_fault(name: str, fault: str, cluster: Path) -> None:
    (cluster / name).unlink()
    assert fault_of(locate(cluster)) == fault
    if name.endswith(".gz"):
        assert fault_of(locate(cluster), index_only=True) is None


def cut(data: bytes) -> bytes:
    return data[:-1]


def without_a_line(data: bytes) -> bytes:
    return b"".join(data.splitlines(keepends=True)[:-1])


def flipped(data: bytes) -> bytes:
    return bytes([*data[:-1], data[-1] ^ 1])


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("cdx-00001.gz", cut, "cdx-00001.gz is missing or has another size than in cluster.json"),
        ("part-00000", cut, "cluster.idx has another size than the parts"),
        ("cluster.idx", cut, "cluster.idx has another size than the parts"),
        ("cluster.summary", without_a_line, "cluster.summary has another size than the parts"),
        ("cluster.loc", without_a_line, f"cluster.loc does not have {OVERLAY}.gz"),
        ("cluster.loc", lambda data: data + b"cut", "cluster.loc: line 5 is truncated"),
        ("splits.txt", lambda _: b"\n\n", OTHER_SPLITS),
        ("splits.txt", lambda _: format_text([b"a", b"b"]), OTHER_SPLITS),
        ("splits.seq", lambda _: format_sequence_file([b"a", b"b"]), OTHER_SPLITS),
        ("splits.seq", cut, OTHER_SPLITS),
        ("cluster.json", cut, "cluster.json is corrupt"),
    ],
)
def test_a_file_with_other_content_is_a_fault(
    name: str, change: Callable[[bytes], bytes], fault: str, cluster: Path
) -> None:
    (cluster / name).write_bytes(change((cluster / name).read_bytes()))
    assert (fault_of(locate(cluster)) or "").startswith(fault)


def test_a_shard_of_the_same_size_is_known_by_its_digest_if_that_is_wanted(cluster: Path) -> None:
    shard = cluster / "cdx-00001.gz"
    shard.write_bytes(flipped(shard.read_bytes()))
    assert fault_of(locate(cluster)) is None
    assert fault_of(locate(cluster), exact=True) == "cdx-00001.gz is corrupt"


def test_two_files_of_the_same_other_points_are_a_fault(cluster: Path) -> None:
    (cluster / "splits.txt").write_bytes(format_text([b"a", b"b"]))
    (cluster / "splits.seq").write_bytes(format_sequence_file([b"a", b"b"]))
    assert fault_of(locate(cluster)) == OTHER_SPLITS


def test_split_points_that_cannot_be_read_are_other_ones(cluster: Path) -> None:
    manifest = read_manifest(locate(cluster / "cluster.json"))
    assert fault_of_splits(locate(cluster), manifest) is None
    for name in ("splits.txt", "splits.seq"):
        (cluster / name).unlink()
    assert fault_of_splits(locate(cluster), manifest) == OTHER_SPLITS


def test_what_belongs_to_a_cluster_is_not_written_by_commands_that_read_it(cluster: Path) -> None:
    """Its own files, and shards elsewhere that cluster.loc lists, but no files of somebody in its directory."""
    (cluster / "notes.txt").touch()
    (cluster / "archives.tsv").touch()
    own = {str(path) for path in cluster.iterdir() if path.name != "notes.txt"}
    own -= {str(cluster / "changes.jsonl")}
    with (cluster / "cluster.loc").open("a") as file:
        file.write("cdx-00007.gz\t/elsewhere/cdx-00007.gz\ts3://bucket/cdx-00007.gz\n")
    elsewhere = {"/elsewhere/cdx-00007.gz", "s3://bucket/cdx-00007.gz"}
    assert {place.text for place in files_of(find_index(locate(cluster)))} == own | elsewhere
    assert {place.text for place in files_read(cluster)} == own | elsewhere
    (cluster / "cluster.loc").unlink()
    found = {place.text for place in files_of(find_index(locate(cluster)))}
    assert found == own - {str(cluster / "cluster.loc")}
    assert files_read(cluster / "notes.txt") == [locate(cluster / "notes.txt")]
    shards = {path for path in own if Path(path).name.startswith(("cdx-", "part-", "overlay-"))}
    assert {place.text for place in shards_in(locate(cluster))} == shards


def test_a_shard_of_an_earlier_run_is_used_only_if_it_is_whole(tmp_path: Path) -> None:
    place, entry = locate(tmp_path), ShardEntry("cdx-00000.gz", 5, 1, 1, "digest")
    shard, part = tmp_path / "cdx-00000.gz", tmp_path / "part-00000"
    part.write_bytes(b"row\n")
    assert not is_shard_whole(place, entry), "no shard"
    shard.write_bytes(b"five!")
    assert is_shard_whole(place, entry)
    assert not is_shard_whole(place, entry._replace(bytes=6))
    part.write_bytes(b"")
    assert not is_shard_whole(place, entry), "lines, and no row"
    assert is_shard_whole(place, entry._replace(lines=0))
    part.unlink()
    assert not is_shard_whole(place, entry), "no part"
    with pytest.raises(TypeError):
        is_shard_whole(place, entry._replace(lines="1"))  # type: ignore[arg-type]


def test_nobody_finds_a_cluster_that_is_withdrawn(cluster: Path) -> None:
    unpublish(locate(cluster))
    gone = {"cluster.json", "cluster.idx", "cluster.summary", "cluster.loc"}
    assert not gone & {path.name for path in cluster.iterdir()}
    assert (cluster / "cdx-00000.gz").exists()
    with pytest.raises(InputError):
        find_index(locate(cluster))


@pytest.mark.parametrize("name", ["cdx-00000.gz", "cdx-00000-1.gz"])
def test_a_cluster_with_shards_of_changes_counts_as_changed(name: str, tmp_path: Path) -> None:
    """Their blocks have unequal lengths. A change that follows gets the next number."""
    place = locate(tmp_path)
    part = name.replace("cdx", "part").removesuffix(".gz")
    (tmp_path / part).write_bytes(b"com,a)/ 2020\t%b\t0\t5\n" % name.encode())
    write_cluster_files(place, [ShardEntry(name, 5, 1, 1, "0" * 64)], [], Compressor(), 3000, place)
    manifest = read_manifest(place / "cluster.json")
    assert manifest.change == (0 if name == "cdx-00000.gz" else 1)
    assert (tmp_path / "cluster.idx").read_bytes() == b"com,a)/ 2020\t%b\t0\t5\t1\n" % name.encode()
    assert (tmp_path / "cluster.summary").read_bytes() == (tmp_path / "cluster.idx").read_bytes()
    assert (tmp_path / "cluster.loc").read_text() == f"{name}\t{tmp_path}/{name}\n"
    assert (tmp_path / "splits.txt").read_bytes() == b""


def test_a_list_of_archives_is_written(tmp_path: Path) -> None:
    write_archive_index(locate(tmp_path), b"a\t/a\n")
    assert (tmp_path / "archives.tsv").read_bytes() == b"a\t/a\n"


def test_the_failures_of_the_run_that_built_a_cluster_are_reported_again(tmp_path: Path) -> None:
    for found in ([], [Failure("a", None, "is corrupt"), Failure("b", 7, "is corrupt")]):
        lines: list[str] = []
        failures = Failures(write=lines.append)
        RunRecord("run", [], found, []).report(locate(tmp_path), failures)
        assert failures.items == found
        assert any("--replace tries them again" in line for line in lines) is bool(found)


def test_a_compressor_that_is_not_installed_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: Compressor) -> str:
        raise ValueError("not installed")

    check_installed(Compressor())
    monkeypatch.setattr(Compressor, "version", absent)
    with pytest.raises(UsageError, match="not installed"):
        check_installed(Compressor())


@pytest.mark.parametrize("text", ["{", "[]", '{"cdx-00000-1.gz": null}', '{"cdx-00000-1.gz": "x"}', '"text"'])
def test_a_corrupt_list_of_kept_shards_is_an_empty_one(text: str, tmp_path: Path) -> None:
    (tmp_path / ".kept.json").write_text(text)
    assert kept_shards(locate(tmp_path)) == {}
    (tmp_path / ".kept.json").write_text('{"cdx-00000-1.gz": 7, "mine.txt": 8}')
    assert kept_shards(locate(tmp_path)) == {"cdx-00000-1.gz": 7}
