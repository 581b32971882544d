"""A machine at fault ends each command with 3, damaged data with 1. No cluster lacks a file that may be whole."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import StoppedError
from cdxmill.inputs.named import named_input
from cdxmill.jobs.count_job import CountJob
from cdxmill.jobs.index_job import IndexWARCJob
from cdxmill.jobs.launcher.stream_job import StreamJob, launch
from cdxmill.jobs.nodes.archives import ArchiveWork, index_archives, parse_output
from cdxmill.jobs.nodes.task_context import TaskRun
from cdxmill.jobs.recompress_job import RecompressJob
from cdxmill.jobs.sample_job import SampleCDXJob
from cdxmill.jobs.zipnum_job import ZipNumClusterJob
from cdxmill.storage import hosts, patience
from tests.storage.fault_server import FaultServer, failing

LINES = b"".join(b'com,example)/%03d 2020 {"url": "http://h"}\n' % number for number in range(100))


@pytest.fixture
def server(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """It has an archive and a CDX file; so has the directory."""
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(patience, "LONGEST_WAIT", 0.01)
    monkeypatch.chdir(tmp_path)
    archive, lines = (pywb_warcs / "example.warc.gz").read_bytes(), gzip.compress(LINES)
    Path("good.warc.gz").write_bytes(archive)
    Path("good.cdx.gz").write_bytes(lines)
    with failing() as running:
        running.files = {"/other.warc.gz": archive, "/other.cdx.gz": lines}
        Path("list").write_text(f"good.warc.gz\n{running.url}/other.warc.gz\n")
        Path("splits.txt").write_bytes(b"com,example)/050 2020\n")
        yield running


WARCS, CDX = "good.warc.gz URL/other.warc.gz", "good.cdx.gz URL/other.cdx.gz"
COMMANDS = {
    "index": (f"index -q -p 1 -o cdx {WARCS}", "cdx/good*"),
    "index to a file": (f"index -q -p 1 -o all.cdxj {WARCS}", "all.cdxj"),
    "scan": (f"scan -q -p 1 -o rows {WARCS}", "rows/good*"),
    "count": (f"count tags -q -p 1 -o tags.tsv {WARCS}", "tags.tsv"),
    "build": (f"build -q -p 1 -s 1 --location . -o c {WARCS}", "c/cluster.json"),
    "zipnum": (f"zipnum -q -p 1 -s 1 --location . -o c {CDX}", "c/cluster.json"),
    "sample": (f"sample -q -p 1 -s 2 -o points.txt {CDX}", "points.txt"),
}
"""Each command, and its output."""
OF_ALL = {"build", "zipnum", "sample"}
"""What these make is of all inputs, or it is not made."""
JOBS: dict[str, tuple[type[StreamJob[Any]], str, str]] = {
    "index job": (IndexWARCJob, "--cdx_bucket cdx list", "cdx/good*"),
    "recompress job": (RecompressJob, "--output_bucket new list", "new/good*"),
    "sample job": (SampleCDXJob, f"--shards 2 --splitfile points.seq {CDX}", "points.seq"),
    "ZipNum job": (
        ZipNumClusterJob,
        f"--splitfile splits.txt --location . --zipnum-dir c {CDX}",
        "c/cluster.json",
    ),
}
OF_ALL_JOBS = {"sample job", "ZipNum job"}


class Tags(CountJob):
    what = "tags"


JOBS["counting job"] = (Tags, "--output-dir tags list", "tags")


def run(name: str, server: FaultServer) -> tuple[int, bool]:
    """Runs a command or a job. Returns its status, and whether its output exists."""
    if name in COMMANDS:
        words, output = COMMANDS[name]
        return main(words.replace("URL", server.url).split()), any(Path().glob(output))
    job, words, output = JOBS[name]
    given = words.replace("URL", server.url).split()
    return launch(job(["--no-conf", "-q", "-r", "inline", *given])), any(Path().glob(output))


@pytest.mark.parametrize("fault", ["403", "503", "reset-before"])
@pytest.mark.parametrize("name", [*COMMANDS, *JOBS])
def test_a_machine_at_fault_is_status_3(name: str, fault: str, server: FaultServer) -> None:
    server.plan(fault, 1, once=False)
    status, is_there = run(name, server)
    assert status == 3
    assert is_there == (name not in OF_ALL | OF_ALL_JOBS)


@pytest.mark.parametrize(
    "name", ["index", "scan", "build", "zipnum", "index job", "recompress job", "ZipNum job"]
)
def test_the_same_command_continues(name: str, server: FaultServer) -> None:
    server.plan("503", 1, once=False)
    assert run(name, server)[0] == 3
    server.plan("", 0, once=True)
    hosts.begin_run()  # as a new process does
    status, is_there = run(name, server)
    assert status == 0
    assert is_there


def absent(server: FaultServer) -> None:
    server.files.clear()


def damaged(server: FaultServer) -> None:
    server.files = {path: data[: len(data) // 2] for path, data in server.files.items()}


@pytest.mark.parametrize("spoil", [absent, damaged])
@pytest.mark.parametrize("name", [*COMMANDS, *JOBS])
def test_damaged_data_are_status_1_and_all_else_is_used(
    name: str, spoil: Callable[[FaultServer], None], server: FaultServer
) -> None:
    spoil(server)
    status, is_there = run(name, server)
    assert status == 1
    assert is_there


@pytest.mark.parametrize("attempt", range(4))
def test_a_task_of_hadoop_fails_until_its_last_attempt(
    attempt: int, server: FaultServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So Hadoop tries it on other nodes, and one archive does not end the job."""
    monkeypatch.setenv("mapreduce_map_maxattempts", "4")
    monkeypatch.setenv("mapreduce_task_attempt_id", f"attempt_1_0001_m_000000_{attempt}")
    server.plan("403", 1, once=False)
    archive = named_input(f"{server.url}/other.warc.gz", "other.warc.gz")
    item = json.dumps(ArchiveWork(archive, f"{tmp_path}/out.cdx.gz", None).item())
    output = BytesIO()
    task = TaskRun(BytesIO(item.encode()), output, BytesIO(), tmp_path)
    if attempt < 3:
        with pytest.raises(StoppedError, match="403"):
            index_archives(task)
    else:
        index_archives(task)
        (failure,), _ = parse_output(output.getvalue())
        assert failure.is_outage


@pytest.mark.parametrize("name", ["index job", "recompress job"])
def test_an_outage_is_printed_as_a_path_and_a_reason(
    name: str, server: FaultServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.plan("503", 1, once=False)
    capfd.readouterr()
    assert run(name, server)[0] == 3
    rows = [line.split("\t") for line in capfd.readouterr().out.splitlines()]
    assert len(rows) == 1, rows
    assert (rows[0][0], len(rows[0])) == (f"{server.url}/other.warc.gz", 2)
