"""Pages of a file behind a URL: kept in memory and on disk."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cdxmill.errors import InputError
from cdxmill.storage import cache
from cdxmill.storage.cache import PAGE, _Pages, cache_directory, cached_part, open_cached, read_recent

BODY = random.Random(8).randbytes(20 * PAGE + 100)


class Source:
    """BODY, and the pages that were read from it."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def read_at(self, offset: int, size: int) -> bytes:
        self.seen += range(offset // PAGE, (offset + size - 1) // PAGE + 1)
        return BODY[offset : offset + size]


@pytest.fixture
def source() -> Source:
    return Source()


def test_the_page_used_longest_ago_is_dropped_first(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_IN_MEMORY", 3)
    pages = _Pages(source.read_at, len(BODY), None)
    for number in (0, 1, 2, 0, 3, 0, 1):
        assert pages.read_at(number * PAGE + 7, 5) == BODY[number * PAGE + 7 :][:5]
    assert source.seen == [0, 1, 2, 3, 1]


def test_missing_pages_are_one_read_and_are_kept_on_disk(source: Source, tmp_path: Path) -> None:
    for _ in range(2):  # the second time from disk
        pages = _Pages(source.read_at, len(BODY), tmp_path / "version")
        assert pages.read_at(PAGE - 1, 2 * PAGE) == BODY[PAGE - 1 :][: 2 * PAGE]
        assert pages.read_at(len(BODY) - 50, 100) == BODY[-50:]
        assert pages.read_at(len(BODY), 100) == b""
    assert source.seen == [0, 1, 2, 20]
    assert _Pages(source.read_at, len(BODY), None).read_at(5, 0) == b""
    assert source.seen == [0, 1, 2, 20], "no byte is asked for"


def test_a_page_that_was_on_disk_stays_in_memory(source: Source, tmp_path: Path) -> None:
    _Pages(source.read_at, len(BODY), tmp_path / "version").read_at(0, PAGE)
    pages = _Pages(source.read_at, len(BODY), tmp_path / "version")
    assert pages.read_at(0, PAGE) == BODY[:PAGE]
    shutil.rmtree(tmp_path / "version")
    assert pages.read_at(0, PAGE) == BODY[:PAGE]
    assert source.seen == [0]


def test_a_page_of_too_few_bytes_is_not_kept_on_disk(tmp_path: Path) -> None:
    pages = _Pages(lambda offset, size: BODY[offset : offset + 10], len(BODY), tmp_path)
    assert pages.read_at(PAGE, 100) == BODY[PAGE : PAGE + 10]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("setting", ["cache", "off", ""])
def test_a_part_of_a_file_has_pages_of_its_own(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / setting) if setting == "cache" else setting)
    monkeypatch.chdir(tmp_path)
    asked: list[range] = []

    def read_at(offset: int, size: int) -> bytes:
        asked.append(range(offset, offset + size))
        return BODY[offset : offset + size]

    for part in (range(1000, 1000 + 2 * PAGE + 7), range(5, 4 * PAGE)):
        for _ in range(2):
            read = cached_part("http://host/a.tree", "one", read_at, part)
            first = part.start + PAGE - 1
            assert read(first, PAGE + 2) == BODY[first : first + PAGE + 2]
            assert read(part.stop - 3, 9) == BODY[part.stop - 3 : part.stop]
        wanted = [range(part.start, min(part.start + 3 * PAGE, part.stop))]
        wanted += [range(part.start + 3 * PAGE, part.stop)] * (wanted[0].stop < part.stop)
        assert asked == wanted * (1 if setting == "cache" else 2)
        asked.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["cache"] * (setting == "cache")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:9] + b"?" + data[10:],
        lambda data: data[:-1],
        lambda data: b"x" + data,
        lambda data: b"",
        lambda data: cache._sealed(data[:100]),
    ],
    ids=["another byte", "truncated", "moved", "empty", "of another length"],
)
def test_a_page_that_was_damaged_on_disk_is_fetched_again(
    change: Callable[[bytes], bytes], source: Source, tmp_path: Path
) -> None:
    for _ in range(3):
        assert _Pages(source.read_at, len(BODY), tmp_path).read_at(0, 2 * PAGE) == BODY[: 2 * PAGE]
        if source.seen == [0, 1]:
            (tmp_path / "1").write_bytes(change((tmp_path / "1").read_bytes()))
    assert source.seen == [0, 1, 1]


@pytest.mark.parametrize(("age", "expected"), [(98, b"old"), (100, b"new"), (-60, b"new")])
def test_a_copy_is_used_as_long_as_it_is_recent(
    age: float, expected: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "list").write_bytes(b"old")
    assert read_recent(str(tmp_path / "list"), 99) == b"old"
    (kept,) = (tmp_path / "cache").rglob("whole")
    (tmp_path / "list").write_bytes(b"new")
    monkeypatch.setattr(time, "time", lambda: kept.stat().st_mtime + age)
    assert read_recent(str(tmp_path / "list"), 99) == expected


def test_an_old_copy_is_used_if_the_source_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "list").write_bytes(b"old")
    assert read_recent(str(tmp_path / "list"), 99) == b"old"
    (tmp_path / "list").unlink()
    assert read_recent(str(tmp_path / "list"), 0) == b"old"


