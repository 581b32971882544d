"""A cluster is opened again if it changes in that moment; a list of its shards that cannot be read is an error."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.cluster import reader
from cdxmill.cluster.manifest_file import manifest_of_index
from cdxmill.cluster.reader import ClusterReader, Replaced, open_cluster
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.manifest import format_manifest, origin_of, parse_manifest
from cdxmill.formats.clusters.zipnum import STAGED_MANIFEST
from cdxmill.storage.location import locate

LINE = b"com,example)/ 2020 {}"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    (tmp_path / "a.cdxj").write_bytes(LINE + b"\n")
    cdxmill.zipnum(tmp_path / "a.cdxj", output=tmp_path / "C", shards=1, processes=1)
    return tmp_path / "C"


def changes(monkeypatch: pytest.MonkeyPatch, times: int) -> Iterator[bool]:
    """The index of a cluster is replaced while it is opened, as many `times`. Returns what is left of them."""
    answers = iter([True] * times)
    monkeypatch.setattr(ClusterReader, "has_other_index", lambda _: next(answers, False))
    return answers


@pytest.mark.parametrize("times", [0, 1, 2, 2 * (reader._TRIES - 1)])
def test_a_cluster_that_changes_while_it_is_opened_is_opened_again(
    times: int, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = changes(monkeypatch, times)  # each time it is opened, it is asked twice
    with open_cluster(cluster) as opened:
        assert [block.key for block in opened.index.blocks(b"")] == [b"com,example)/ 2020"]
    assert next(left, None) is None


def test_one_that_never_stops_changing_is_an_error(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = changes(monkeypatch, 1000)
    with pytest.raises(Replaced, match="run it again"), open_cluster(cluster):
        pass
    assert next(left)


def test_locations_that_cannot_be_read_are_an_error(cluster: Path) -> None:
    (cluster / "cluster.loc").unlink()
    with cdxmill.Cluster(cluster) as opened:
        assert list(opened.lines("*")) == [[LINE]], "without them, shards are beside the index"
    (cluster / "cluster.loc").mkdir()
    with pytest.raises(InputError, match=r"cluster.loc: "), open_cluster(cluster):
        pass


@pytest.fixture
def changed(cluster: Path, tmp_path: Path) -> bytes:
    """The cluster.json of the cluster before it has got lines, and one block of them in place of another."""
    old = (cluster / "cluster.json").read_bytes()
    (tmp_path / "b.cdxj").write_bytes(
        b"".join(b"com,example)/%05d 2020 {}\n" % number for number in range(9000))
    )
    cdxmill.add(cluster, tmp_path / "b.cdxj", cdx=True, processes=1)
    return old


def number_of_lines(cluster: Path) -> int:
    with cdxmill.Cluster(cluster) as opened:
        return sum(map(len, opened.lines("*")))


def test_a_cluster_json_that_follows_its_index_in_a_moment_is_read_again(
    cluster: Path, changed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = parse_manifest(changed)
    monkeypatch.setattr(reader, "manifest_of_index", lambda _: (old, None))
    assert number_of_lines(cluster) == 9001
    monkeypatch.setattr(reader, "manifest_beside", lambda _: old)
    with pytest.raises(InputError, match="the index is truncated, or belongs to another cluster"):
        number_of_lines(cluster)


def test_between_the_index_and_cluster_json_of_a_change_the_staged_one_is_read(
    cluster: Path, changed: bytes
) -> None:
    staged = cluster / STAGED_MANIFEST
    staged.parent.mkdir()
    staged.write_bytes((cluster / "cluster.json").read_bytes())
    (cluster / "cluster.json").write_bytes(changed)
    assert number_of_lines(cluster) == 9001
    staged.write_bytes(b"{")
    with pytest.raises(InputError, match="the index is truncated, or belongs to another cluster"):
        number_of_lines(cluster)


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_shard_that_a_replacement_has_deleted_is_no_error_of_the_file(
    is_replaced: bool, tmp_path: Path
) -> None:
    lines = tmp_path / "b.cdxj"
    lines.write_bytes(LINE + b"\ncom,example)/b 2020 {}\n")
    options: dict[str, Any] = {"output": tmp_path / "B", "processes": 1, "replace": True}
    cdxmill.zipnum(lines, shards=2, **options)
    with open_cluster(tmp_path / "B") as opened:
        (tmp_path / "B/cdx-00001.gz").unlink()
        if is_replaced:
            cdxmill.zipnum(lines, shards=1, **options)
        with pytest.raises(InputError, match=r"it was replaced" if is_replaced else r"cdx-00001.gz: "):
            opened.read(b"cdx-00001.gz", 0, 10)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A cluster of two shards, each of one line, which `replace` replaces."""
    write_two(tmp_path, "old")
    return tmp_path / "B"


