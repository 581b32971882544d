"""Counts of Spark have the bytes of the local engine, and so do those of a user's own counter, which is sent to the nodes."""

from __future__ import annotations

import pickle
import time
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from cdxmill.commands import count
from cdxmill.commands.clusters.build import build
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.count import RunCounts, count_asked
from cdxmill.commands.per_archive.index import IndexOptions, IndexTask
from cdxmill.errors import InputError, StoppedError
from cdxmill.inputs.named import named_input
from cdxmill.options.contents import CountOptions
from cdxmill.running.failures import Failure, Failures
from cdxmill.spark import counting, jobs
from cdxmill.spark.engine import Engine, Shuffle
from cdxmill.spark.jobs import CountRunner, IndexRunner, Maker
from cdxmill.spark.tasks import OnNode, SharedWork, index_archive, names_in_wacz
from cdxmill.stages.counting.tally import spill
from cdxmill.storage import hosts
from cdxmill.storage.location import locate
from tests.spark.here import Here
from tests.storage.fault_server import FaultServer, failing

OWN = """
from cdxmill.jobs.count_job import CountJob


class Sizes(CountJob):
    def items(self, record):
        yield record.url, record.size
        if record.kind == b"request":
            raise ValueError("a request")
        yield "all"
"""


@pytest.fixture
def archives(tmp_path: Path, pywb_warcs: Path) -> list[str]:
    """Archives, one of them truncated, and one that is missing."""
    iana, *others = (pywb_warcs / name for name in ("iana.warc.gz", "example.arc.gz", "post-test.warc.gz"))
    (tmp_path / "cut.warc.gz").write_bytes(iana.read_bytes()[:200_000])
    return [str(path) for path in (iana, *others, tmp_path / "cut.warc.gz", tmp_path / "absent.warc.gz")]


def counted(options: CountOptions, run: RunCounts | None = None) -> tuple[bytes, list[Failure], str]:
    """The lines, what failed, and the summary."""
    failures, out = Failures(printed=False), BytesIO()
    summary = count_asked(options, out, failures, run)
    return out.getvalue(), sorted(failures.items), str(summary)


