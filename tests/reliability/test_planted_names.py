"""Somebody plants a link, a pipe or a directory under a name that a command writes: what it leads to is never changed.

The names are not listed here. Each command runs once while its system calls are watched, and every name that it creates,
changes, renames or deletes is planted then, one at a time.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill.cluster import change
from cdxmill.storage.local import OWN_TEMPORARY

from .writers import CALLS, delete, files_in, run

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.truncate",
    "os.chmod",
    "shutil.rmtree",
}


def linked(place: Path, mine: Path) -> None:
    place.symlink_to(mine / "file")


def linked_directory(place: Path, mine: Path) -> None:
    place.symlink_to(mine)


def second_name(place: Path, mine: Path) -> None:
    place.hardlink_to(mine / "file")


def pipe(place: Path, mine: Path) -> None:
    os.mkfifo(place)


def directory(place: Path, mine: Path) -> None:
    shutil.copytree(mine, place)


KINDS: list[Callable[[Path, Path], None]] = [linked, linked_directory, second_name, pipe, directory]


class Watch:
    """The names below a directory that this process creates, changes, renames or deletes while it is watched."""

    def __init__(self) -> None:
        self.base: Path | None = None
        self.names: set[str] = set()
        sys.addaudithook(self._seen)  # nobody can take it away

    def _seen(self, event: str, args: tuple[object, ...]) -> None:
        if self.base is None or not (event == "open" or event in CHANGES):
            return
        if event == "open" and not (isinstance(args[2], int) and args[2] & WRITES):
            return
        for found in args[: 2 if event in ("os.rename", "os.link") else 1]:
            if isinstance(found, str | bytes | os.PathLike):
                path = self.base / os.fsdecode(found)
                if path.is_relative_to(self.base):
                    self.names.add(path.relative_to(self.base).as_posix())


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.mark.parametrize("name", CALLS)
def test_nothing_behind_a_planted_name_is_changed(
    name: str,
    watch: Watch,
    start: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(change, "LOCATIONS_FIRST", 0.0)
    copy_world(start, tmp_path / "watched", CALLS[name])
    monkeypatch.chdir(tmp_path / "watched")
    names = names_of(CALLS[name], watch)
    assert names
    wrong = list[str]()
    for number, one in enumerate(names):
        # A link under each name, and the others in turn: all of them are planted in each command.
        others = KINDS[1 + number % (len(KINDS) - 1)]
        for kind in (linked, others if one not in CALLS[name].split() else second_name):
            world = tmp_path / f"{number}"
            copy_world(start, world, CALLS[name])
            monkeypatch.chdir(world)
            delete(Path(one))
            Path(one).parent.mkdir(parents=True, exist_ok=True)
            kind(Path(one), world / "mine")
            status = run(CALLS[name])
            text = capfd.readouterr()
            is_well = status in (0, 1, 2, 3) and "internal" not in text.err
            if not is_well or files_in("mine") != {"file": b"precious"}:
                wrong.append(f"{one} as {kind.__name__}: {status}, {text.err}, {files_in('mine')}")
            shutil.rmtree(world)
    assert wrong == []


def copy_world(start: Path, world: Path, call: str) -> None:
    """What a call can see of `start`: directories only if it names them. Each file more is created hundreds of times."""
    (world / "w").mkdir(parents=True)
    for path in start.iterdir():
        if path.is_file():
            shutil.copy2(path, world)
    named = {start / name for name in ("mine", *call.split())}
    for directory in {path.parent if path.is_file() else path for path in named} - {start}:
        if directory.is_dir():
            shutil.copytree(directory, world / directory.relative_to(start))


def names_of(call: str, watch: Watch) -> list[str]:
    before = set(Path("w").rglob("*"))
    watch.base, watch.names = Path.cwd(), set()
    try:
        assert run(call) in (0, 1)
    finally:
        watch.base = None
    watch.names |= {path.as_posix() for path in set(Path("w").rglob("*")) - before}  # scan always has workers
    return sorted(
        name for name in watch.names if name.startswith("w/") and not any(map(is_random, name.split("/")))
    )


def is_random(name: str) -> bool:
    """Whether nobody can know the name before."""
    return bool(OWN_TEMPORARY.fullmatch(name) or re.fullmatch(r"\.scratch-\w{8}", name))


def test_rows_are_appended_for_one_name_of_a_file_only(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cp -al` gives all files of a directory second names: the copy stays as it is, and the first one can be written to."""
    shutil.copytree(start, tmp_path / "world")
    monkeypatch.chdir(tmp_path / "world")
    assert run("index -o w/n 0.warc.gz bad.warc.gz") == 1
    shutil.copytree("w/n", "copy", copy_function=os.link)
    before = files_in("copy")
    shutil.copyfile("0.warc.gz", "1.warc.gz")
    assert run("index -o w/n 0.warc.gz 1.warc.gz bad.warc.gz") == 1
    assert files_in("copy") == before
    assert run("index -o w/n 0.warc.gz 1.warc.gz") == 0


@pytest.mark.parametrize("name", [".work", ".run-notes", ".scratch-mine", ".o.backup.tmp"])
def test_a_directory_of_somebody_else_stays(
    name: str, start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(start, tmp_path / "world")
    monkeypatch.chdir(tmp_path / "world")
    for call in (
        "zipnum -s 2 -o w/o 0.cdxj",
        "zipnum -s 1 --replace -o w/o 0.cdxj",
        "publish w/o w/o",
        "copy -o w/o --archives . c *.com",
    ):
        shutil.copytree("mine", f"w/o/{name}", dirs_exist_ok=True)
        assert run(call) in (0, 2)
        assert files_in(f"w/o/{name}") == {"file": b"precious"}