def write_two(directory: Path, name: str) -> None:
    lines = directory / "b.cdxj"
    lines.write_text(f'com,example)/ 2020 {{"n":"{name}"}}\ncom,example)/b 2020 {{"n":"{name}"}}\n')
    cdxmill.zipnum(lines, output=directory / "B", shards=2, processes=1, replace=True)


def test_a_local_shard_that_is_open_is_read_on_and_no_shard_of_another_cluster_is_opened(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "UNCHECKED", -1.0)
    old = (two / "cdx-00000.gz").read_bytes()
    with open_cluster(two) as opened:
        assert opened.read(b"cdx-00000.gz", 0, 1 << 20) == old
        write_two(tmp_path, "new")
        assert opened.read(b"cdx-00000.gz", 0, 1 << 20) == old
        with pytest.raises(Replaced):
            opened.read(b"cdx-00001.gz", 0, 1 << 20)


@pytest.mark.parametrize("has_manifest", [True, False])
def test_a_cluster_that_was_only_changed_is_read_on(
    has_manifest: bool, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it has no cluster.json any more, nobody knows whether it is another one."""
    old = (two / "cdx-00001.gz").read_bytes()
    with open_cluster(two) as opened:
        assert not opened.has_changed()
        (tmp_path / "c.cdxj").write_bytes(b"com,example)/c 2020 {}\n")
        cdxmill.add(two, tmp_path / "c.cdxj", cdx=True, processes=1)
        assert opened.has_changed()
        if has_manifest:
            assert opened.read(b"cdx-00001.gz", 0, 1 << 20) == old
        else:
            (two / "cluster.json").unlink()
            with pytest.raises(Replaced):
                opened.read(b"cdx-00001.gz", 0, 1 << 20)


def test_an_index_without_cluster_json_that_is_written_again_or_deleted_has_changed(two: Path) -> None:
    (two / "cluster.json").unlink()
    with open_cluster(two) as opened:
        assert opened.version is not None
        assert not opened.has_changed()
        data = (two / "cluster.idx").read_bytes()
        (two / "cluster.idx").write_bytes(data + b"x")
        assert opened.has_changed()
        (two / "cluster.idx").unlink()
        assert opened.has_changed()


def test_a_shard_beside_the_index_comes_before_that_of_cluster_loc(two: Path, tmp_path: Path) -> None:
    """A copy of a cluster is not read from the place where it was built."""
    shutil.copytree(two, tmp_path / "copy")
    for path in two.glob("cdx-*.gz"):
        path.write_bytes(b"other")
    with cdxmill.Cluster(tmp_path / "copy") as opened:
        assert sum(map(len, opened.lines("*"))) == 2


def test_an_index_of_another_name_may_have_locations_of_its_name(two: Path, tmp_path: Path) -> None:
    (tmp_path / "shards").mkdir()
    for path in two.glob("cdx-*.gz"):
        path.rename(tmp_path / "shards" / path.name)
    text = (two / "cluster.loc").read_text().replace(f"{two}/cdx", f"{tmp_path}/shards/cdx")
    (two / "cluster.loc").unlink()
    (two / "cluster.json").unlink()
    (two / "cluster.idx").rename(two / "crawl.idx")
    (two / "crawl.loc").write_text(text)
    with cdxmill.Cluster(two / "crawl.idx") as opened:
        assert sum(map(len, opened.lines("*"))) == 2
    (two / "crawl.loc").unlink()
    (two / "crawl.loc").mkdir()
    with pytest.raises(InputError, match=r"crawl\.loc: "), open_cluster(two / "crawl.idx"):
        pass


def test_an_index_of_another_tool_is_not_compared_with_cluster_json(two: Path) -> None:
    """Its rows have no numbers."""
    rows = (two / "cluster.idx").read_bytes().splitlines()
    (two / "all.idx").write_bytes(b"".join(row.rpartition(b"\t")[0] + b"\n" for row in rows))
    (two / "cluster.idx").unlink()
    (two / "cluster.summary").unlink()
    with cdxmill.Cluster(two) as opened:
        assert sum(map(len, opened.lines("*"))) == 2


@pytest.mark.parametrize("is_staged", [True, False])
def test_a_truncated_index_is_damaged_also_while_another_change_is_prepared(
    is_staged: bool, two: Path
) -> None:
    if is_staged:
        (two / ".change").mkdir()
        (two / ".change/cluster.json").write_bytes((two / "cluster.json").read_bytes())
    data = (two / "cluster.idx").read_bytes()
    (two / "cluster.idx").write_bytes(data[: data.index(b"\n") + 1])
    with pytest.raises(InputError, match=r"has 1 blocks, but cluster\.json has 2"), open_cluster(two):
        pass


def test_an_index_with_all_blocks_of_cluster_json_is_that_of_no_change_that_is_prepared(two: Path) -> None:
    """Nor does the size of a shard matter then."""
    own = parse_manifest((two / "cluster.json").read_bytes())
    (two / ".change").mkdir()
    (two / ".change/cluster.idx").touch()
    staged = own._replace(shards=tuple(one._replace(lines=7) for one in own.shards))
    (two / ".change/cluster.json").write_bytes(format_manifest(staged))
    with (two / "cdx-00001.gz").open("ab") as file:
        file.write(b"x")
    with open_cluster(two) as opened:
        assert len(list(opened.index.blocks(b""))) == 2
        assert opened.total_lines() == 2


def test_without_cluster_json_the_size_of_the_last_shard_shows_whether_the_index_is_whole(
    two: Path,
) -> None:
    (two / "cluster.json").unlink()
    with cdxmill.Cluster(two) as opened:
        assert sum(map(len, opened.lines("*"))) == 2
    whole = (two / "cdx-00001.gz").read_bytes()
    with (two / "cdx-00001.gz").open("ab") as file:
        file.write(b"x")
    with pytest.raises(InputError, match="the index is truncated"), cdxmill.Cluster(two) as opened:
        list(opened.lines("*"))
    with open_cluster(two) as still:
        (two / "cdx-00001.gz").unlink()
        assert len(list(still.index.blocks(b""))) == 2, "whoever reads the block reports it"
    with pytest.raises(InputError, match=r"cdx-00001\.gz: cannot be read"), cdxmill.Cluster(two) as opened:
        list(opened.lines("*"))
    assert whole


def test_a_rule_that_is_invalid_is_wrong_usage(two: Path) -> None:
    with pytest.raises(UsageError, match="invalid --shard-index-loc"), open_cluster(two, ("(", "")):
        pass


@pytest.mark.parametrize("is_moved_in", [True, False])
def test_the_manifest_of_a_change_counts_from_the_moment_its_index_is_there(
    is_moved_in: bool, two: Path
) -> None:
    """Before, the directory of the change has that index."""
    own = parse_manifest((two / "cluster.json").read_bytes())
    staged = own._replace(change=7, origin=origin_of(own))
    (two / ".change").mkdir()
    (two / ".change/cluster.json").write_bytes(format_manifest(staged))
    if not is_moved_in:
        (two / ".change/cluster.idx").touch()
    assert manifest_of_index(locate(two))[0] == (staged if is_moved_in else own)
    (two / ".change/cluster.json").unlink()
    assert manifest_of_index(locate(two))[0] == own
    (two / "cluster.json").unlink()
    assert manifest_of_index(locate(two)) == (None, None)
