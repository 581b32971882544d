"""The contract of every storage: one suite for reading, one for writing."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from cdxmill.errors import AbsentError, InputError, StoppedError
from cdxmill.storage.choose import (
    exists,
    is_newer,
    join,
    list_folder,
    move,
    open_ranges,
    read_bytes,
    remove,
    remove_tree,
    same_location,
    status,
    write_atomic,
)

ReadAt = Callable[[int, int], bytes]
OpenRanges = Callable[[str], AbstractContextManager[ReadAt]]
FileSize = Callable[[str], int]
Put = Callable[[str, bytes], str]

BODY = random.Random(3).randbytes(300_000)


def check_storage(open_ranges: OpenRanges, file_size: FileSize, put: Put) -> None:
    """Check reads. `put(name, body)` stores a file and returns its path or URL."""
    path = put("a.warc.gz", BODY)
    with open_ranges(path) as read_at:
        _check_ranges(read_at)
    with open_ranges(path) as one, open_ranges(path) as other:
        assert one(1000, 10) + other(0, 10) == BODY[1000:1010] + BODY[:10], (
            "two readers do not disturb each other"
        )
    assert file_size(path) == len(BODY)
    _check_names(open_ranges, put)
    _check_empty(open_ranges, file_size, put("empty.warc", b""))
    _check_absent(open_ranges, file_size, path.replace("a.warc.gz", "absent.warc.gz"))


def _check_ranges(read_at: ReadAt) -> None:
    size = len(BODY)
    for offset, wanted in (
        (0, 1),
        (0, size),
        (5, 70_000),
        (size - 1, 1),
        (3, 2),
        (size // 2, 99_999),
        (0, 16),
    ):
        assert read_at(offset, wanted) == BODY[offset : offset + wanted]
    assert read_at(size - 10, 4 << 20) == BODY[-10:], "fewer bytes at the end"
    assert read_at(size, 10) == b"", "none at the end"
    assert read_at(size + 5000, 10) == b"", "none behind it"
    assert read_at(7, 0) == b""
    steps = [read_at(offset, 65_536) for offset in range(0, size + 65_536, 65_536)]
    assert b"".join(steps) == BODY, "in steps, as archives are read"
    generator = random.Random(1)
    for _ in range(20):
        offset, wanted = generator.randrange(size), generator.randrange(5000)
        assert read_at(offset, wanted) == BODY[offset : offset + wanted]


def _check_names(open_ranges: OpenRanges, put: Put) -> None:
    path = put("dir one/b+c=ü.warc", b"0123456789")
    with open_ranges(path) as read_at:
        assert read_at(2, 3) == b"234", "names with spaces and other letters"


def _check_empty(open_ranges: OpenRanges, file_size: FileSize, path: str) -> None:
    with open_ranges(path) as read_at:
        assert read_at(0, 100) == b""
        assert read_at(50, 100) == b""
    assert file_size(path) == 0


def _check_absent(open_ranges: OpenRanges, file_size: FileSize, path: str) -> None:
    with pytest.raises(AbsentError) as caught, open_ranges(path) as read_at:
        read_at(0, 1)
    assert caught.value.path.endswith("absent.warc.gz"), "the file is named"
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    assert file_size(path) == 0


def check_writing(folder: str, *, has_directories: bool = True) -> None:
    """Check writes below `folder`, a path or URL that does not exist yet. S3 has no directories that can be moved."""
    assert list_folder(folder) == {}
    _check_whole_or_absent(join(folder, "a.cdx.gz"))
    _check_listing(folder)
    _check_removal(join(folder, "a.cdx.gz"))
    _check_moves(folder)
    if has_directories:
        _check_moves_of_directories(folder)
    _check_removal_of_trees(folder)
    _check_times(folder)
    assert same_location(folder, f"{folder}/")
    assert not same_location(folder, join(folder, "below"))


def write(path: str, body: bytes) -> None:
    with write_atomic(path) as file:
        file.write(body)


def _check_whole_or_absent(path: str) -> None:
    with write_atomic(path) as file:
        file.write(BODY[:100_000])
        assert not exists(path)
        file.write(BODY[100_000:])
    assert read_bytes(path) == BODY
    for error in (KeyError, InputError("a", "b"), StoppedError("c"), KeyboardInterrupt):
        with (
            pytest.raises((KeyError, InputError, StoppedError, KeyboardInterrupt)),
            write_atomic(path) as file,
        ):
            file.write(b"half")
            raise error
    assert read_bytes(path) == BODY, "the old file is kept"
    write(path, b"other")
    assert read_bytes(path) == b"other", "and is replaced"
    write(path, b"")
    assert read_bytes(path) == b""


def _check_listing(folder: str) -> None:
    write(join(folder, "below", "deep", "b+c=ü d.cdx"), BODY[:70_000])
    write(join(folder, "below.cdx"), b"123")
    found = list_folder(folder)
    assert {name: (entry.size, entry.is_folder) for name, entry in found.items() if not entry.is_folder} == {
        "a.cdx.gz": (0, False),
        "below.cdx": (3, False),
    }, "nothing else is left behind"
    assert found["below"].is_folder
    deep = join(folder, "below", "deep")
    assert list_folder(f"{deep}/").keys() == list_folder(deep).keys() == {"b+c=ü d.cdx"}
    assert read_bytes(join(deep, "b+c=ü d.cdx")) == BODY[:70_000]
    assert list_folder(join(folder, "below.cdx")) == {}, "a file is not a folder"
    assert list_folder(join(folder, "belo")) == {}


def _check_removal(path: str) -> None:
    assert exists(path)
    remove(path)
    remove(path)
    assert status(path) is None
    with pytest.raises(AbsentError), open_ranges(path) as read_at:
        read_at(0, 1)


def _check_moves(folder: str) -> None:
    one, other = join(folder, "one"), join(folder, "other")
    write(one, BODY)
    write(other, b"")
    move(one, other)
    assert not exists(one)
    assert read_bytes(other) == BODY
    write(one, b"")
    move(one, other)
    assert read_bytes(other) == b""
    for target in (one, other):  # nothing is there; a file is there
        with pytest.raises(StoppedError):
            move(join(folder, "absent"), target)
    assert read_bytes(other) == b""
    remove(other)


def _check_moves_of_directories(folder: str) -> None:
    """What replaces a cluster in one step, and never puts one into another."""
    old, new, place = (join(folder, "moved", name) for name in ("old d+r", ".new", "place"))
    write(join(old, "below", "a"), b"old")
    write(join(new, "a"), b"new")
    move(old, place)
    assert not exists(old)
    assert read_bytes(join(place, "below", "a")) == b"old", "with all that is below it"
    with pytest.raises(StoppedError):
        move(new, place)
    assert read_bytes(join(new, "a")) == b"new", "a directory with files is not replaced"
    assert list_folder(place).keys() == {"below"}, "and nothing is moved into it"
    with pytest.raises(StoppedError):
        move(old, join(folder, "moved", "other"))
    with pytest.raises(StoppedError):
        move(old, place)
    remove_tree(place)
    move(new, place)
    assert list_folder(join(folder, "moved")).keys() == {"place"}
    assert read_bytes(join(place, "a")) == b"new"


def _check_removal_of_trees(folder: str) -> None:
    tree, beside = join(folder, "tree"), join(folder, "tree.beside")
    for path in (join(tree, "a"), join(tree, "below", "deep*", "b"), beside):
        write(path, b"1")
    remove_tree(tree)
    assert list_folder(tree) == {}
    assert "tree" not in list_folder(folder)
    remove_tree(tree)
    assert read_bytes(beside) == b"1", "nothing else is deleted"
    remove_tree(beside)
    assert not exists(beside), "a file is deleted, too"


def _check_times(folder: str) -> None:
    before, after = join(folder, "1"), join(folder, "2")
    assert not is_newer(after, before)
    write(before, b"1")
    assert not is_newer(after, before)
    write(after, b"22")
    assert is_newer(after, before)
    found = status(after)
    assert found is not None
    assert (found.size, found.is_folder) == (2, False)
    assert list_folder(folder)["2"] == found
