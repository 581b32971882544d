"""A cluster that Spark builds has the bytes of the local engine; what a killed run leaves is completed."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest

from cdxmill.cluster import output
from cdxmill.commands.clusters import zipnum
from cdxmill.commands.clusters.zipnum import ClusterSummary, build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.compressor import BLOCKS
from cdxmill.inputs.cdx_files import take_inventory
from cdxmill.running import progress
from cdxmill.running.failures import Failures
from cdxmill.spark import tasks as spark_tasks
from cdxmill.spark.engine import Engine, Shuffle
from cdxmill.spark.jobs import Maker
from cdxmill.spark.tasks import ShardWork, SortWork, join_parts, sort_and_send
from cdxmill.stages.lines import merge_lines
from cdxmill.storage.location import locate
from cdxmill.tasks import sorting
from tests.material.cdx_files import many_lines, write_gzip
from tests.spark import spark_steps as steps
from tests.spark.conftest import HardInputs, hashes

POINTS = (
    b"!",
    b"!!",
    b"com,example)/page/0000002 20200101000000",
    b"com,example)/page/0010000 20200101000000",
    b"net,\ttab)/ 2",
    b"net,zz)/ 20200101000000",
    b"\xff\xff\xff\xff",
)
OPTIONS = ZipnumOptions(shards=8, points=POINTS, location="/published", quiet=True)


def names(inputs: HardInputs) -> list[str]:
    return [str(path) for path in inputs.paths]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, hard_inputs: HardInputs) -> Path:
    directory = tmp_path_factory.mktemp("expected")
    build_cluster(names(hard_inputs), directory, OPTIONS, Failures(printed=False))
    return directory


def run(
    engine: Engine, paths: Sequence[str], place: str | Path, options: ZipnumOptions = OPTIONS
) -> tuple[ClusterSummary, Failures]:
    failures = Failures(printed=False)
    options = replace(options, make=Maker(engine), is_far=True)
    return build_cluster(paths, str(place), options, failures), failures


def test_every_file_equals_that_of_the_local_engine(
    tmp_path: Path, engine: Engine, hard_inputs: HardInputs, expected: Path
) -> None:
    summary, failures = run(engine, names(hard_inputs), tmp_path / "c")
    assert hashes(tmp_path / "c") == hashes(expected)
    assert {failure.path for failure in failures.items} == set(map(str, hard_inputs.bad))
    assert summary.lines == len(hard_inputs.lines)
    again, failed = run(engine, names(hard_inputs), tmp_path / "c")
    assert not again.new
    assert again.duplicates == summary.duplicates > 0
    assert failed.items == failures.items


def test_without_split_points_the_sample_is_that_of_the_local_engine(
    tmp_path: Path, engine: Engine, hard_inputs: HardInputs
) -> None:
    options = ZipnumOptions(shards=5, seed=3, location="/x", quiet=True, block_lines=100)
    run(engine, names(hard_inputs), tmp_path / "spark", options)
    build_cluster(names(hard_inputs), tmp_path / "local", options, Failures(printed=False))
    assert hashes(tmp_path / "spark") == hashes(tmp_path / "local")


def test_an_existing_cluster_stays_unless_replace_is_given(tmp_path: Path, engine: Engine) -> None:
    for name in "ab":
        (tmp_path / f"{name}.cdx").write_text(f"com,{name})/ 2020 {{}}\n")
    options = ZipnumOptions(shards=1, location="/x", quiet=True)
    run(engine, [str(tmp_path / "a.cdx")], tmp_path / "c", options)
    before = hashes(tmp_path / "c")
    with pytest.raises(UsageError, match="already has a cluster of other inputs"):
        run(engine, [str(tmp_path / "b.cdx")], tmp_path / "c", options)
    assert hashes(tmp_path / "c") == before
    run(engine, [str(tmp_path / "b.cdx")], tmp_path / "c", replace(options, replace=True))
    assert hashes(tmp_path / "c") != before


def test_no_readable_input_is_an_error(tmp_path: Path, engine: Engine, hard_inputs: HardInputs) -> None:
    bad = [str(path) for path in hard_inputs.bad]
    with pytest.raises(InputError, match="no input can be read"):
        run(engine, bad, tmp_path / "c")
    assert not (tmp_path / "c/cluster.json").exists()


def test_a_rerun_after_a_kill_writes_only_what_is_missing(
    tmp_path: Path,
    engine: Engine,
    hard_inputs: HardInputs,
    expected: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = tmp_path / "c"
    with monkeypatch.context() as patch:
        patch.setattr(zipnum, "write_cluster_files", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(engine, names(hard_inputs), directory)
    assert [path.name[:5] for path in directory.iterdir()] == [".run-"], "a directory of its own"
    (own,) = directory.iterdir()
    (own / "cdx-00003.gz").unlink()
    (own / ".work/shard-00004.json").unlink()
    kept = (own / "cdx-00002.gz").stat().st_ino, (own / "cdx-00003.gz").exists()
    run(engine, names(hard_inputs), directory)
    assert ((directory / "cdx-00002.gz").stat().st_ino, False) == kept
    assert hashes(directory) == hashes(expected)


def interrupt(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_tasks_of_an_older_run_cannot_change_the_cluster_of_the_next_one(
    tmp_path: Path, engine: Engine, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver is gone, and one of its tasks writes its shard after another run has ended."""
    works: list[ShardWork] = []

    def remember(step: Shuffle) -> None:
        works.append(step.shared)
        raise KeyboardInterrupt

    (tmp_path / "a.cdx").write_text("com,a)/ 2020 {}\n")
    (tmp_path / "b.cdx").write_text("com,b)/ 2020 {}\n")
    options = ZipnumOptions(shards=1, points=(), location="/x", quiet=True)
    for place in (str(tmp_path / "c"), f"{s3}/older"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(engine, "shuffle", remember)
            run(engine, [str(tmp_path / "a.cdx")], place, options)
        run(engine, [str(tmp_path / "b.cdx")], place, options)
        before = hashes(place)
        assert not any(".run-" in name for name in before)
        sent = sort_and_send(sort_work(0, [str(tmp_path / "a.cdx")])._replace(points=[]))
        join_parts(works.pop(), 0, (part for number, part in sent if number == 0))
        late = hashes(place)
        assert {name: value for name, value in late.items() if ".run-" not in name} == before
        assert any(name.endswith("/cdx-00000.gz") for name in late)


def test_killed_tasks_are_repeated_and_leave_one_whole_shard(
    tmp_path: Path, engine: Engine, hard_inputs: HardInputs, expected: Path
) -> None:
    """Each kind of task is killed after it has done its work, so what it sent and wrote exists twice."""
    directory, died = str(tmp_path / "c"), str(tmp_path)
    works = [sort_work(number, [path]) for number, path in enumerate(names(hard_inputs))]
    tasks = [steps.Deadly(work, died) for work in works]
    step = Shuffle(
        steps.sort_and_die, tasks[:2], steps.write_and_die, (shard_work(directory), died), len(POINTS) + 2
    )
    for task in tasks[2:]:
        (tmp_path / f"sort-{task.work.number}").touch()
    engine.shuffle(step._replace(tasks=tasks))
    assert (tmp_path / "sort-0").exists()
    assert (tmp_path / "shard-1").exists()
    found = hashes(directory)
    shards = {name: value for name, value in hashes(expected).items() if name.startswith(("cdx-", "part-"))}
    assert {name: found[name] for name in shards} == shards
    assert [name for name in found if name.endswith(".tmp")] == []


def sort_work(number: int, paths: list[str]) -> SortWork:
    return SortWork(
        number, list(take_inventory(paths).sources), list(POINTS), frozenset(range(8)), False, "", 10
    )


def shard_work(directory: str) -> ShardWork:
    return ShardWork(directory, list(POINTS), frozenset(range(8)), BLOCKS, BLOCKS.version(), 3000, "")


def test_parts_may_come_in_any_order_and_are_small(
    tmp_path: Path, hard_inputs: HardInputs, expected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_tasks, "PIECE", 1000)
    sent = [
        part
        for number, path in enumerate(names(hard_inputs))
        for part in sort_and_send(sort_work(number, [path]))
    ]
    assert max(len(data) for number, (_, _, data, _) in sent if number < 9) <= 1000
    assert sum(number == 3 for number, _ in sent) > 20, "a run has several pieces"
    random.Random(5).shuffle(sent)
    sent.sort(key=itemgetter(0))
    for number, pairs in groupby(sent, itemgetter(0)):
        join_parts(shard_work(str(tmp_path)), number, (part for _, part in pairs))
    found = hashes(tmp_path)
    assert found["cdx-00003.gz"] == hashes(expected)["cdx-00003.gz"]
    assert found["cdx-00004.gz"] == hashes(expected)["cdx-00004.gz"]


def test_parts_of_more_tasks_than_are_merged_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "MOST_RUNS", 3)
    monkeypatch.setattr(merge_lines, "MOST_RUNS", 3)
    lines = many_lines(900)
    paths = [write_gzip(tmp_path / f"{number}.cdx.gz", lines[number::9], 60) for number in range(9)]
    options = replace(OPTIONS, shards=2, points=(sorted(lines)[500],))
    build_cluster(list(map(str, paths)), tmp_path / "local", options, Failures(printed=False))
    shared = shard_work(str(tmp_path / "spark"))._replace(points=list(options.points or ()))
    sent = [
        part
        for number, path in enumerate(paths)
        for part in sort_and_send(sort_work(number, [str(path)])._replace(points=shared.points))
    ]
    for shard in range(2):
        join_parts(shared, shard, (part for number, part in sent if number == shard))
        name = f"cdx-{shard:05d}.gz"
        assert (tmp_path / "spark" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()


def test_large_sorted_files_are_read_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only positions in them are sent. A file that has changed since stops the shard."""
    monkeypatch.setattr(sorting, "LEAST_SORTED", 1)
    lines = many_lines(4000)
    paths = [write_gzip(tmp_path / f"{number}.cdx.gz", sorted(lines[number::4]), 60) for number in range(3)]
    paths.append(write_gzip(tmp_path / "unsorted.cdx.gz", lines[::-1][3::4], 60))
    options = replace(OPTIONS, shards=3, points=tuple(sorted(lines)[1300:4000:1300])[:2])
    build_cluster(list(map(str, paths)), tmp_path / "local", options, Failures(printed=False))
    shared = shard_work(str(tmp_path / "spark"))._replace(points=list(options.points or ()))
    sent = [
        part
        for number, path in enumerate(paths)
        for part in sort_and_send(sort_work(number, [str(path)])._replace(points=shared.points))
    ]
    in_place = [part for _, part in sent if part[3]]
    assert {source for *_, source in in_place} == set(map(str, paths[:3]))
    assert max(len(data) for _, _, data, _ in in_place) < 30
    for shard in range(3):
        join_parts(shared, shard, (part for number, part in sent if number == shard))
        name = f"cdx-{shard:05d}.gz"
        assert (tmp_path / "spark" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()
    write_gzip(paths[1], sorted(lines), 50)
    with pytest.raises(StoppedError, match=r"1\.cdx\.gz: .*; run it again"):
        join_parts(shared, 1, (part for number, part in sent if number == 1))


def test_a_failed_task_ends_with_its_own_reason(engine: Engine, tmp_path: Path) -> None:
    assert sorted(engine.run_tasks(steps.double, [3, 4], 1, lambda: None)) == [(0, 6), (1, 8)]
    with pytest.raises(StoppedError, match=r"^Spark: ValueError: no 7; run it again$"):
        list(engine.run_tasks(steps.fail, [7], 1, lambda: None))
    with pytest.raises(StoppedError, match=r"^Spark: a Python process of a task was killed, perhaps because"):
        list(engine.run_tasks(steps.die, [0], 1, lambda: None))
    other = shard_work(str(tmp_path))._replace(version="zlib 0.1")
    step = Shuffle(sort_and_send, [sort_work(0, [])], join_parts, other, len(POINTS) + 2)
    with pytest.raises(StoppedError, match=r"^Spark: a node has .*, the driver zlib 0\.1: install the same"):
        engine.shuffle(step)


def test_a_signal_ends_the_wait_and_not_the_messages_to_java(
    tmp_path: Path, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    """Spark can be used, and so stopped, after it; PySpark's own handler would break in on a message."""

    def interrupt() -> None:
        steps.wait_for_file(str(tmp_path / "started"))
        os.kill(os.getpid(), signal.SIGINT)

    list(engine.run_tasks(steps.double, [1], 1, lambda: None))  # Spark has started
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            list(engine.run_tasks(steps.say_and_wait, [str(tmp_path)], 1, lambda: None))
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
        (tmp_path / "end").touch()
    assert list(engine.run_tasks(steps.double, [3], 1, lambda: None)) == [(0, 6)]
    assert "Traceback" not in capfd.readouterr().err


def test_a_cluster_on_s3(
    tmp_path: Path,
    engine: Engine,
    s3: str,
    hard_inputs: HardInputs,
    expected: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = f"{s3}/crawl"
    with monkeypatch.context() as patch:
        patch.setattr(zipnum, "write_cluster_files", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(engine, names(hard_inputs), url)
    assert "cluster.json" not in hashes(url)
    run(engine, names(hard_inputs), url)
    assert hashes(url) == hashes(expected)
    assert not run(engine, names(hard_inputs), url)[0].new
    (tmp_path / "b.cdx").write_text("com,b)/ 2020 {}\n")
    options = ZipnumOptions(shards=2, points=(b"com",), location="/x", quiet=True)
    with pytest.raises(UsageError, match="already has a cluster of other inputs or options; --replace"):
        run(engine, [str(tmp_path / "b.cdx")], url, options)
    assert hashes(url) == hashes(expected)
    with monkeypatch.context() as patch:
        patch.setattr(output, "switch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(engine, [str(tmp_path / "b.cdx")], url, replace(options, replace=True))
    found = hashes(url)
    assert {name: found[name] for name in hashes(expected)} == hashes(expected), "the old one can be read"
    with monkeypatch.context() as patch:
        patch.setattr(zipnum, "write_cluster", interrupt)  # nothing is built again
        run(engine, [str(tmp_path / "b.cdx")], url, replace(options, replace=True))
    build_cluster([str(tmp_path / "b.cdx")], tmp_path / "local", options, Failures(printed=False))
    assert hashes(url) == hashes(tmp_path / "local")


def test_files_of_others_on_s3_stay(tmp_path: Path, engine: Engine, s3: str) -> None:
    with locate(f"{s3}/other/cdx-00000.gz").write_atomic() as file:
        file.write(b"x")
    (tmp_path / "b.cdx").write_text("com,b)/ 2020 {}\n")
    with pytest.raises(UsageError, match=r"has cdx-00000\.gz, which is not of a cluster of this command"):
        run(engine, [str(tmp_path / "b.cdx")], f"{s3}/other")
    assert list(hashes(f"{s3}/other")) == ["cdx-00000.gz"]


def test_finished_tasks_are_shown_while_others_run(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second task waits until the first is seen to be done."""
    shown: list[str] = []
    first, second = tmp_path / "first", tmp_path / "second"
    first.touch()

    def say(line: str) -> None:
        shown.append(line)
        if "1/2" in line:
            second.touch()

    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    monkeypatch.setattr(progress, "say", say)
    found = dict(engine.run_tasks(steps.wait_for_file, [str(first), str(second)], 1, lambda: None))
    assert found == {0: str(first), 1: str(second)}
    assert any(line.startswith("tasks of Spark: 1/2") for line in shown)
    assert any(line.endswith("left") for line in shown)
