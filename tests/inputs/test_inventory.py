"""The inventory of the inputs: what is known about them before they are read."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdxmill.errors import UsageError
from cdxmill.inputs import cdx_files
from cdxmill.inputs.cdx_files import (
    CdxSource,
    Inventory,
    check_formats,
    have_changed,
    read_pieces,
    read_sorted,
    take_inventory,
)
from cdxmill.stages.window import ReadAt
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location

from ..material.cdx_files import write_gzip

KNOWN, EMPTY, UNKNOWN = (
    CdxSource(Location("a"), 10, 0),
    CdxSource(Location("b"), 0, 0, None, is_empty=True),
    CdxSource(Location("c"), 0, 0),
)
LINE = b'com,a)/ 2020 {"filename": "a.warc", "offset": "1", "length": "2"}\n'
CLASSIC = b"com,a)/ 2020 http://a.com/ text/html 200 ABC - - 9 7 b.warc\n"


def test_the_total_is_unknown_if_one_size_is_unknown() -> None:
    assert Inventory([KNOWN, EMPTY, KNOWN]).total == 20
    assert Inventory([KNOWN, EMPTY, UNKNOWN]).total == 0
    assert Inventory([KNOWN, EMPTY, UNKNOWN]).size == 10
    assert Inventory([]).total == 0


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(contents: dict[str, bytes]) -> list[str]:
    for name, data in contents.items():
        Path(name).write_bytes(data)
    return list(contents)


@pytest.mark.parametrize("batch", [1, 2, 256])
def test_each_file_is_looked_at_once_and_the_heads_of_the_largest_are_kept(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdx_files, "_BATCH", batch)
    monkeypatch.setattr(cdx_files, "_HEADS", 2)
    contents = {
        "a.cdxj": LINE * 2,
        "b.cdx": b" CDX N b a m s k r M S V g\n" + CLASSIC * 5,
        "c.cdxj": b"",
        "d.cdxj": LINE * 3,
        "e.cdx": b" CDX N b a m s k r M S V g\n",
        "f.cdxj.gz": gzip.compress(LINE),
        "g.cdxj": LINE[:-1],
        "h.cdxj": b"no lines\n",
    }
    paths = [*files(contents), "absent"]
    found = take_inventory(paths, formats=True)
    looked = {one.path: (one.size, one.fields, one.is_empty, one.archive) for one in found.sources}
    sizes = {name: len(data) for name, data in contents.items()}
    assert list(looked) == paths
    assert looked == {
        "a.cdxj": (sizes["a.cdxj"], 0, False, b"a.warc"),
        "b.cdx": (sizes["b.cdx"], 11, False, b"b.warc"),
        "c.cdxj": (0, None, True, b""),
        "d.cdxj": (sizes["d.cdxj"], 0, False, b"a.warc"),
        "e.cdx": (sizes["e.cdx"], None, False, b""),
        "f.cdxj.gz": (sizes["f.cdxj.gz"], 0, False, b"a.warc"),
        "g.cdxj": (sizes["g.cdxj"], 0, False, b"a.warc"),
        "h.cdxj": (sizes["h.cdxj"], None, False, b""),
        "absent": (0, None, False, b""),
    }
    assert list(found.heads()) == [contents["b.cdx"], contents["d.cdxj"]]
    few = take_inventory(paths)
    assert [one[:2] for one in few.sources] == [one[:2] for one in found.sources]
    assert {one.fields for one in few.sources} == {None}
    assert (few.known_heads, few.size) == ((), found.size)
    assert list(take_inventory(paths[:-1]).heads()) == [contents["b.cdx"], contents["d.cdxj"]], "read now"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_the_first_capture_line_is_searched_in_the_start_of_a_file(
    pack: type[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdx_files, "HEAD", 40)
    monkeypatch.setattr(cdx_files, "_FAR_READ", 50)
    monkeypatch.setattr(cdx_files, "_FAR", 400)
    headers = b" CDX N b a\n"
    paths = files({f"{n}.cdx": pack(headers * n + LINE) for n in (0, 1, 20, 60_000)})
    fields = [one.fields for one in take_inventory(paths, formats=True).sources]
    assert fields == [0, 0, 0, None]


def test_a_directory_is_not_an_empty_file(directory: Path) -> None:
    assert not take_inventory([str(directory)]).sources[0].is_empty


def test_a_file_has_changed_if_its_size_or_its_time_has() -> None:
    sources = take_inventory(files({"a": LINE, "b": LINE})).sources
    assert not have_changed(sources)
    os.utime("b", (5, 5))
    assert have_changed(sources)
    sources = take_inventory(["a", "b"]).sources
    Path("b").write_bytes(LINE * 2)
    os.utime("b", (5, 5))
    assert have_changed(sources)
    assert not have_changed(sources[:1])


def test_the_state_of_a_file_has_its_absolute_path(directory: Path) -> None:
    (one,) = take_inventory(files({"a": LINE})).states
    assert one == (f"{directory}/a", len(LINE), Path("a").stat().st_mtime)


def test_files_without_lines_have_no_format() -> None:
    paths = files({"a": b"", "b": LINE, "c": CLASSIC, "d": b"", "e": LINE})
    sources = take_inventory(paths, formats=True).sources
    assert check_formats([sources[0], sources[3]]) is None
    assert check_formats([sources[0], sources[1], sources[3], sources[4]]) == sources[1]
    with pytest.raises(UsageError, match=r"^b is CDXJ, but c is .* fields: all CDX files"):
        check_formats(sources)


def test_a_sorted_gzip_file_of_several_members_is_a_run_and_other_files_are_none() -> None:
    lines = [b"com,%03d)/ 2020 {}" % number for number in range(300)]
    for name, sound, members, most, is_run in (
        ("run", lines, 10, 1 << 20, True),
        ("large members", lines, 10, 100, False),
        ("unsorted", lines[::-1], 10, 1 << 20, False),
        ("invalid line", [*lines, b"zzz"], 10, 1 << 20, False),
    ):
        path = write_gzip(Path(f"{name}.cdxj.gz"), sound, members)
        taken: list[bytes] = []
        found = read_sorted(str(path), most, taken.append)
        assert (found is not None) == is_run, name
        if is_run:
            assert b"".join(taken) == gzip.decompress(path.read_bytes())
    Path("plain.cdxj").write_bytes(b"\n".join(lines) + b"\n")
    assert read_sorted("plain.cdxj", 1 << 20, taken.append) is None
    data = Path("run.cdxj.gz").read_bytes()
    Path("corrupt.cdxj.gz").write_bytes(data[:-9])
    assert read_sorted("corrupt.cdxj.gz", 1 << 20, taken.append) is None


@pytest.mark.parametrize(("missing", "is_run"), [(0, True), (1, True), (2, False), (9, False)])
def test_a_sorted_gzip_file_that_ends_in_a_line_is_no_run(missing: int, is_run: bool) -> None:
    """A line without its LF may be whole, as other tools write it."""
    text = b"".join(b"com,%03d)/ 2020 {}\n" % number for number in range(300))
    parts = text[:3000], text[3000 : len(text) - missing]
    Path("a.cdxj.gz").write_bytes(b"".join(map(gzip.compress, parts)))
    assert (read_sorted("a.cdxj.gz", 1 << 20, lambda piece: None) is not None) == is_run


def test_a_gzip_file_of_one_member_or_that_begins_with_text_is_no_run() -> None:
    lines = [b"com,%03d)/ 2020 {}" % number for number in range(300)]
    taken: list[bytes] = []
    one = write_gzip(Path("one.cdxj.gz"), lines, 1)
    assert read_sorted(str(one), 1 << 20, taken.append) is None
    Path("text").write_bytes(b"\n".join(lines) + b"\n" + one.read_bytes())
    assert read_sorted("text", 1 << 20, taken.append) is None
    assert taken == []


@pytest.mark.parametrize(
    ("entry", "head", "is_empty"),
    [
        (Entry(0, 5.0), b"", True),
        (Entry(0, 5.0), LINE, False),  # a server that tells no size
        (Entry(1, 5.0), b"", False),
        (Entry(0, 5.0, is_directory=True), b"", False),
        (None, b"", False),
    ],
)
def test_a_file_is_empty_if_it_has_neither_a_size_nor_bytes(
    entry: Entry | None, head: bytes, is_empty: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdx_files, "look", lambda place, size: (entry, head))
    for formats in (True, False):
        (source,) = take_inventory(["http://127.0.0.1:9/a"], formats).sources
        assert source.is_empty == is_empty
        assert source[1:3] == ((0, 0) if entry is None else (entry.size, 5.0))


def test_a_small_file_is_read_once_for_its_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdx_files, "read_pieces", lambda *asked: pytest.fail("the head has all lines"))
    paths = files({"a": LINE, "b": LINE[:-1], "c": b" CDX N b a\n", "d": b" CDX N b a", "e": b""})
    assert [one.fields for one in take_inventory(paths, formats=True).sources] == [0, 0, None, None, None]


def test_of_files_of_one_size_the_heads_are_always_of_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdx_files, "_HEADS", 1)
    contents = {"b": LINE.replace(b"a)", b"b)"), "c": LINE, "a": LINE.replace(b"a)", b"z)")}
    for names in (["b", "c", "a"], ["c", "a", "b"]):
        files({name: contents[name] for name in names})
        known, few = take_inventory(names, formats=True), take_inventory(names)
        assert list(few.heads()) == [LINE]
        for name in names:
            Path(name).unlink()
        assert list(known.heads()) == [LINE], "they were kept"


def test_the_state_of_a_file_on_a_server_has_its_url() -> None:
    assert CdxSource(Location("http://h/a"), 3, 5.0).state() == ("http://h/a", 3, 5.0)


def test_the_first_read_of_a_file_has_the_size_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    @contextmanager
    def opened(path: str) -> Iterator[ReadAt]:
        data = Path(path).read_bytes()

        def read_at(offset: int, size: int) -> bytes:
            sizes.append(size)
            return data[offset : offset + size]

        yield read_at

    monkeypatch.setattr(cdx_files, "open_unchanged", opened)
    files({"a": LINE * 100})
    assert b"".join(read_pieces("a", 500)) == LINE * 100
    assert sizes.pop(0) == 500
    sizes.clear()
    assert b"".join(read_pieces("a")) == LINE * 100
    assert sizes[0] > 500