def test_a_cache_that_cannot_be_written_to_costs_nothing_but_requests(source: Source, tmp_path: Path) -> None:
    directory = tmp_path / "pages"
    pages = _Pages(source.read_at, len(BODY), directory)
    assert pages.read_at(0, 1) == BODY[:1]
    shutil.rmtree(directory)
    directory.write_bytes(b"a file")
    assert pages.read_at(PAGE, 1) == BODY[PAGE : PAGE + 1]
    assert pages.read_at(0, PAGE + 1) == BODY[: PAGE + 1]
    assert directory.read_bytes() == b"a file"


@pytest.mark.parametrize(("mode", "is_used"), [(0o700, True), (0o755, True), (0o720, False), (0o702, False)])
def test_a_cache_that_others_can_read_is_used_and_one_that_they_can_write_to_is_not(
    mode: int, is_used: bool, top: Path, tmp_path: Path
) -> None:
    top.mkdir()
    top.chmod(mode)
    assert read_page(tmp_path) == BODY[:10]
    assert any(top.iterdir()) == is_used


def test_a_small_file_that_was_damaged_on_disk_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "list").write_bytes(b"crawls")
    for _ in range(2):
        assert read_recent(str(tmp_path / "list"), 99) == b"crawls"
        (kept,) = (tmp_path / "cache").rglob("whole")
        kept.write_bytes(b"?" + kept.read_bytes()[1:])
    (tmp_path / "list").unlink()
    with pytest.raises(InputError):
        read_recent(str(tmp_path / "list"), 99)


@pytest.mark.parametrize("on_disk", [True, False])
def test_threads_share_pages(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    monkeypatch.setattr(cache, "_IN_MEMORY", 4)
    pages = _Pages(source.read_at, len(BODY), tmp_path if on_disk else None)
    generator = random.Random(1)
    tasks = [(generator.randrange(len(BODY)), generator.randrange(3 * PAGE)) for _ in range(400)]
    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(lambda task: pages.read_at(*task), tasks))
    assert got == [BODY[offset : offset + size] for offset, size in tasks]


@pytest.fixture
def open_umask() -> Iterator[None]:
    old = os.umask(0)
    yield
    os.umask(old)


def read_page(tmp_path: Path) -> bytes:
    """The first bytes of a file that is read through the cache."""
    with open_cached(str(tmp_path / "file")) as found:
        return found.read_at(0, 10)


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file").write_bytes(BODY)
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.usefixtures("open_umask")
def test_only_the_user_can_read_the_cache(top: Path, tmp_path: Path) -> None:
    def modes() -> set[tuple[bool, int]]:
        return {
            (path.is_dir(), path.stat().st_mode & 0o777)
            for path in [top, *top.rglob("*")]
            if path.parent.parent != top or path.is_file()  # below is what only this user can enter
        }

    read_page(tmp_path)
    read_recent(str(tmp_path / "file"), 99)
    assert modes() == {(True, 0o700), (False, 0o600)}
    (place,) = top.iterdir()
    place.chmod(0o755)  # as older versions made it
    read_page(tmp_path)
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "fault", ["others can write to it", "it belongs to another user", "a link of another user"]
)
def test_a_cache_of_others_is_not_used(
    fault: str, top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(cache, "note", notes.append)
    read_page(tmp_path)
    (page,) = (path for path in top.rglob("*") if path.is_file())
    page.write_bytes(cache._sealed(b"planted".ljust(PAGE)))
    cache._is_own.cache_clear()
    if "write" in fault:
        top.chmod(0o777)
    elif os.geteuid():
        pytest.skip("only root can give a file to another user")
    elif "link" in fault:
        top.rename(tmp_path / "mine")
        top.symlink_to("mine")
        os.chown(top, 12345, -1, follow_symlinks=False)
    else:
        os.chown(top, 12345, -1)
    before = sorted(top.rglob("*"))
    for _ in range(2):
        assert read_page(tmp_path) == BODY[:10]
        assert read_recent(str(tmp_path / "file"), 99) == BODY
    assert sorted(top.rglob("*")) == before
    reason = "it belongs to another user" if "link" in fault else fault
    assert notes == [f"{top}: note: not used as the cache, because {reason}; delete it, or set CDXMILL_CACHE"]


def test_a_link_of_the_user_may_lead_to_the_cache(top: Path, tmp_path: Path) -> None:
    (tmp_path / "big").mkdir(0o700)
    top.symlink_to("big")
    assert read_page(tmp_path) == BODY[:10]
    assert [path.is_dir() for path in (tmp_path / "big").iterdir()] == [True]


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({}, "home/.cache/cdxmill"),
        ({"XDG_CACHE_HOME": ""}, "home/.cache/cdxmill"),
        ({"XDG_CACHE_HOME": "new/below"}, "new/below/cdxmill"),
        ({"XDG_CACHE_HOME": "new", "CDXMILL_CACHE": "own/place"}, "own/place"),
        ({"XDG_CACHE_HOME": "new", "CDXMILL_CACHE": "off"}, None),
        ({"XDG_CACHE_HOME": "new", "CDXMILL_CACHE": ""}, None),
        ({"CDXMILL_CACHE": "file/below"}, None),
    ],
    ids=["home", "empty", "XDG", "own", "off", "none", "no directory"],
)
def test_the_cache_is_a_new_directory_where_the_environment_says(
    settings: dict[str, str], place: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for name in ("CDXMILL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": str(tmp_path / "home"), **settings}.items():
        monkeypatch.setenv(name, value)
    cache._is_own.cache_clear()
    found = cache_directory()
    assert (None if found is None else found.absolute()) == (None if place is None else tmp_path / place)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == (
        [place.split("/")[0]] if place else []
    )
    cache._is_own.cache_clear()
