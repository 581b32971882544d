"""A cluster is replaced in one moment: whoever reads it, and whenever the run is killed, sees a whole one."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdxmill import lookup
from cdxmill.cluster import output, switch
from cdxmill.cluster.output import mend
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import InputError, UsageError
from cdxmill.running.failures import Failures
from cdxmill.storage.local import temporary_name
from cdxmill.storage.location import Location, locate

from ..conftest import RunCdxmill
from ..material.cdx_files import cdxj, sort_unique, write_plain
from ..material.clusters import check_cluster
from ..material.held import check_refused

KILLED = 77
CHANGES = ("rename", "replace", "unlink", "rmdir", "open", "mkdir")


def killed_at(step: int, has_exchange: bool, directory: Path, cdx: Path) -> int:
    """The status of a process that replaces the cluster, and ends when the switch has changed `step` things."""
    process = os.fork()
    if not process:
        try:
            _die_at(step, has_exchange)
            build(directory, cdx, 2, replace=True)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _die_at(step: int, has_exchange: bool) -> None:
    left, is_started, switching = step, False, switch.switch

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal left
            if is_started and left == 0:
                os._exit(KILLED)
            left -= is_started
            return function(*args, **options)

        return call

    def switch_from_here(place: Location, kept: Any = ()) -> Any:
        nonlocal is_started
        is_started = True
        return switching(place, kept)

    for name in CHANGES:
        setattr(os, name, dying(getattr(os, name)))
    exchange = dying(Location.exchange) if has_exchange else lambda one, other: False
    Location.exchange = exchange  # type: ignore[method-assign]
    output.switch = switch_from_here  # type: ignore[attr-defined, assignment]


def new_directory(directory: Path) -> Path:
    return Path(switch.new_place(locate(directory)).local)


def old_directory(directory: Path) -> Path:
    return Path(switch.old_place(locate(directory)).local)


@pytest.fixture
def old_cdx(tmp_path: Path) -> Path:
    return write_plain(tmp_path / "old.cdx", [cdxj(f"com,example)/{number:04d}") for number in range(60)])


@pytest.fixture
def new_cdx(tmp_path: Path) -> Path:
    return write_plain(tmp_path / "new.cdx", [cdxj(f"org,example)/{number:04d}") for number in range(90)])


def build(directory: Path, cdx: Path, shards: int, replace: bool = False) -> None:
    options = ZipnumOptions(shards=shards, replace=replace, block_lines=3000, quiet=True)
    build_cluster([str(cdx)], directory, options, Failures())


def make_old(directory: Path, cdx: Path) -> None:
    """A cluster with files that somebody added."""
    build(directory, cdx, 3)
    (directory / "notes.txt").write_bytes(b"mine")
    (directory / "cdx/deep").mkdir(parents=True)
    (directory / "cdx/deep/mine.txt").write_bytes(b"mine")


def foreign_files(*directories: Path) -> set[str]:
    """The added files that exist in one of the folders."""
    names = ("notes.txt", "cdx/deep/mine.txt")
    return {name for name in names for directory in directories if (directory / name).exists()}


def is_whole(directory: Path, cdx: Path) -> bool:
    """Whether the folder has the cluster of this file, besides other files."""
    hidden = directory.parent / f"only-{cdx.stem}"
    subprocess.run(["rm", "-rf", hidden], check=True)
    hidden.mkdir()
    for path in directory.iterdir():
        if path.is_file() and path.name not in ("notes.txt", ".replaces", ".lock"):
            (hidden / path.name).hardlink_to(path)
    try:
        check_cluster(hidden, sort_unique([cdx]), location=str(directory))
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("has_exchange", [True, False])
def test_a_kill_at_any_step_leaves_a_whole_cluster_and_the_next_run_tidies_up(
    has_exchange: bool, old_cdx: Path, new_cdx: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    step, seen = 0, set()
    while True:
        subprocess.run(
            ["rm", "-rf", directory, new_directory(directory), old_directory(directory)], check=True
        )
        make_old(directory, old_cdx)
        status = killed_at(step, has_exchange, directory, new_cdx)
        assert status in (0, KILLED)
        if not has_exchange and not directory.exists():
            assert is_whole_elsewhere(directory, old_cdx)
            seen.add("between")
        else:
            assert is_whole(directory, old_cdx) or is_whole(directory, new_cdx), step
            seen.add("new" if is_whole(directory, new_cdx) else "old")
        assert len(foreign_files(directory, new_directory(directory), old_directory(directory))) == 2
        again = run_cdxmill("zipnum", "-q", "--replace", "-s", "2", "-o", directory, new_cdx)
        assert again.returncode == 0, again.stderr
        assert is_whole(directory, new_cdx)
        assert foreign_files(directory) == {"notes.txt", "cdx/deep/mine.txt"}
        assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] == ".") == []
        assert not (directory / ".replaces").exists()
        if status == 0:
            break
        step += 1
    assert seen == {"old", "new"} | (set() if has_exchange else {"between"})
    assert step > 10


def is_whole_elsewhere(directory: Path, cdx: Path) -> bool:
    """Between two renames the old cluster has another name."""
    names = {path.name for path in old_directory(directory).iterdir()}
    return {"cluster.json", "cluster.idx", "cdx-00002.gz"} <= names


@pytest.mark.parametrize("has_new", [True, False])
def test_a_cluster_between_two_renames_comes_back(
    has_new: bool, old_cdx: Path, new_cdx: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    make_old(directory, old_cdx)
    directory.rename(old_directory(directory))
    if has_new:
        build(tmp_path / "new", new_cdx, 2)
        (tmp_path / "new/.replaces").touch()
        (tmp_path / "new").rename(new_directory(directory))
    mend(locate(directory), print)
    assert (directory / "cdx-00002.gz").exists() is not has_new
    assert foreign_files(directory) == {"notes.txt", "cdx/deep/mine.txt"}
    assert [path.name for path in tmp_path.iterdir() if path.name[0] == "."] == []


def test_a_switch_of_a_run_that_still_lives_is_not_mended(old_cdx: Path, tmp_path: Path) -> None:
    """It holds the directory that it has renamed."""
    directory = tmp_path / "C"
    make_old(directory, old_cdx)
    directory.rename(old_directory(directory))
    check_refused(old_directory(directory), mend, locate(directory), print)
    assert not directory.exists()


def test_a_reader_in_a_loop_sees_whole_answers_only(
    tmp_path: Path,
) -> None:
    """Both clusters have lines of one host, and blocks at the same offsets."""
    directory = tmp_path / "C"
    files = [
        write_plain(tmp_path / f"{name}.cdx", [cdxj(f"com,example)/{number:04d}", rest=f'{{"n":"{name}"}}') for number in range(400)])
        for name in ("one", "two")
    ]  # fmt: skip
    answers = [[name] * 400 for name in ("one", "two")]
    build(directory, files[0], 4)
    stop, counts = threading.Event(), {"whole": 0, "error": 0}
    wrong: list[list[str]] = []

    def read() -> None:
        while not stop.is_set():
            try:
                found = [line["n"] for line in lookup(directory, "http://example.com/*")]
            except InputError as error:
                counts["error"] += 1
                if "run it again" not in str(error):
                    wrong.append([str(error)])
                continue
            counts["whole"] += 1
            if found not in answers:
                wrong.append(found)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(1, 12):
            build(directory, files[number % 2], 4, replace=True)
    finally:
        stop.set()
        reader.join()
    assert wrong == []
    assert counts["whole"] > 3


def test_a_symbolic_link_is_kept_and_its_target_replaced(
    old_cdx: Path, new_cdx: Path, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    build(tmp_path / "disk/real", old_cdx, 3)
    (tmp_path / "C").symlink_to("disk/real")
    build(tmp_path / "C", new_cdx, 2, replace=True)
    assert (tmp_path / "C").is_symlink()
    assert {path.name for path in (tmp_path / "disk").iterdir()} == {"real"}
    check_cluster(tmp_path / "C", sort_unique([new_cdx]))


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("mount", "is a mount point, so it cannot be replaced; mount the directory above it"),
        ("current", "is the current directory"),
        ("below", "is the current directory"),
        ("parent", "is not writable"),
        ("old", "was replaced before"),
        ("new", "is not of cdxmill"),
        ("corrupt", "cluster.json: is corrupt"),
    ],
)
def test_what_cannot_be_switched_is_refused_before_any_work(
    case: str, reason: str, old_cdx: Path, new_cdx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "C"
    build(directory, old_cdx, 3)
    if case == "mount":
        monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == directory)
    elif case == "current":
        monkeypatch.chdir(directory)
    elif case == "below":
        (directory / "below").mkdir()
        monkeypatch.chdir(directory / "below")
    elif case == "parent":
        monkeypatch.setattr(
            os, "access", lambda path, mode: (Path(path), mode) != (tmp_path, os.W_OK | os.X_OK)
        )
    elif case in ("old", "new"):
        (tmp_path / f".C.{case}").mkdir()
        (tmp_path / f".C.{case}/mine").write_bytes(b"mine")
    else:
        (directory / "cluster.json").write_bytes(b"{}")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match=reason):
        build(directory, new_cdx, 2, replace=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_unfinished_new_cluster_of_other_inputs_is_started_anew(
    old_cdx: Path, new_cdx: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    make_old(directory, old_cdx)
    build(tmp_path / "x", old_cdx, 5)
    (tmp_path / "x/.replaces").touch()
    (tmp_path / "x").rename(new_directory(directory))
    build(directory, new_cdx, 2, replace=True)
    assert is_whole(directory, new_cdx)
    assert foreign_files(directory) == {"notes.txt", "cdx/deep/mine.txt"}


def test_a_finished_new_cluster_takes_its_place_without_the_work_directory_of_its_run(
    old_cdx: Path, new_cdx: Path, tmp_path: Path
) -> None:
    """The run was killed between cluster.json and the switch."""
    directory = tmp_path / "C"
    build(directory, new_cdx, 2)
    (directory / ".work").mkdir()
    (directory / ".work/job.json").write_text('"job"')
    (directory / ".replaces").touch()
    directory.rename(new_directory(directory))
    build(directory, old_cdx, 3)
    build(directory, new_cdx, 2, replace=True)
    assert is_whole(directory, new_cdx)
    assert not (directory / ".work").exists()


@pytest.mark.parametrize(("name", "stays"), [("job.json", False), ("mine.txt", True)])
def test_of_the_old_cluster_only_a_work_directory_of_somebody_else_stays(
    name: str, stays: bool, old_cdx: Path, new_cdx: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    make_old(directory, old_cdx)
    (directory / ".work").mkdir()
    (directory / ".work" / name).write_text('"job"')
    build(directory, new_cdx, 2, replace=True)
    assert is_whole(directory, new_cdx)
    assert (directory / ".work" / name).exists() == stays


def test_a_run_that_was_killed_before_its_mark_had_its_name_is_in_nobodys_way(
    tmp_path: Path, old_cdx: Path, new_cdx: Path
) -> None:
    build(tmp_path / "c", old_cdx, 3)
    new_directory(tmp_path / "c").mkdir()
    (new_directory(tmp_path / "c") / temporary_name(switch.MARK)).touch()
    build(tmp_path / "c", new_cdx, 2, replace=True)
    assert is_whole(tmp_path / "c", new_cdx)
    assert [path.name for path in tmp_path.rglob("*.tmp")] == []
    (new_directory(tmp_path / "c")).mkdir()
    (new_directory(tmp_path / "c") / "mine.tmp").touch()
    with pytest.raises(UsageError, match=r"\.c\.new is not of cdxmill; move it away"):
        build(tmp_path / "c", old_cdx, 2, replace=True)
