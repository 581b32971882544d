"""Folders and globs as inputs: every file is taken, reported or counted as skipped; links, odd names and broken entries."""

from __future__ import annotations

import codecs
import gzip
import json
import os
import re
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.cdx_files import find_cdx_files
from cdxmill.options.archives import ArchiveInputs
from cdxmill.running.failures import Failures
from cdxmill.storage.location import locate

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill


@pytest.fixture
def directory(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`in/a.warc.gz`; the working directory has `in`."""
    (tmp_path / "in").mkdir()
    shutil.copyfile(pywb_warcs / "example.warc.gz", tmp_path / "in/a.warc.gz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copy(directory: Path, *names: str | bytes) -> None:
    for name in names:
        path = Path(os.fsdecode(os.path.join(os.fsencode(directory), os.fsencode(name))))  # noqa: PTH118
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(directory / "in/a.warc.gz", path)


def found(*named: str) -> tuple[list[str], list[str]]:
    """The paths of the archives, and the failures."""
    failures = Failures(printed=False)
    archives = find_archives(ArchiveInputs(named), failures)
    return [archive.path for archive in archives], list(map(str, failures.items))


def test_unfinished_work_of_a_killed_run_is_no_input(directory: Path, run_cdxmill: RunCdxmill) -> None:
    copy(directory, "in/.work/unit-000000.warc", "in/.scratch-a1b2c3d4/b.warc.gz", "in/.works/c.warc.gz")
    assert found("in") == (["in/.works/c.warc.gz", "in/a.warc.gz"], [])
    done = run_cdxmill("index", "-q", "-o", "out", "in", cwd=directory)
    assert done.stderr.decode() == "in: note: 2 files skipped: 1 in .scratch-a1b2c3d4, 1 in .work\n"


def test_a_directory_reports_what_it_skips_by_kind(directory: Path, run_cdxmill: RunCdxmill) -> None:
    for name in ("a.har", "b.HAR", "deep/c.har", "notes.txt", "x.warc.bz2", "README", "y.warc.gz.open"):
        (directory / "in" / name).parent.mkdir(exist_ok=True)
        (directory / "in" / name).write_bytes(b"x")
    done = run_cdxmill("index", "-q", "-o", "out", "in", cwd=directory)
    assert done.returncode == 0
    assert done.stderr.decode() == (
        "in: note: 7 files skipped: 3 .har, 1 .gz.open, 1 .txt, 1 .warc.bz2, 1 without ending\n"
    )


def test_several_directories_have_one_line_for_what_they_skip(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    for number in range(5):
        copy(directory, f"in{number}/{number}.warc.gz")
        (directory / f"in{number}/notes.txt").write_text("x")
        (directory / f"in{number}/x.kind{number}").write_text("x")
    done = run_cdxmill("index", "-q", "-o", "out", *(f"in{number}" for number in range(5)), cwd=directory)
    assert done.returncode == 0
    assert done.stderr.decode().startswith(
        "in0, in1, in2 and 2 more: note: 10 files skipped: 5 .txt, 1 .kind0, "
    )
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("command", [["index", "-o"], ["build", "-s", "1", "-o"]])
def test_a_directory_without_archives_stops_before_anything_is_written(
    command: list[str], directory: Path, run_cdxmill: RunCdxmill
) -> None:
    (directory / "wacz").mkdir()
    (directory / "wacz/a.har").write_bytes(b"PK")
    (directory / "empty").mkdir()
    for named, what in (
        (["wacz"], "wacz (1 file skipped: 1 .har)"),
        (["empty"], "empty"),
        (["*.absent"], "*.absent"),
        (["empty", "wacz", "*.x", "empty"], "empty, wacz, *.x and 1 more (1 file skipped: 1 .har)"),
        (["--manifest", "list"], "list"),
    ):
        (directory / "list").write_text("# nothing\n\n \t \n")
        done = run_cdxmill(*command, "out", *named, cwd=directory)
        assert done.returncode == 2
        assert done.stderr.decode().startswith(f"cdxmill: no archives found in {what}; in directories, ")
        assert done.stderr.count(b"\n") == 1
        assert not (directory / "out").exists()


@pytest.mark.parametrize(
    "command",
    [["zipnum", "-s", "1", "-o", "out"], ["sample", "-s", "2", "-o", "out"], ["verify", "C", "--against"]],
)
def test_a_directory_without_cdx_files_stops_before_anything_is_written(
    command: list[str], directory: Path, run_cdxmill: RunCdxmill
) -> None:
    run_cdxmill("build", "-s", "1", "-o", "C", "in", cwd=directory)
    shutil.rmtree(directory / "C/cdx")
    done = run_cdxmill(*command, "C", cwd=directory)
    assert done.returncode == 2
    assert b"no CDX files found in C (" in done.stderr
    assert b"1 shard of a cluster" in done.stderr
    assert b"for the shards of a cluster write DIR/cdx-*.gz" in done.stderr
    assert not (directory / "out").exists()
    done = run_cdxmill(*command, "C/cdx-*.gz", cwd=directory)
    assert done.returncode == 0, done.stderr


def test_an_input_without_archives_among_others_is_a_failure(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    (directory / "empty").mkdir()
    done = run_cdxmill("index", "-q", "-o", "-", "empty", "in", "*.absent", cwd=directory)
    assert done.returncode == 1
    assert done.stdout.count(b"\n") == 3
    first, second = done.stderr.decode().splitlines()
    assert first.startswith("empty: no archives found; in directories, cdxmill searches for .warc")
    assert second == "*.absent: no file matches; check the pattern"


def test_links_to_directories_are_followed_and_circles_end(directory: Path, run_cdxmill: RunCdxmill) -> None:
    copy(directory, "disk/b.warc.gz", "disk/deep/c.warc.gz")
    (directory / "in/disk").symlink_to("../disk")
    (directory / "in/also").symlink_to(directory / "disk/deep")
    (directory / "disk/deep/up").symlink_to("../..")
    (directory / "in/self").symlink_to(".")
    done = run_cdxmill("index", "-q", "-o", "out", "in", cwd=directory)
    assert done.returncode == 0
    made = {str(path.relative_to(directory / "out")) for path in (directory / "out").rglob("*.cdx.gz")}
    assert made == {"a.cdx.gz", "also/c.cdx.gz", "disk/b.cdx.gz"}
    assert b"links to a directory that was searched already" in done.stderr or (
        b"link to a directory that was searched already" in done.stderr
    )


def test_a_file_that_is_reached_twice_is_taken_once(directory: Path) -> None:
    (directory / "in/0.warc.gz").symlink_to("a.warc.gz")
    (directory / "in/.git/annex").mkdir(parents=True)
    shutil.copyfile(directory / "in/a.warc.gz", directory / "in/.git/annex/KEY.warc.gz")
    (directory / "in/annexed.warc.gz").symlink_to(".git/annex/KEY.warc.gz")
    (directory / "in/blob").write_bytes(b"x")
    (directory / "in/b.warc.gz").symlink_to("blob")
    assert found("in") == (["in/a.warc.gz", "in/annexed.warc.gz", "in/b.warc.gz"], [])


@pytest.mark.parametrize("pattern", ["in/**/*.warc.gz", "in/**/**/*.warc.gz", "**/*.warc.gz"])
def test_a_glob_of_any_depth_follows_links_and_ends(pattern: str, directory: Path) -> None:
    copy(directory, "in/b/x.warc.gz", "in/.hidden/h.warc.gz", "disk/y.warc.gz")
    (directory / "in/a").symlink_to("b")
    (directory / "in/b/up").symlink_to("..")
    (directory / "in/z").symlink_to("../disk")
    paths, failures = found(pattern)
    wanted = {"in/a.warc.gz", "in/b/x.warc.gz", "in/z/y.warc.gz" if pattern[0] == "i" else "disk/y.warc.gz"}
    assert (set(paths), len(paths), failures) == (wanted, 3, [])


def test_broken_links_and_sockets_are_failures_and_the_rest_is_indexed(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    (directory / "in/gone").symlink_to("/nowhere/crawl")
    (directory / "in/x.warc.gz").symlink_to("absent")
    (directory / "in/loop").symlink_to("loop")
    os.mkfifo(directory / "in/pipe.warc.gz")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("in/server.warc.gz")
        done = run_cdxmill("index", "-q", "-o", "-", "in", cwd=directory)
    assert done.returncode == 1
    assert done.stdout.count(b"\n") == 3
    assert set(done.stderr.decode().splitlines()) == {
        "in/gone: is a broken symbolic link; check what it points to",
        "in/x.warc.gz: is a broken symbolic link; check what it points to",
        "in/loop: cannot be read (Too many levels of symbolic links); check the path",
        "in/pipe.warc.gz: is a socket, pipe or device; name a file",
        "in/server.warc.gz: is a socket, pipe or device; name a file",
    }


def test_a_pipe_without_the_name_of_an_archive_is_skipped_in_a_directory_and_a_failure_of_a_glob(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    os.mkfifo(directory / "in/notes")
    told = b"in/notes: is a socket, pipe or device; name a file\n"
    note = b"in: note: 1 file skipped: 1 socket, pipe or device\n"
    for named, status, expected in (("in", 0, note), ("in/n*", 1, told)):
        done = run_cdxmill("index", "-q", "-o", "-", named, "in/a.warc.gz", cwd=directory)
        assert (done.returncode, done.stderr) == (status, expected)


@pytest.mark.parametrize("named", ["in", "in/**/*.warc.gz", "in/*/*.warc.gz"])
def test_a_directory_that_cannot_be_listed_is_a_failure(
    named: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy(directory, "in/good/b.warc.gz", "in/locked/c.warc.gz")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).rstrip("/").endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    paths, failures = found(named)
    assert paths[-1] == "in/good/b.warc.gz"
    (failure,) = failures
    assert failure == (
        "in/locked: the directory cannot be listed (Permission denied); check the access rights"
    )


def test_a_directory_that_vanishes_while_it_is_searched_is_a_failure(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy(directory, "in/deep/b.warc.gz")
    scandir = os.scandir

    def vanish(path: str) -> object:
        if path == "in/deep":
            shutil.rmtree("in/deep")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanish)
    paths, failures = found("in")
    assert paths == ["in/a.warc.gz"]
    assert failures == ["in/deep: the directory cannot be listed (No such file or directory); check the path"]


def test_only_a_directory_that_cannot_be_listed_is_no_usage_error(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"^in: the directory cannot be listed"):
        found("in")


def test_names_that_no_file_can_have_are_failures(directory: Path) -> None:
    long = "x" * 300 + ".warc.gz"
    for name, reason in (
        ("a\0b.warc.gz", "the name has a NUL character"),
        (long, "a name in the path has more than 255 bytes"),
        (f"in/{long}/a.warc.gz", "a name in the path has more than 255 bytes"),
        ("", "the name is empty"),
    ):
        paths, failures = found(name, "in")
        assert paths == ["in/a.warc.gz"]
        (failure,) = failures
        assert f": {reason}; check the name" in failure
        with pytest.raises(InputError, match=reason):
            found(name)


ODD = ["-q.warc.gz", " a b .warc.gz", "line\nend.warc.gz", "tab\t.warc.gz", "🐟ü.warc.gz", "a%41+.warc.gz", "[x].warc.gz", "~a.warc.gz", "'\".warc.gz", "\x1b[31m.warc.gz"]  # fmt: skip


def test_odd_names_are_indexed_from_a_directory(directory: Path, run_cdxmill: RunCdxmill) -> None:
    copy(directory, *(f"odd/{name}" for name in ODD), b"odd/\xff\xfe.warc.gz")
    done = run_cdxmill("index", "-q", "-o", "-", "odd", cwd=directory)
    assert (done.returncode, done.stderr) == (0, b"")
    names = {json.loads(line.split(b" ", 2)[2])["filename"] for line in done.stdout.splitlines()}
    assert names >= set(ODD)
    assert len(names) == len(ODD) + 1
    done = run_cdxmill("index", "-q", "-o", "out", "odd", cwd=directory)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list((directory / "out").glob("*.cdx.gz"))) == len(ODD) + 1
    done = run_cdxmill("zipnum", "-q", "-s", "1", "-o", "C", "out", cwd=directory)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "name", [name for name in ODD if "\n" not in name and "\t" not in name and name[0] != " "]
)
def test_odd_names_are_indexed_from_a_command_line_and_a_manifest(
    name: str, directory: Path, run_cdxmill: RunCdxmill
) -> None:
    copy(directory, f"odd/{name}")
    (directory / "list").write_bytes(os.fsencode(name) + b"\n")
    for call in (["--manifest", "list", "--root", "odd"], [f"odd/{name}"]):
        done = run_cdxmill("index", "-q", "-o", "-", *call, cwd=directory)
        assert (done.returncode, done.stderr, done.stdout.count(b"\n")) == (0, b"", 3)
    done = run_cdxmill("index", "-q", "-o", "-", "--", name, cwd=directory / "odd")
    assert (done.returncode, done.stderr, done.stdout.count(b"\n")) == (0, b"", 3)


@pytest.mark.parametrize("way", ["plain", "bom", "utf-16", "gzip", "dos"])
def test_the_last_field_of_a_manifest_that_is_not_empty_is_the_path(way: str, directory: Path) -> None:
    copy(directory, "b.warc.gz", "i.warc.gz")
    text = "b.warc.gz\ti.warc.gz\t\n# no\t\n\t\nb.warc.gz\n"
    data = {
        "bom": codecs.BOM_UTF8 + text.encode(),
        "utf-16": text.encode("utf-16"),
        "gzip": gzip.compress(text.encode()),
        "dos": text.replace("\n", "\r\n").encode(),
    }.get(way, text.encode())
    Path("list").write_bytes(data)
    archives = find_archives(ArchiveInputs(manifest="list"), Failures(printed=False))
    assert [archive.path for archive in archives] == ["i.warc.gz", "b.warc.gz"]


def test_a_line_of_a_manifest_that_no_file_can_have_is_one_failure(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    (directory / "list").write_bytes(b"a\0b.warc.gz\nin/a.warc.gz\n" + b"x" * 1_000_000 + b"\n")
    done = run_cdxmill("index", "-q", "-o", "out", "--manifest", "list", cwd=directory)
    assert done.returncode == 1
    first, second = done.stderr.decode().splitlines()
    assert first == r"list:1: a\x00b.warc.gz: the name has a NUL character; check the name"
    assert second.startswith("list:3: xxxx")
    assert len(second) < 400
    assert [path.name for path in (directory / "out").rglob("*.cdx.gz")] == ["a.cdx.gz"]


def test_a_manifest_that_is_absent_or_a_directory_is_a_usage_error(directory: Path) -> None:
    for name, reason in (("absent", "No such file or directory"), (".", "Is a directory")):
        with pytest.raises(UsageError) as caught:
            find_archives(ArchiveInputs(manifest=name), Failures(printed=False))
        assert str(caught.value) == f"the manifest {name} cannot be read ({reason}); check it"


def test_a_corrupt_manifest_is_a_usage_error(directory: Path) -> None:
    for data in (
        b"\x1f\x8b\x08\x00",
        gzip.compress(b"x" * 999)[:-3],
        b"\x1f\x8b\x08" + bytes(8) + b"\xff" * 99,
    ):
        Path("list").write_bytes(data)
        with pytest.raises(UsageError, match="the manifest list cannot be read"):
            find_archives(ArchiveInputs(manifest="list"), Failures(printed=False))


@pytest.mark.parametrize("kind", ["archives", "CDX files"])
def test_every_file_of_the_samples_is_accounted_for(
    kind: str, samples: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    everything = [path for path in samples.rglob("*") if path.is_file()]
    failures = Failures()
    named = [str(samples)]
    taken = (
        [archive.path for archive in find_archives(ArchiveInputs(named), failures)]
        if kind == "archives"
        else find_cdx_files(named, failures)
    )
    *failed, note = capfd.readouterr().err.splitlines()
    assert (
        len(failed) == failures.count == (2 if kind == "archives" else 0)
    )  # no zip, and a WACZ without WARCs
    files = {locate(path).stored_in.text for path in taken}
    waczs = files - set(taken)
    total, kinds = re.findall(r": note: (\d+) files skipped: (.*)", note)[0]
    numbers = [int(number) for number in re.findall(r"(\d+) [^,]+", kinds)]
    assert sum(numbers) == int(total)
    assert len(files) + len(failed) + int(total) == len(everything)
    assert len(waczs) == (sum(path.suffix == ".wacz" for path in everything) - 2) * (kind == "archives")


def test_a_file_url_of_a_directory_is_that_directory(directory: Path) -> None:
    assert found((directory / "in").as_uri()) == ([str(directory / "in/a.warc.gz")], [])


def test_cdx_files_of_a_directory_are_found_and_others_are_counted(directory: Path) -> None:
    for name in ("a.cdx", "b.CDXJ.gz", "c.cdx.bz2", "d.cdx.zst", "cdx-00000.gz", "_temporary/0/e.cdx"):
        (directory / "x" / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / "x" / name).write_bytes(b"x")
    failures = Failures()
    assert find_cdx_files(["x"], failures) == ["x/a.cdx", "x/b.CDXJ.gz"]
    assert failures.count == 0


@pytest.mark.parametrize("name", ["a\tb", "a\nb"])
@pytest.mark.parametrize("command", ["build", "zipnum"])
def test_a_cluster_is_not_built_where_cluster_loc_cannot_point(
    command: str, name: str, directory: Path, run_cdxmill: RunCdxmill
) -> None:
    (directory / name).mkdir()
    for cwd, output in ((directory, f"{name}/C"), (directory / name, "C")):
        done = run_cdxmill(command, "-s", "1", "-o", output, directory / "in", cwd=cwd)
        assert done.returncode == 2
        assert b"cluster.loc cannot have a path with a tab or a line end" in done.stderr
    assert list((directory / name).iterdir()) == []