def test_counts_are_those_of_the_local_engine(
    engine: Engine, archives: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_PER_CORE", 2)
    options = CountOptions("links", archives)
    local = counted(options)
    assert local[0].count(b"\n") > 9
    assert local[1]
    assert counted(options, CountRunner(engine, str(tmp_path))) == local


def test_a_counter_of_the_user_runs_on_spark_without_its_module(
    engine: Engine, archives: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "only the driver has it"
    directory.mkdir()
    (directory / "spark_sizes.py").write_text(OWN)
    monkeypatch.syspath_prepend(directory)
    options = CountOptions(None, archives, call="spark_sizes:Sizes")
    local = counted(options)
    assert any("a request; correct the function" in str(one) for one in local[1])
    assert counted(options, CountRunner(engine)) == local


def test_counts_that_fill_the_memory_are_spilled(
    archives: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Spark, with parts of some lines, and a run of each part."""
    monkeypatch.setattr(count, "HELD", 1000)
    monkeypatch.setattr(counting, "HELD", 0)
    monkeypatch.setattr(counting, "PIECE", 100)
    options = CountOptions("tags", archives)
    assert counted(options, CountRunner(Here())) == counted(options)


def test_an_answer_without_all_reports_is_not_taken(archives: list[str]) -> None:
    class Loses(Here):
        def shuffle_pieces(self, step: Shuffle) -> Iterator[object]:
            yield from [*super().shuffle_pieces(step)][:-1]

    with pytest.raises(StoppedError, match="groups were counted; run it again"):
        counted(CountOptions("tags", archives), CountRunner(Loses()))


@pytest.mark.parametrize(("held", "runs"), [(0, 3), (1 << 30, 1)])
def test_counts_that_take_too_much_memory_are_sorted_on_the_disk(
    held: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def noted(tally: Any, create: Any, name: str) -> Any:
        names.append(name)
        return spill(tally, create, name)

    monkeypatch.setattr(counting, "HELD", held)
    monkeypatch.setattr(counting, "spill", noted)
    parts = [zlib.compress(text) for text in (b"a\t1\n", b"b\t5\na\t2\n")]
    (piece,) = counting.add_parts((2, ""), 0, iter(parts))
    assert zlib.decompress(piece.data) == b"a\t3\t0\nb\t5\t0\n"
    assert len(names) == runs


@pytest.fixture
def refusing(pywb_warcs: Path) -> Iterator[FaultServer]:
    """A server that refuses its only archive."""
    with failing() as server:
        server.files["/a.warc.gz"] = (pywb_warcs / "iana.warc.gz").read_bytes()
        server.plan("403", 1, once=False)
        yield server


def test_an_archive_that_is_refused_is_a_fault_of_a_machine(
    engine: Engine, refusing: FaultServer, pywb_warcs: Path, tmp_path: Path
) -> None:
    """The others are indexed and counted, and no cluster is built."""
    places = [str(pywb_warcs / "example.warc.gz"), f"{refusing.url}/a.warc.gz"]
    inputs = [named_input(place, place.rpartition("/")[2]) for place in places]
    indexing, failures = IndexOptions(quiet=True, run=IndexRunner(engine)), Failures(printed=False)
    building = ZipnumOptions(shards=1, location=".", quiet=True, make=Maker(engine), is_far=True)
    with pytest.raises(StoppedError, match="no cluster was written, because 1 input could not be read"):
        build(inputs, tmp_path / "c", indexing, building, failures)
    assert failures.status == 3
    assert [path.name for path in tmp_path.rglob("cluster.json")] == []
    assert len([*tmp_path.rglob("example*.cdx.gz")]) == 1
    options = CountOptions("tags", places)
    counts, failed, _ = counted(options, CountRunner(engine))
    assert counts
    assert [failure.is_outage for failure in failed] == [True]


def test_spark_tries_such_an_archive_again(engine: Engine, refusing: FaultServer, tmp_path: Path) -> None:
    refusing.plan("403", 1, once=True)
    archive = named_input(f"{refusing.url}/a.warc.gz", "a.warc.gz")
    settings = IndexOptions().settings()
    task = IndexTask(archive, locate(tmp_path / "a.cdx.gz"), None, tmp_path / "scratch", settings)
    work = partial(index_archive, OnNode("", 3))
    ((_, result),) = engine.run_tasks(work, [task], 1, lambda: None)
    assert result.failures == []
    assert (tmp_path / "a.cdx.gz").exists()


def test_spark_tries_again_to_open_a_wacz(engine: Engine, refusing: FaultServer) -> None:
    """What is no WACZ is an answer, and not asked for again."""
    refusing.files["/a.wacz"] = bytes(100)
    refusing.plan("403", 2, once=True)
    work = partial(names_in_wacz, OnNode("", 3))
    ((_, found),) = engine.run_tasks(work, [locate(f"{refusing.url}/a.wacz")], 1, lambda: None)
    assert isinstance(found, InputError)
    assert found.reason.startswith("is truncated or not a zip file (")


def test_a_further_attempt_asks_servers_that_the_first_gave_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark may run it in the same process, where it failed at once: all attempts were over before a short outage was."""
    blob = pickle.dumps(SharedWork(len))
    monkeypatch.setattr(TaskContext, "_taskContext", None)  # the first one that is made is kept there
    context = TaskContext()
    hosts.failed("archive.example", "https://archive.example/a", "503", time.monotonic() - 60)
    for attempt, is_left_alone in ((0, True), (1, False)):
        monkeypatch.setattr(context, "_attemptNumber", attempt)
        assert pickle.loads(blob)("four") == 4
        with pytest.raises(hosts.GivenUp) if is_left_alone else nullcontext():
            hosts.wait_for_turn("archive.example", None)
