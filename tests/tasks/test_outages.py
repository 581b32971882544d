"""A fault of a machine fails the task, in every engine alike. Only a file that is itself at fault is skipped."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdxmill.errors import StoppedError
from cdxmill.inputs.cdx_files import take_inventory
from cdxmill.jobs.nodes.files import read_inputs
from cdxmill.jobs.nodes.sample import sample_files
from cdxmill.jobs.nodes.task_context import TaskRun
from cdxmill.jobs.nodes.zipnum import chunk_packer, send_chunks
from cdxmill.spark.tasks import SortWork, sort_and_send
from cdxmill.stages.lines.line_chunks import format_record
from cdxmill.storage import patience
from cdxmill.storage.hadoop import hdfs, pick
from cdxmill.tasks.sampling import sample_group
from cdxmill.tasks.sorting import SortTask, sort_group
from cdxmill.tasks.whole_files import SampleTask
from tests.storage.name_node import NameNode, name_node

LINES = b"".join(b"com,example)/%d 2020 {}\n" % number for number in range(99))
URLS = ["hdfs:///cdx/a.cdx.gz", "hdfs:///cdx/b.cdx.gz"]
Work = Callable[[Path], object]


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    for made in (hdfs._client, pick._picked):
        made.cache_clear()
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        running.put("/cdx/a.cdx.gz", gzip.compress(LINES))
        running.put("/cdx/b.cdx.gz", gzip.compress(LINES.replace(b"com", b"net"))[:-3])
        yield running
    hdfs._client.cache_clear()


def sort_here(scratch: Path) -> object:
    return sort_group(SortTask(0, list(take_inventory(URLS).sources), scratch, False, 9)).failures


def sample_here(scratch: Path) -> object:
    return sample_group(SampleTask(URLS, "0:0", 9)).failures


def sort_on_spark(scratch: Path) -> object:
    work = SortWork(0, list(take_inventory(URLS).sources), [], frozenset([0]), False, str(scratch), 9)
    return [number for number, _ in sort_and_send(work)] if scratch else None


def on_hadoop(scratch: Path, task: Callable[[TaskRun], None]) -> object:
    item = b'{"paths": ["%b"], "seed": "0:0", "size": 9}\n' % '", "'.join(URLS).encode()
    run = TaskRun(io.BytesIO(item), io.BytesIO(), io.BytesIO(), scratch)
    task(run)
    return run.output.seek(0, io.SEEK_END)


def chunks_on_hadoop(scratch: Path) -> object:
    def form(key: bytes, text: bytes) -> bytes:
        return format_record(key, text, chunk_packer("zlib"))

    return on_hadoop(scratch, lambda run: send_chunks(read_inputs, [], form, run))


def sample_on_hadoop(scratch: Path) -> object:
    return on_hadoop(scratch, lambda run: sample_files(9, read_inputs, run))


TASKS = [sort_here, sample_here, sort_on_spark, chunks_on_hadoop, sample_on_hadoop]


@pytest.mark.parametrize("work", TASKS)
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((403, "AccessControlException"), r"a\.cdx\.gz: .*403 AccessControlException"),
        ((503, "RetriableException"), r"a\.cdx\.gz: did not answer .* after 12 tries"),
        ((403, "IOException: Failed to find datanode"), r"a\.cdx\.gz: "),
    ],
)
def test_an_outage_fails_the_task(
    work: Work,
    answer: tuple[int, str],
    reason: str,
    node: NameNode,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    taken = take_inventory(URLS)
    monkeypatch.setattr(f"{__name__}.take_inventory", lambda urls: taken)
    pick.storage_of(URLS[0])
    node.refusals = [answer] * 99
    with pytest.raises(StoppedError, match=reason):
        work(tmp_path)


@pytest.mark.parametrize("work", TASKS)
def test_a_corrupt_file_does_not(
    work: Work, node: NameNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert work(tmp_path)
