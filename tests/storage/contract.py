"""The contract of every storage: one suite for reading, one for writing."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest

from cdxmill.errors import AbsentError, InputError, StoppedError
from cdxmill.storage.location import join, locate

ReadAt = Callable[[int, int], bytes]
Size = Callable[[str], int]
Put = Callable[[str, bytes], str]

BODY = random.Random(3).randbytes(300_000)


def check_storage(put: Put, size: Size = lambda path: locate(path).size()) -> None:
    """Check reads. `put(name, body)` stores a file and returns its path or URL."""
    path = put("a.warc.gz", BODY)
    with locate(path).open_ranges() as read_at:
        _check_ranges(read_at)
    with locate(path).open_ranges() as one, locate(path).open_ranges() as other:
        assert one(1000, 10) + other(0, 10) == BODY[1000:1010] + BODY[:10], (
            "two readers do not disturb each other"
        )
    assert size(path) == len(BODY)
    _check_names(put)
    _check_empty(size, put("empty.warc", b""))
    _check_absent(size, path.replace("a.warc.gz", "absent.warc.gz"))


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


def _check_names(put: Put) -> None:
    path = put("dir one/b+c=ü.warc", b"0123456789")
    with locate(path).open_ranges() as read_at:
        assert read_at(2, 3) == b"234", "names with spaces and other letters"


def _check_empty(size: Size, path: str) -> None:
    with locate(path).open_ranges() as read_at:
        assert read_at(0, 100) == b""
        assert read_at(50, 100) == b""
    assert size(path) == 0


def _check_absent(size: Size, path: str) -> None:
    with pytest.raises(AbsentError) as caught, locate(path).open_ranges() as read_at:
        read_at(0, 1)
    assert caught.value.path.endswith("absent.warc.gz"), "the file is named"
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    assert size(path) == 0


def check_writing(directory: str, *, has_directories: bool = True) -> None:
    """Check writes below `folder`, a path or URL that does not exist yet. S3 has no directories that can be moved."""
    assert locate(directory).entries() == {}
    _check_whole_or_absent(join(directory, "a.cdx.gz"))
    _check_listing(directory)
    _check_removal(join(directory, "a.cdx.gz"))
    _check_moves(directory)
    if has_directories:
        _check_moves_of_directories(directory)
    _check_removal_of_trees(directory)
    if locate(directory).is_remote:
        _check_swaps(join(directory, "swapped", "a"))
    _check_times(directory)
    if locate(directory).is_remote:
        _check_stamps(join(directory, "stamped.cdx.gz"))
    assert locate(directory).is_same(locate(f"{directory}/"))
    assert not locate(directory).is_same(locate(join(directory, "below")))


def write(path: str, body: bytes) -> None:
    with locate(path).write_atomic() as file:
        file.write(body)


def _check_whole_or_absent(path: str) -> None:
    with locate(path).write_atomic() as file:
        file.write(BODY[:100_000])
        assert not locate(path).exists()
        file.write(BODY[100_000:])
    assert locate(path).read_bytes() == BODY
    for error in (KeyError, InputError("a", "b"), StoppedError("c"), KeyboardInterrupt):
        with (
            pytest.raises((KeyError, InputError, StoppedError, KeyboardInterrupt)),
            locate(path).write_atomic() as file,
        ):
            file.write(b"half")
            raise error
    assert locate(path).read_bytes() == BODY, "the old file is kept"
    write(path, b"other")
    assert locate(path).read_bytes() == b"other", "and is replaced"
    write(path, b"")
    assert locate(path).read_bytes() == b""


def _check_listing(directory: str) -> None:
    write(join(directory, "below", "deep", "b+c=ü d.cdx"), BODY[:70_000])
    write(join(directory, "below.cdx"), b"123")
    found = locate(directory).entries()
    assert {
        name: (entry.size, entry.is_directory) for name, entry in found.items() if not entry.is_directory
    } == {
        "a.cdx.gz": (0, False),
        "below.cdx": (3, False),
    }, "nothing else is left behind"
    assert found["below"].is_directory
    deep = join(directory, "below", "deep")
    assert locate(f"{deep}/").entries().keys() == locate(deep).entries().keys() == {"b+c=ü d.cdx"}
    assert locate(join(deep, "b+c=ü d.cdx")).read_bytes() == BODY[:70_000]
    assert locate(join(directory, "below.cdx")).entries() == {}, "a file is not a folder"
    assert locate(join(directory, "belo")).entries() == {}


def _check_removal(path: str) -> None:
    assert locate(path).exists()
    locate(path).remove()
    locate(path).remove()
    assert locate(path).status() is None
    with pytest.raises(AbsentError), locate(path).open_ranges() as read_at:
        read_at(0, 1)


def _check_moves(directory: str) -> None:
    one, other = join(directory, "one"), join(directory, "other")
    write(one, BODY)
    write(other, b"")
    locate(one).move(locate(other))
    assert not locate(one).exists()
    assert locate(other).read_bytes() == BODY
    write(one, b"")
    locate(one).move(locate(other))
    assert locate(other).read_bytes() == b""
    for target in (one, other):  # nothing is there; a file is there
        with pytest.raises(StoppedError):
            locate(join(directory, "absent")).move(locate(target))
    assert locate(other).read_bytes() == b""
    locate(other).remove()


def _check_moves_of_directories(directory: str) -> None:
    """What replaces a cluster in one step, and never puts one into another."""
    old, new, place = (join(directory, "moved", name) for name in ("old d+r", ".new", "place"))
    write(join(old, "below", "a"), b"old")
    write(join(new, "a"), b"new")
    locate(old).move(locate(place))
    assert not locate(old).exists()
    assert locate(join(place, "below", "a")).read_bytes() == b"old", "with all that is below it"
    with pytest.raises(StoppedError):
        locate(new).move(locate(place))
    assert locate(join(new, "a")).read_bytes() == b"new", "a directory with files is not replaced"
    assert locate(place).entries().keys() == {"below"}, "and nothing is moved into it"
    with pytest.raises(StoppedError):
        locate(old).move(locate(join(directory, "moved", "other")))
    with pytest.raises(StoppedError):
        locate(old).move(locate(place))
    locate(place).remove_tree()
    locate(new).move(locate(place))
    assert locate(join(directory, "moved")).entries().keys() == {"place"}
    assert locate(join(place, "a")).read_bytes() == b"new"


def _check_removal_of_trees(directory: str) -> None:
    tree, beside = join(directory, "tree"), join(directory, "tree.beside")
    for path in (join(tree, "a"), join(tree, "below", "deep*", "b"), beside):
        write(path, b"1")
    locate(tree).remove_tree()
    assert locate(tree).entries() == {}
    assert "tree" not in locate(directory).entries()
    locate(tree).remove_tree()
    assert locate(beside).read_bytes() == b"1", "nothing else is deleted"
    locate(beside).remove_tree()
    assert not locate(beside).exists(), "a file is deleted, too"


def _check_swaps(path: str) -> None:
    place = locate(path)
    assert not place.swap(b"1", b"2"), "there is no file"
    assert not place.exists()
    assert place.swap(None, b"1")
    assert not place.swap(None, b"2"), "there is one"
    assert not place.swap(b"", b"2")
    assert not place.swap(b"12", b"2")
    assert place.read_bytes() == b"1"
    assert place.swap(b"1", b"22")
    assert place.read_bytes() == b"22"
    assert place.parent.entries().keys() == {"a"}, "nothing else is left behind"
    place.remove()


def _check_times(directory: str) -> None:
    before, after = join(directory, "1"), join(directory, "2")
    write(before, b"1")
    write(after, b"22")
    found = locate(after).status()
    assert found is not None
    assert (found.size, found.is_directory) == (2, False)
    assert locate(directory).entries()["2"] == found


def _check_stamps(path: str) -> None:
    """A stamp appears with the content, is replaced with it, and is not left behind."""
    assert locate(path).stamped() == (None, "")
    written: list[int] = []
    for stamp in (" ".join(["a/b%20c", "0-1"] * 99), "other", ""):
        with locate(path).write_atomic(stamp=partial(str, stamp) if stamp else None) as file:
            written.append(file.write(stamp.encode() + b"1"))
        entry, found = locate(path).stamped()
        assert entry == locate(path).status()
        assert entry is not None
        assert (entry.size, found) == (written[-1], stamp)
