"""Parts of tasks on nodes: the start script, the libraries of a step, what is reported, and which failures are tried again."""

from __future__ import annotations

import json
import os
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from cdxmill.errors import StoppedError
from cdxmill.formats.clusters.compressor import BLOCKS
from cdxmill.inputs.named import named_input
from cdxmill.jobs.nodes import archives, hadoop_task
from cdxmill.jobs.nodes.archives import ArchiveWork, count_archives, index_archives, parse_output
from cdxmill.jobs.nodes.sample import share_of_sample
from cdxmill.jobs.nodes.sent_call import item_of, parse_results
from cdxmill.jobs.nodes.task_context import TaskRun, format_failure
from cdxmill.jobs.nodes.wacz_work import WaczWork
from cdxmill.jobs.nodes.zipnum import _Received
from cdxmill.outputs.existing import Rule
from cdxmill.running.failures import Failure
from cdxmill.running.watched import Limits
from cdxmill.stages.counting.counters import COUNTERS
from tests.jobs.conftest import task_done
from tests.material.clock import Clock
from tests.storage.fault_server import failing


def task(*items: dict[str, Any], directory: Path = Path()) -> TaskRun:
    data = b"".join(json.dumps(item).encode() + b"\n" for item in items)
    return TaskRun(BytesIO(data), BytesIO(), BytesIO(), directory)


