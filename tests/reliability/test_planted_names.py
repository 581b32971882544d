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

from bench.warc_corpus import WarcRecipe, make_records
from cdxmill.cli.main import COMMANDS, main
from cdxmill.cluster import change
from cdxmill.storage.local import OWN_TEMPORARY

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

# What each command does in a copy of the directory `start`. The output is always below `w`.
CALLS = {
    "index": "index -o w/o 0.warc.gz bad.warc.gz",
    "index, one file": "index -o w/o.cdxj.gz 0.warc.gz",
    "index, again": "index --replace -o w/indexed 0.warc.gz",
    "recompress": "recompress --to gz --index --offsets --level 1 -o w/o 0.warc.gz bad.warc.gz",
    "recompress, again": "recompress --to gz --replace --level 9 -o w/packed 0.warc.gz",
    "reindex": "reindex -o w/o --offsets w/packed/0.warc.gz.offsets.gz 0.cdxj",
    "scan": "scan -o w/o --where status=200 0.warc.gz bad.warc.gz",
    "scan, records": "scan --to warc.gz -o w/o --where status=200 0.warc.gz",
    "scan, a sample": "scan --sample 3 -o w/o --where status=200 0.warc.gz bad.warc.gz",
    "count": "count tags -o w/o.tsv 0.warc.gz",
    "cat": "cat 0.warc.gz --table w/t.tsv",
    "sample": "sample -s 2 -o w/s.txt 0.cdxj",
    "split-points": "split-points -s 2 --from-cluster w/c -o w/s.txt",
    "zipnum": "zipnum -s 2 -o w/o 0.cdxj",
    "zipnum, another": "zipnum -s 2 --replace -o w/c 0.cdxj",
    "build": "build -s 2 -o w/o 0.warc.gz bad.warc.gz",
    "add": "add --keep-old 0 w/c 1.warc.gz",
    "remove": "remove --keep-old 0 --from 1990 w/c",
    "compact": "compact --keep-old 0 w/changed",
    "merge": "merge -s 1 -o w/o c w/other",
    "publish": "publish c w/o",
    "publish, here": "publish w/c w/c --title x",
    "publish, another": "publish --replace c w/other",
    "copy": "copy -o w/o --archives . c *.com",
    "copy, related": "copy --related --originals -o w/o --archives . c *.com",
    "copy, with failures": "copy -o w/o --archives mine c *.com",
    "export": "export c --to parquet -o w/o",
    "export, lines": "export c --to csv -o w/o.csv",
    "export, wacz": "export c *.com --to wacz -p 1 --archives . -o w/o.wacz",
    "train-dictionary": "train-dictionary --size 8 --level 1 -o w/d 0.warc.gz",
    "prefix-index": "prefix-index build -o w/t 0.cdxj",
    "report": "report --html w/r.html --json w/r.json c",
    "serve": "serve --config-only w/p --archives . c",
}
NO_PROCESSES = {"cat", "export", "serve", "split-points", "prefix-index"}
READ_ONLY = {"lookup", "get", "crawls", "verify", "cdx-server"}


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


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    start = tmp_path_factory.mktemp("planted") / "start"
    (start / "w").mkdir(parents=True)
    (start / "mine").mkdir()
    (start / "mine/file").write_text("precious")
    members = list(make_records(WarcRecipe(1, 12, 2000), "0.warc.gz"))
    (start / "0.warc.gz").write_bytes(b"".join(members))
    (start / "bad.warc.gz").write_bytes(b"".join(members[:3])[:-20])
    (start / "1.warc.gz").write_bytes(b"".join(make_records(WarcRecipe(2, 3, 500), "1.warc.gz")))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(start)
        for call in (
            "index -o 0.cdxj 0.warc.gz",
            "index -o w/indexed 0.warc.gz",
            "recompress --to gz --index --offsets --level 1 -o w/packed 0.warc.gz",
            "zipnum -s 1 -o c 0.cdxj",
            "zipnum -s 1 -o w/c 0.cdxj",
            "zipnum -s 2 -o w/other 0.cdxj",
            "zipnum -s 1 -o w/changed 0.cdxj",
            "add --keep-old 0 w/changed 1.warc.gz",
        ):
            assert run(call) == 0
    return start


def run(call: str) -> int:
    words = call.split()
    words += [] if words[0] in ("cat", "serve", "split-points") else ["-q"]
    return main(words if words[0] in NO_PROCESSES else [*words, "-p", "1"])


def test_every_command_that_writes_is_here() -> None:
    assert {call.split()[0] for call in CALLS.values()} == COMMANDS.keys() - READ_ONLY


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
    shutil.copytree(start, tmp_path / "watched")
    monkeypatch.chdir(tmp_path / "watched")
    names = names_of(CALLS[name], watch)
    assert names
    wrong = list[str]()
    for number, one in enumerate(names):
        for kind in KINDS if one not in CALLS[name].split() else (linked, second_name):
            world = tmp_path / f"{number}"
            shutil.copytree(start, world, symlinks=True)
            monkeypatch.chdir(world)
            remove(Path(one))
            Path(one).parent.mkdir(parents=True, exist_ok=True)
            kind(Path(one), world / "mine")
            status = run(CALLS[name])
            text = capfd.readouterr()
            is_well = status in (0, 1, 2, 3) and "internal" not in text.err
            if not is_well or found("mine") != {"file": b"precious"}:
                wrong.append(f"{one} as {kind.__name__}: {status}, {text.err}, {found('mine')}")
            shutil.rmtree(world)
    assert wrong == []


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


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def found(name: str) -> dict[str, bytes]:
    return {
        path.relative_to(name).as_posix(): path.read_bytes()
        for path in Path(name).rglob("*")
        if path.is_file()
    }


def test_rows_are_appended_for_one_name_of_a_file_only(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cp -al` gives all files of a directory second names: the copy stays as it is, and the first one can be written to."""
    shutil.copytree(start, tmp_path / "world")
    monkeypatch.chdir(tmp_path / "world")
    assert run("index -o w/n 0.warc.gz bad.warc.gz") == 1
    shutil.copytree("w/n", "copy", copy_function=os.link)
    before = found("copy")
    shutil.copyfile("0.warc.gz", "1.warc.gz")
    assert run("index -o w/n 0.warc.gz 1.warc.gz bad.warc.gz") == 1
    assert found("copy") == before
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
        assert found(f"w/o/{name}") == {"file": b"precious"}
