"""A damaged prefix B-tree, or one without its side file, never gives a wrong answer without an error."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import CorruptError, InputError
from cdxmill.formats.tree.name_groups import unpack_names
from cdxmill.tasks import tree_items

from ..material.cdx_files import write_plain
from ..material.trees import LINES, build, found_in, short


def test_a_missing_file_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["prefix-index", "search", str(tmp_path / "x.tree"), "*.com"]) == 1
    assert "x.tree: cannot be read" in capfd.readouterr().err


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
                found = [short(one) for one in found_in(tree, url)]
            except CorruptError:
                errors += 1
            else:
                assert found == [short(urls[url])], (offset, url)
    assert errors > 100


def test_a_group_with_very_many_names_needs_little_memory() -> None:
    """Its 10 KB are 10 million empty names. A list of them would need 80 MB."""
    group = gzip.compress(b"\n" * 10_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 1024 in a group"):
            unpack_names(group)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("group", [b"", b"x", gzip.compress(b"a\n")[:-1], gzip.compress(b"a\n") + b"x"])
def test_names_that_are_no_gzip_member_are_an_error(group: bytes) -> None:
    with pytest.raises(ValueError, match="corrupt"):
        unpack_names(group)


def test_names_beyond_the_first_group_are_found(tmp_path: Path) -> None:
    lines = [
        b"com,a)/%04d 2020 " % n + b'{"length": "1", "offset": "0", "filename": "%d"}' % n
        for n in range(2100)
    ]
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", lines))
    assert [short(one)[-1] for one in found_in(tree, "*.com")] == [str(n) for n in range(2100)]
    for number in (0, 1023, 1024, 2047, 2099):
        assert [short(one)[-1] for one in found_in(tree, f"a.com/{number:04d}")] == [str(number)]


def test_more_names_than_a_search_reads_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_items, "MOST_NAMES", 20)
    with pytest.raises(InputError, match="names of the archives have more than"):
        build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))


def test_all_blocks_and_names_are_checked_by_a_lookup_of_everything(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES), block_size=2000)
    whole = Path(tree).read_bytes()
    for offset in range(200, len(whole), 1999):
        Path(tree).write_bytes(whole[:offset] + bytes((whole[offset] ^ 1,)) + whole[offset + 1 :])
        assert main(["lookup", tree, "*"]) == 1
        assert capfd.readouterr().err.startswith(f"cdxmill: {tree}@")


def test_an_error_of_several_inputs_counts_them(tmp_path: Path) -> None:
    one, other = (write_plain(tmp_path / name, [b"a" * 70000 + b"\t1 2 3 4 5"]) for name in ("a", "b"))
    with pytest.raises(InputError, match=r"^2 inputs: .* longer than a block"):
        build(tmp_path, one, other)
