"""Clusters with other layouts can be read. Corrupt ones are reported in one line."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import InputError
from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup

from .conftest import ALL, line_of

WANTED = [line for line in ALL if line.startswith(b"com,")]


def rename_shards(directory: Path, index: Path, new: Callable[[str], str]) -> None:
    """Other file names, which the index has, too."""
    text = index.read_text()
    for shard in directory.glob("cdx-*.gz"):
        text = text.replace(shard.name, new(shard.name))
        shard.rename(directory / new(shard.name))
    index.write_text(text)


def without_extras(directory: Path) -> None:
    for name in ("cluster.json", "cluster.loc", "cluster.summary", "splits.txt", "splits.seq"):
        (directory / name).unlink()


@pytest.mark.parametrize("name", ["cluster.idx", "cluster.summary", "all.idx", "indexes/cluster.idx"])
def test_an_index_is_found_by_the_names_that_are_in_use(directory: Path, tmp_path: Path, name: str) -> None:
    without_extras(directory)
    index = tmp_path / "published" / name
    index.parent.mkdir(parents=True)
    (directory / "cluster.idx").rename(index)
    for shard in directory.glob("cdx-*.gz"):
        shard.rename(index.parent / shard.name)
    assert list(lookup(tmp_path / "published", "*.com")) == WANTED
    assert list(lookup(index, "*.com")) == WANTED


def test_an_index_without_line_numbers_will_do(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    without_extras(directory)
    (directory / "cluster.idx").unlink()
    parts = [path.read_bytes() for path in sorted(directory.glob("part-*"))]
    (directory / "all.idx").write_bytes(b"".join(parts))
    assert list(lookup(directory, "*.com")) == WANTED
    assert main(["lookup", str(directory), "*.com", "--show-num-pages", "--page-size", "10"]) == 0
    blocks = -(-len(WANTED) // 20) + 1
    assert int(capfd.readouterr().out.split('"blocks": ')[1].strip("}\n")) in (blocks - 1, blocks)


@pytest.mark.parametrize("ending", [".gz", ".cdx.gz"])
def test_shards_are_found_if_the_index_shortens_their_names(directory: Path, ending: str) -> None:
    without_extras(directory)
    index = directory / "cluster.idx"
    rename_shards(directory, index, lambda name: name.removesuffix(".gz") + ending)
    index.write_text(index.read_text().replace(ending + "\t", "\t"))
    assert list(lookup(directory, "*.com")) == WANTED


def test_shards_can_have_any_names(directory: Path) -> None:
    without_extras(directory)
    rename_shards(directory, directory / "cluster.idx", lambda name: f"part-r-{name[4:9]}.cdx.gz")
    assert list(lookup(directory, "*.com")) == WANTED


def test_shards_packed_by_others_are_read(directory: Path) -> None:
    """gzip members with a name, a time and other levels; offsets fitted."""
    without_extras(directory)
    rows = [line.split("\t") for line in (directory / "cluster.idx").read_text().splitlines()]
    packed: dict[str, bytes] = {}
    for row in rows:
        data = gzip.decompress((directory / row[1]).read_bytes()[int(row[2]) : int(row[2]) + int(row[3])])
        member = bytearray(gzip.compress(data, 9, mtime=77))
        member[3] |= 8
        member[10:10] = b"part\0"
        offset = len(packed.get(row[1], b""))
        packed[row[1]] = packed.get(row[1], b"") + bytes(member)
        row[2:4] = [str(offset), str(len(member))]
    for name, content in packed.items():
        (directory / name).write_bytes(content)
    (directory / "cluster.idx").write_text("".join("\t".join(row) + "\n" for row in rows))
    assert list(lookup(directory, "*.com")) == WANTED


def test_locations_beside_an_index_of_another_name_are_read(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (directory / "cluster.idx").rename(tmp_path / "index/crawl.idx")
    (directory / "cluster.loc").rename(tmp_path / "index/crawl.loc")
    assert list(lookup(tmp_path / "index/crawl.idx", "*.com")) == WANTED


@pytest.mark.parametrize("rule", [("().*", "{}/"), ("^.*", "{}/"), (".*/C/", "{}/")])
def test_a_rule_locates_shards(directory: Path, tmp_path: Path, rule: tuple[str, str]) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for shard in directory.glob("cdx-*.gz"):
        shard.rename(there / shard.name)
    if rule[0] == "().*":  # matches nothing and stays before the directory, as in pywb
        rule = ("^.*$", rule[1])
    found = lookup(directory, "*.com", Query(shard_index_loc=(rule[0], rule[1].format(there))))
    assert list(found) == WANTED


def told(capfd: pytest.CaptureFixture[str], *call: object) -> tuple[int, str]:
    """Exit status, and the one line."""
    status = main(["lookup", *map(str, call)])
    out, error = capfd.readouterr()
    assert out == ""
    (line,) = error.splitlines()
    return status, line


def test_an_unsorted_index_is_reported(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = (directory / "cluster.idx").read_bytes().splitlines(keepends=True)
    (directory / "cluster.idx").write_bytes(b"".join(lines[30:] + lines[:30]))
    status, line = told(capfd, directory, "http://b.com/page/0001")
    assert (status, "not sorted" in line) == (1, True)


def test_a_cluster_without_its_index_is_reported(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for path in directory.glob("cluster.*"):
        path.unlink()
    status, line = told(capfd, directory, "http://b.com/page/0001")
    assert (status, "has no cluster.idx; create it with cdxmill publish --unfinished" in line) == (1, True)


def test_an_index_truncated_within_a_line_is_reported(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    index = (directory / "cluster.idx").read_bytes()
    (directory / "cluster.idx").write_bytes(index[: index.rindex(b"cdx-") + 5])
    status, line = told(capfd, directory, "http://c.org/page/0399")
    assert (status, "the index is truncated: its last line has no line end" in line) == (1, True)


@pytest.mark.parametrize("left", [0, 1, 79])
def test_an_index_with_missing_lines_is_reported_if_there_is_a_manifest(
    directory: Path, left: int, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = (directory / "cluster.idx").read_bytes().splitlines(keepends=True)
    (directory / "cluster.idx").write_bytes(b"".join(lines[:left]))
    status, line = told(capfd, directory, "http://c.org/page/0399")
    assert (status, f"the index has {left} blocks, but cluster.json has {len(lines)}" in line) == (1, True)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": 1}', b"\xff"])
def test_an_empty_manifest_is_ignored(directory: Path, content: bytes) -> None:
    (directory / "cluster.json").write_bytes(content)
    assert list(lookup(directory, "*.com")) == WANTED


def test_an_index_of_another_build_is_reported(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number in (0, 1):
        (directory / f"cdx-0000{number}.gz").write_bytes((directory / "cdx-00002.gz").read_bytes())
    status, line = told(capfd, directory, "http://a.com/page/0000")
    assert (status, "cdx-00000.gz@" in line) == (1, True)


def test_a_truncated_shard_is_reported(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shard = directory / "cdx-00002.gz"
    shard.write_bytes(shard.read_bytes()[:-9])
    status, line = told(capfd, directory, "http://c.org/page/0399")
    assert (status, "the shard ends before" in line) == (1, True)


def test_every_byte_that_is_changed_in_a_block_changes_no_answer_in_silence(
    tmp_path: Path, directory: Path
) -> None:
    """Whole blocks are proven by their checksums; an answer that is cut short is looked at by verify."""
    shard = directory / "cdx-00000.gz"
    sound = shard.read_bytes()
    wanted = list(lookup(directory, "a.com/*"))
    wrong = 0
    for place in range(0, 400, 7):
        shard.write_bytes(sound[:place] + bytes((sound[place] ^ 0x55,)) + sound[place + 1 :])
        try:
            assert list(lookup(directory, "a.com/*")) == wanted  # a time in a header, no more
        except InputError:
            wrong += 1
    assert wrong > 40


def test_the_last_line_and_the_first_are_found(directory: Path) -> None:
    assert list(lookup(directory, "http://c.org/page/0399")) == [
        line_of("c.org", 399),
        line_of("c.org", 399, 2),
    ]
    assert list(lookup(directory, "http://a.com/page/0000")) == [line_of("a.com", 0), line_of("a.com", 0, 2)]


def test_keys_after_and_before_all_others_find_nothing(directory: Path) -> None:
    assert list(lookup(directory, "http://zz.zz/")) == list(lookup(directory, "http://a.aa/")) == []