def told(run: TaskRun) -> list[str]:
    assert isinstance(run.reports, BytesIO)
    return run.reports.getvalue().decode().splitlines()


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ((3, 9, 1), ["none-any", "cp39-x86_64"]),
        ((3, 10, 0), ["none-any"]),
        ((3, 11, 2), ["none-any", "cp311-x86_64", "abi3-x86_64"]),
        ((3, 14, 0), ["none-any", "abi3-x86_64"]),
        ((4, 0, 0), ["none-any", "abi3-x86_64"]),
    ],
    ids=str,
)
def test_a_node_uses_the_libraries_for_its_python(
    version: tuple[int, ...], wanted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("none-any", "cp39-x86_64", "cp311-x86_64", "cp310-aarch64", "abi3-x86_64", "abi3-aarch64"):
        (tmp_path / "wheels" / name).mkdir(parents=True)
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    task_script: Any = hadoop_task  # it has no types: old Pythons read it
    found = task_script.matching_wheels(str(tmp_path))
    assert [Path(path).name for path in found] == wanted


@pytest.mark.parametrize(
    ("environ", "user"),
    [
        ({"mapreduce_job_user_name": "alice"}, "alice"),
        ({"mapreduce_job_user_name": "alice", "HADOOP_USER_NAME": "bob"}, "bob"),
        ({"mapreduce_job_user_name": "alice", "hadoop_security_authentication": "kerberos"}, None),
        ({}, None),
    ],
    ids=["job", "own", "kerberos", "unknown"],
)
def test_a_task_is_that_of_the_user_of_the_job_and_has_the_keys(
    environ: dict[str, str], user: str | None, tmp_path: Path
) -> None:
    (tmp_path / hadoop_task.KEYS).write_text('{"AWS_REGION": "here", "TZ": "UTC"}')
    calls = [item_of(number, os.getenv, name) for number, name in enumerate(("HADOOP_USER_NAME", "AWS_REGION", "TZ"))]  # fmt: skip
    data = b"".join(json.dumps(call).encode() + b"\n" for call in calls)
    done = task_done("call", data=data, cwd=tmp_path, environ={**environ, "TZ": "CET"})
    assert dict(parse_results(done.stdout)) == {0: user, 1: "here", 2: "CET"}, done.stderr


@pytest.mark.parametrize(
    ("mapper", "reducer", "wanted"),
    [
        (["sample"], ["points"], {"URLLIB3"}),
        (["chunks"], ["shard", "--compressor", "zlib-ng"], {"URLLIB3", "ZLIB_NG"}),
        (["chunks"], ["shard", "--compressor", "libdeflate"], {"URLLIB3", "DEFLATE"}),
        (["chunks"], ["shard", "--compressor", "zlib"], {"URLLIB3"}),
        (["index"], None, set()),
    ],
    ids=["sample", "zlib-ng", "libdeflate", "zlib", "index"],
)
def test_nodes_get_the_libraries_that_their_tasks_need(
    mapper: list[str], reducer: list[str] | None, wanted: set[str]
) -> None:
    from cdxmill.jobs.launcher import node_archive
    from cdxmill.jobs.launcher.hadoop_step import HadoopStep, libraries_of

    step = HadoopStep([], mapper, reducer, {}, {})
    assert set(libraries_of(step)) == {getattr(node_archive, name) for name in wanted}


def test_a_task_that_reads_is_shown_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs is not, so Hadoop ends it."""
    clock, run, done = Clock(), task(), [0]
    monkeypatch.setattr(archives, "time", clock)
    monkeypatch.setattr(archives, "bytes_done", lambda: done[0])
    report = archives._Report(run)
    for _ in range(9):
        clock.now += 10
        done[0] += 1 << 20
        report()
    assert told(run) == [f"reporter:status:{number} MiB read" for number in (3, 6, 9)]
    for _ in range(9):
        clock.now += 10
        report()
    assert len(told(run)) == 3


def test_a_reducer_is_shown_after_each_million_lines() -> None:
    run, text = task(), b"\n" * 299_999
    failed = Failure("a.cdx.gz", 7, "is truncated")
    records = [(b"key", text)] * 3 + [(b"", format_failure(failed))] + [(b"key", text)] * 4

    class Plain:
        def decompress(self, data: bytes) -> bytes:
            return data

    packer: Any = Plain()
    received = _Received(iter(records), packer, run)
    assert list(received) == [text] * 7
    assert (received.lines, received.failures) == (2_100_000, [failed])
    assert told(run) == ["reporter:status:1200000 lines"]
    assert BLOCKS.version()


@pytest.mark.parametrize(
    ("size", "mappers", "part", "share"),
    [
        (500, 1, 0.0, 500),
        (100_000, 2, 0.0, 100_000),
        (100_000, 100, 0.0, 4_000),
        (100_000, 100, 0.1, 40_000),
        (100_000, 100, 0.5, 100_000),
        (100_000, 10_000, 0.0, 1_000),
    ],
)
def test_a_mapper_sends_several_times_its_share(size: int, mappers: int, part: float, share: int) -> None:
    assert share_of_sample(size, mappers, part) == share


@pytest.mark.parametrize("kind", ["index", "index a WACZ", "count", "count a WACZ"])
@pytest.mark.parametrize("attempt", [0, 3])
def test_each_task_is_tried_elsewhere_if_a_server_refuses_its_archive(
    kind: str, attempt: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("mapreduce_map_maxattempts", "4")
    monkeypatch.setenv("mapreduce_task_attempt_id", f"attempt_1_0001_m_000000_{attempt}")
    with failing() as server:
        name = "a.wacz" if "WACZ" in kind else "a.warc.gz"
        server.files[f"/{name}"] = b"x"
        server.plan("403", 1, once=False)
        archive = named_input(f"{server.url}/{name}", name)
        work: dict[str, Any] = {"archive": archive.to_fields()}
        if kind == "index":
            work = ArchiveWork(archive, f"{tmp_path}/out.cdx.gz", None).item()
        elif kind == "index a WACZ":
            work = WaczWork(archive, str(tmp_path), None, Rule.STAY.name, False).item()
        run = task(work, directory=tmp_path)

        def do() -> None:
            if kind.startswith("index"):
                index_archives(run)
            else:
                count_archives(COUNTERS["tags"], run, Limits(60, 1 << 30))

        if attempt < 3:
            with pytest.raises(StoppedError, match="403"):
                do()
            return
        do()
    assert isinstance(run.output, BytesIO)
    ((failure,), _) = parse_output(run.output.getvalue().removeprefix(b"\t"))
    assert failure.is_outage
    assert "reporter:counter:cdxmill,failures,1" in told(run)
