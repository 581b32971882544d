"""A damaged prefix B-tree, or one without its side file, never gives a wrong answer without an error."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import CorruptError, InputError
from cdxmill.search.prefix_index import find_captures
from cdxmill.tasks import tree_items

from ..material.cdx_files import write_plain
from ..material.trees import LINES, build, short


def test_a_missing_side_file_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    Path(f"{tree}.archives.gz").rename(tmp_path / "elsewhere")
    assert main(["prefix-index", "search", tree, "*.com"]) == 1
    assert "x.tree.archives.gz, which has the names of its archives, is missing" in capfd.readouterr().err
    assert main(["prefix-index", "search", f"{tree}x", "*.com"]) == 1
    assert "x.treex: cannot be read" in capfd.readouterr().err


@pytest.mark.parametrize("names", [b"a.warc.gz\n" * 10, b"a0.warc.gz\n", b"", None])
def test_a_side_file_of_another_tree_is_noticed(tmp_path: Path, names: bytes | None) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    side = Path(f"{tree}.archives.gz")
    side.write_bytes(side.read_bytes()[:-5] if names is None else gzip.compress(names))
    with pytest.raises(InputError, match=r"archives\.gz"):
        list(find_captures(tree, ["example.com/3*", "example.com/29*"]))


def test_a_changed_byte_of_a_tree_of_captures_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    lines = LINES[:60:2]
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", lines), block_size=200)
    data = Path(tree).read_bytes()
    urls = {f"http://example.com/{short(one)[0].rpartition('/')[2]}": one for one in lines}
    errors = 0
    for offset in range(0, len(data), 3):
        changed = bytearray(data)
        changed[offset] ^= 1 << offset % 8
        Path(tree).write_bytes(changed)
        for url in [*urls][offset % 11 :: 11]:
            try:
                found = [short(one) for one in next(find_captures(tree, [url]), [])]
            except CorruptError:
                errors += 1
            else:
                assert found == [short(urls[url])], (offset, url)
    assert errors > 100


def test_a_side_file_with_very_many_names_needs_little_memory(tmp_path: Path) -> None:
    """Its 10 KB are 10 million empty names. A list of them would need 80 MB."""
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    Path(f"{tree}.archives.gz").write_bytes(gzip.compress(b"\n" * 10_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptError, match=r"archives\.gz belongs to another file"):
            list(find_captures(tree, ["example.com/3*"]))
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_names_beyond_the_first_group_are_found(tmp_path: Path) -> None:
    lines = [
        b"com,a)/%04d 2020 " % n + b'{"length": "1", "offset": "0", "filename": "%d"}' % n for n in range(260)
    ]
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", lines))
    assert [short(one)[-1] for found in find_captures(tree, ["*.com"]) for one in found] == [
        str(n) for n in range(260)
    ]


def test_more_names_than_a_search_reads_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_items, "MOST_NAMES", 20)
    with pytest.raises(InputError, match="names of the archives have more than"):
        build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
