"""A run that is stopped leaves no cluster that looks finished; run again, it ends with the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import cdxmill
from cdxmill.commands.clusters import sorting, zipnum
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import OutageError
from cdxmill.running.failures import Failures
from cdxmill.running.progress import Progress
from cdxmill.running.resume import WorkDirectory
from cdxmill.tasks import sampling

from ..conftest import RunCdxmill
from ..material.cdx_files import many_lines, sort_unique, write_plain
from ..material.clusters import check_cluster, published
from ..material.processes import COMMAND, Started, stopped_at

SHARDS = 12
SLOWLY = ["-s", str(SHARDS), "-p", "2", "--compressor", "libdeflate", "--level", "11"]
"""A hard level, so that the shards take long enough to be stopped between two of them."""
FINISHED = ["cluster.json", "cluster.idx", "cluster.summary", "cluster.loc"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files for two tasks of sorting."""
    directory = tmp_path_factory.mktemp("inputs")
    lines = many_lines(36_000)
    return [write_plain(directory / f"{number}.cdx", lines[number * 3000 :][:30_000]) for number in range(3)]


@pytest.fixture(scope="module")
def uninterrupted(
    inputs: list[Path], run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    directory = tmp_path_factory.mktemp("uninterrupted") / "C"
    done = run_cdxmill("zipnum", "-o", directory, *SLOWLY, *inputs)
    assert done.returncode == 0, done.stderr
    check_cluster(directory, sort_unique(inputs))
    return published(directory)


@pytest.mark.parametrize(
    "moment",
    [
        ".work/job.json",
        ".work/*.run",
        ".work/sort-*.json",
        ".cdx-*.tmp",
        ".work/shard-*.json",
        "part-0000[5-9]",
    ],
)
def test_a_killed_zipnum_is_not_finished_and_run_again_ends_with_the_same_bytes(
    moment: str, inputs: list[Path], uninterrupted: dict[str, bytes], run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    call: list[str | Path] = ["zipnum", "-o", directory, *SLOWLY, *inputs]
    stopped_at(directory, moment, call)
    assert [name for name in FINISHED if (directory / name).exists()] == []
    asked = run_cdxmill("lookup", directory, "http://host000.com/*")
    assert (asked.returncode in (1, 2), asked.stdout) == (True, b"")  # no cluster, or half of one
    assert run_cdxmill(*call).returncode == 0
    assert published(directory) == uninterrupted
    assert not (directory / ".work").exists()


@pytest.mark.parametrize("moment", [".C.new/.work/shard-*.json", ".C.new/part-00011"])
def test_a_finished_cluster_stays_while_it_is_replaced(
    moment: str, inputs: list[Path], uninterrupted: dict[str, bytes], run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    run_cdxmill("zipnum", "-o", directory, "-s", "2", *inputs)
    before = published(directory)
    call: list[str | Path] = ["zipnum", "--replace", "-o", directory, *SLOWLY, *inputs]
    stopped_at(tmp_path, moment, call)
    if moment != ".C.new/part-00011":  # then it may be switched before it is killed
        assert published(directory) == before
        made = {path: path.stat().st_mtime_ns for path in (tmp_path / ".C.new").glob("cdx-*")}
        assert run_cdxmill("zipnum", "-o", directory, *SLOWLY, *inputs).returncode == 2
        assert {path: path.stat().st_mtime_ns for path in made} == made
    assert run_cdxmill(*call).returncode == 0
    assert published(directory) == uninterrupted
    assert [path.name for path in tmp_path.iterdir()] == ["C"]


def test_other_options_or_inputs_do_not_go_on_from_what_is_left(
    inputs: list[Path], uninterrupted: dict[str, bytes], run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    changed = tmp_path / "changed.cdx"
    shutil.copyfile(inputs[0], changed)
    stopped_at(directory, ".work/shard-*.json", ["zipnum", "-o", directory, *SLOWLY, changed, *inputs[1:]])
    changed.write_bytes(b"com,a)/ 2020 {}\n")
    assert run_cdxmill("zipnum", "-o", directory, "-s", "2", changed, *inputs[1:]).returncode == 0
    check_cluster(directory, sort_unique([changed, *inputs[1:]]))
    shutil.rmtree(directory)
    stopped_at(directory, ".work/shard-*.json", ["zipnum", "-o", directory, *SLOWLY, "--seed", "7", *inputs])
    assert run_cdxmill("zipnum", "-o", directory, *SLOWLY, *inputs).returncode == 0
    assert published(directory) == uninterrupted


class Stop(Exception):
    """Something goes wrong half-way."""


class Counted:
    """Counts the calls of a function; the one that `stop` numbers fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, home: Any = zipnum) -> None:
        self._function: Callable[..., Any] = getattr(home, name)
        self.calls, self.stop = 0, -1
        monkeypatch.setattr(home, name, self._call)

    def _call(self, *args: Any) -> Any:
        if self.calls == self.stop:
            raise Stop
        self.calls += 1
        return self._function(*args)


@pytest.fixture
def sorts(monkeypatch: pytest.MonkeyPatch) -> Counted:
    monkeypatch.setattr(sampling, "_LEAST", 1)
    return Counted(monkeypatch, "sort_group", sorting)


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch, "write_shard_of")


def small_files(directory: Path) -> list[str]:
    lines = many_lines(300)
    return [str(write_plain(directory / f"{number}.cdx", lines[number::4])) for number in range(4)]


def build(paths: Iterable[str], directory: Path) -> None:
    build_cluster(list(paths), directory, ZipnumOptions(shards=6, quiet=True), Failures())


def test_finished_tasks_are_not_done_again(tmp_path: Path, sorts: Counted, shards: Counted) -> None:
    paths, directory = small_files(tmp_path), tmp_path / "C"
    sorts.stop = 3
    with pytest.raises(Stop):
        build(paths, directory)
    sorts.stop, shards.stop = -1, 4
    with pytest.raises(Stop):
        build(paths, directory)
    shards.stop = -1
    build(paths, directory)
    assert (sorts.calls, shards.calls) == (4, 6)
    check_cluster(directory, sort_unique(map(Path, paths)))


@pytest.mark.parametrize("lost", [".work/*.run", "cdx-00002.gz", "part-00001", ".work/shard-*.json"])
def test_what_was_lost_between_two_runs_is_made_again(
    lost: str, tmp_path: Path, sorts: Counted, shards: Counted
) -> None:
    paths, directory = small_files(tmp_path), tmp_path / "C"
    shards.stop = 4
    with pytest.raises(Stop):
        build(paths, directory)
    for path in list(directory.glob(lost)):
        path.unlink()
    shards.stop = -1
    build(paths, directory)
    assert sorts.calls + shards.calls > 4 + 6
    check_cluster(directory, sort_unique(map(Path, paths)))


def test_half_a_result_is_no_result(tmp_path: Path, sorts: Counted, shards: Counted) -> None:
    paths, directory = small_files(tmp_path), tmp_path / "C"
    shards.stop = 2
    with pytest.raises(Stop):
        build(paths, directory)
    for path in [*directory.glob(".work/sort-*.json"), *directory.glob(".work/shard-*.json")]:
        path.write_bytes(path.read_bytes()[:-2])
    shards.stop = -1
    build(paths, directory)
    assert (sorts.calls, shards.calls) == (8, 8)
    check_cluster(directory, sort_unique(map(Path, paths)))


def nested(content: Any) -> str:
    return "[" * 100_000 + "]" * 100_000


def retyped(content: Any) -> str:
    """The same form with other types of values: numbers are texts."""
    return json.dumps(
        json.loads(json.dumps(content), parse_float=str, parse_int=lambda text: text),
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda content: "[]",
        lambda content: "7",
        lambda content: json.dumps([content]),
        lambda content: json.dumps(dict.fromkeys(content, 7)),
        lambda content: json.dumps({key: [[7]] for key in content}),
        lambda content: json.dumps({**content, "surplus": 1, "runs": [{"name": "a"}]}),
        lambda content: json.dumps(dict(list(content.items())[1:])),
        nested,
        retyped,
    ],
)
def test_a_result_of_another_form_is_no_result(
    change: Callable[[Any], str], tmp_path: Path, sorts: Counted, shards: Counted
) -> None:
    paths, directory = small_files(tmp_path), tmp_path / "C"
    shards.stop = 2
    with pytest.raises(Stop):
        build(paths, directory)
    for path in [*directory.glob(".work/sort-*.json"), *directory.glob(".work/shard-*.json")]:
        path.write_text(change(json.loads(path.read_bytes())))
    shards.stop = -1
    build(paths, directory)
    assert (sorts.calls, shards.calls) == (8, 8)
    check_cluster(directory, sort_unique(map(Path, paths)))


@pytest.mark.parametrize(
    ("number", "to_all", "status", "message", "moment"),
    [
        (signal.SIGINT, True, 130, "cdxmill: interrupted", ".work/*.run"),
        (signal.SIGINT, False, 130, "cdxmill: interrupted", ".work/shard-*.json"),
        (signal.SIGTERM, False, 143, "cdxmill: terminated", ".work/*.run"),
        (signal.SIGHUP, True, 129, "cdxmill: terminated", ".work/shard-*.json"),
    ],
)
def test_a_signal_ends_it_with_its_status_in_one_line_and_no_worker_stays(
    moment: str,
    number: signal.Signals,
    to_all: bool,
    status: int,
    message: str,
    inputs: list[Path],
    tmp_path: Path,
) -> None:
    run = Started("zipnum", "-o", tmp_path / "C", *SLOWLY, *inputs)
    run.wait_for(tmp_path / "C", moment)
    assert run.send(number, to_all) == (status, [message])
    assert not run.is_anyone_left()
    assert not (tmp_path / "C/cluster.json").exists()


def told(done: subprocess.CompletedProcess[bytes]) -> str:
    """The one line of a run that was stopped."""
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.decode().splitlines()
    return line


@pytest.mark.parametrize(("kilobytes", "processes"), [(16, "2"), (200, "1")])
def test_files_that_may_not_grow_further_stop_it_in_one_line(
    kilobytes: int, processes: str, inputs: list[Path], tmp_path: Path
) -> None:
    call = [str(COMMAND), "zipnum", "-q", "-o", str(tmp_path / "C"), "-s", "2", "-p", processes]
    call += map(str, inputs)
    limited = ["bash", "-c", f'ulimit -f {kilobytes}; exec "$@"', "bash", *call]
    line = told(subprocess.run(limited, capture_output=True, check=False))
    assert "cannot be written (File too large)" in line
    assert not (tmp_path / "C/cluster.json").exists()
    assert subprocess.run(call, check=False).returncode == 0
    check_cluster(tmp_path / "C", sort_unique(inputs))


@pytest.fixture
def little_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    directory = tmp_path / "little"
    directory.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", directory], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield directory
    subprocess.run(["umount", directory], check=True)


def test_a_full_disk_stops_it_in_one_line_and_more_room_lets_it_go_on(
    little_disk: Path, inputs: list[Path], uninterrupted: dict[str, bytes], run_cdxmill: RunCdxmill
) -> None:
    call: list[str | Path] = ["zipnum", "-q", "-o", little_disk / "C", *SLOWLY, *inputs]
    line = told(run_cdxmill(*call))
    assert "cannot be written (No space left on device); free space, then run it again" in line
    assert not (little_disk / "C/cluster.json").exists()
    subprocess.run(["mount", "-o", "remount,size=64m", little_disk], check=True)
    assert run_cdxmill(*call).returncode == 0
    assert published(little_disk / "C") == uninterrupted


def test_a_full_disk_costs_the_split_files_of_sample_as_a_whole(
    little_disk: Path, inputs: list[Path], run_cdxmill: RunCdxmill
) -> None:
    free = os.statvfs(little_disk).f_bavail * os.statvfs(little_disk).f_frsize
    (little_disk / "filler").write_bytes(bytes(free))
    told(run_cdxmill("sample", "-q", "-s", "9", "-o", little_disk / "s.txt", *inputs))
    assert [path.name for path in little_disk.iterdir()] == ["filler"]


class _Task(NamedTuple):
    number: int


def test_results_are_kept_by_number_whatever_the_order(tmp_path: Path) -> None:
    tasks = [_Task(2), _Task(0), _Task(1)]
    with Progress("testing", 3, 0, True) as progress:
        first = WorkDirectory(tmp_path, "job").run("step", _number_of, tasks, 1, progress, _is_fine)
        assert next(first) == "2"
        del first  # as a run that is killed
        again = WorkDirectory(tmp_path, "job").run("step", _number_of, sorted(tasks), 1, progress, _is_fine)
        assert sorted(again) == ["0", "1", "2"]


def _number_of(task: _Task) -> str:
    return str(task.number)


def _is_fine(result: object) -> bool:
    """It is not asked about a task that has no result."""
    return True


def test_an_outage_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run continues with it. Only what no run can continue with is deleted."""
    (tmp_path / "a.cdxj").write_text('com,a)/ 20200101000000 {"url": "http://a.com/"}\n')

    def fail(*_: object) -> None:
        raise OutageError("s3://b/a", "gave no answer", "")

    with monkeypatch.context() as patched:
        patched.setattr(zipnum, "_split_points", fail)
        with pytest.raises(OutageError):
            cdxmill.zipnum(tmp_path / "a.cdxj", output=tmp_path / "c", shards=1)
    assert list((tmp_path / "c/.work").iterdir())
    assert cdxmill.zipnum(tmp_path / "a.cdxj", output=tmp_path / "c", shards=1).lines == 1
    assert not (tmp_path / "c/.work").exists()
