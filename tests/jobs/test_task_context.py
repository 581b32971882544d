"""What a task knows of its engine, and what it tells it."""

from __future__ import annotations

from dataclasses import replace
from io import BufferedWriter, BytesIO, RawIOBase
from pathlib import Path
from typing import IO, cast

import pytest

from cdxmill.errors import StoppedError
from cdxmill.jobs.nodes.task_context import TaskRun, format_failure, parse_failure
from cdxmill.running.failures import Failure

DAMAGED = Failure("a.warc.gz", 17, "gzip CRC32 mismatch", "fetch the file again")
AWAY = Failure("s3://b/a.warc.gz", None, "did not answer (503)", "run it again", is_outage=True)


@pytest.fixture
def run(tmp_path: Path) -> TaskRun:
    return TaskRun(BytesIO(), BytesIO(), BytesIO(), tmp_path)


@pytest.mark.parametrize(
    ("tries", "attempt", "is_again"),
    [
        ("4", "attempt_17_0001_m_000003_0", True),
        ("4", "attempt_17_0001_m_000003_2", True),
        ("4", "attempt_17_0001_m_000003_3", False),
        ("1", "attempt_17_0001_m_000003_0", False),
        ("4", "attempt", False),
        ("4", "", False),
        (None, "attempt_17_0001_m_000003_0", False),
    ],
)
def test_a_failure_of_a_machine_ends_an_attempt_that_is_tried_again(
    tries: str | None, attempt: str, is_again: bool, run: TaskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tries is not None:
        monkeypatch.setenv("mapreduce_map_maxattempts", tries)
    monkeypatch.setenv("mapreduce_task_attempt_id", attempt)
    assert run.is_tried_again == is_again
    run.check_reached([DAMAGED])
    if not is_again:
        run.check_reached([DAMAGED, AWAY])
        return
    with pytest.raises(StoppedError, match="did not answer"):
        run.check_reached([DAMAGED, AWAY])


def test_without_an_engine_there_is_one_mapper(run: TaskRun, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run.mappers == 1
    monkeypatch.setenv("mapreduce_job_maps", "7")
    monkeypatch.setenv("mapreduce_task_partition", "3")
    assert (run.mappers, run.number) == (7, 3)


def test_counters_and_the_status_are_lines_on_stderr(run: TaskRun) -> None:
    """At once, as Hadoop waits for them."""
    written = BytesIO()
    run = replace(run, reports=cast("IO[bytes]", BufferedWriter(cast("RawIOBase", written))))
    run.add(archive_bytes=5, failed_archives=True)
    run.show("3 of ü\udcff")
    assert written.getvalue() == (
        b"reporter:counter:cdxmill,archive bytes,5\nreporter:counter:cdxmill,failed archives,1\n"
        b"reporter:status:3 of \xc3\xbc\xff\n"
    )


@pytest.mark.parametrize(
    "failure",
    [
        DAMAGED,
        AWAY,
        Failure("a", 0, "reason"),
        Failure("a", None, "reason"),
        Failure("a", None, "reason", "", is_outage=True),
        Failure("a\udcff", 7, "at 5: reason", "hint"),
    ],
)
def test_a_failure_is_the_same_on_the_other_side(failure: Failure) -> None:
    assert parse_failure(format_failure(failure)) == failure


def test_a_failure_is_one_line_of_its_fields() -> None:
    line = format_failure(Failure("a\tb\n", None, "c\rd", "e\tf"))
    assert line == b"a%09b%0A\tc%0Dd\te%09f\n"


def test_work_and_lines_are_read_from_standard_input(tmp_path: Path) -> None:
    given = b'{"number": 1}\n{"number": 2}\n'
    assert list(TaskRun(BytesIO(given), BytesIO(), BytesIO(), tmp_path).work()) == [
        {"number": 1},
        {"number": 2},
    ]
    lines = [b"a" * 9, *[b"line %d" % number for number in range(300_000)]]
    found = TaskRun(BytesIO(b"\n".join(lines) + b"\n"), BytesIO(), BytesIO(), tmp_path).lines()
    assert [line for some in found for line in some] == lines
