"""jobs/launcher/hadoop_failure.py: what is heard during a job, which of many failures is the reason, and where it is looked for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cdxmill.jobs.launcher.hadoop_failure import Complaints

APPLICATION = "application_1_0001"
ENDED = "Job job_1_0001 failed with state FAILED due to: Job setup failed"


def java(message: str) -> dict[str, Any]:
    """A failure of which only Hadoop's own message is known."""
    return {"hadoop_error": {"message": message}}


def task(message: str) -> dict[str, Any]:
    """A failure of which the messages of the task are known."""
    return {"task_error": {"message": message}}


NO_REASON = "java.io.IOException: subprocess failed with code 1"
KILLED = java("java.lang.Error: Container killed on request")
FULL = java("java.io.IOException: the disk is full")


@pytest.fixture
def heard() -> Iterator[Complaints]:
    from cdxmill.jobs.launcher.hadoop_failure import Complaints

    logger = logging.getLogger("mrjob")
    level = logger.level
    found = Complaints()
    yield found
    logger.removeHandler(found)
    logger.setLevel(level)


def runner(alias: str = "hadoop", application: str = APPLICATION) -> Any:
    step = {"application_id": application} if application else {}
    return SimpleNamespace(alias=alias, fs=None, _log_interpretations=[{"step": step}])


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The applications whose logs were looked at."""
    from cdxmill.jobs.launcher import hadoop_failure

    found: list[str] = []

    def failures(_: object, application: str) -> list[object]:
        found.append(application)
        return []

    monkeypatch.setattr(hadoop_failure, "_failures_in_logs", failures)
    return found


@pytest.mark.parametrize(
    ("before", "after"), [(0, logging.INFO), (logging.DEBUG, logging.DEBUG), (logging.ERROR, logging.INFO)]
)
def test_mrjob_says_what_is_listened_to_and_what_the_user_asked_for(before: int, after: int) -> None:
    from cdxmill.jobs.launcher.hadoop_failure import Complaints

    logger = logging.getLogger("mrjob")
    level = logger.level
    try:
        logger.setLevel(before)
        logger.removeHandler(Complaints())
        assert logger.level == after
    finally:
        logger.setLevel(level)


def test_locks_are_renewed_by_each_line_and_an_empty_one_is_no_reason(
    heard: Complaints, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import hadoop_failure

    renewed: list[str] = []
    monkeypatch.setattr(hadoop_failure, "renew_held", lambda: renewed.append("renewed"))
    log = logging.getLogger("mrjob.hadoop")
    for text in ("the reason", " ", "STDERR: "):
        log.error(text)
    log.info(" map 5% reduce 0%")
    assert heard.lines == ["the reason"]
    assert len(renewed) == 4


@pytest.mark.parametrize(
    ("alias", "of_step", "of_client", "shown"),
    [
        ("hadoop", APPLICATION, "", APPLICATION),
        ("hadoop", "", APPLICATION, APPLICATION),
        ("hadoop", APPLICATION, "application_1_0002", APPLICATION),
        ("hadoop", "", "", ""),
        ("emr", APPLICATION, APPLICATION, ""),
    ],
)
def test_the_logs_of_the_application_are_looked_at_and_named(
    alias: str, of_step: str, of_client: str, shown: str, heard: Complaints, looked: list[str]
) -> None:
    from cdxmill.jobs.launcher.hadoop_failure import explain

    heard.application = of_client
    line = explain(Exception("x"), runner(alias, of_step), heard)
    more = f"; `yarn logs -applicationId {shown}` shows more" if shown else ""
    assert line == f"the job failed: x{more}"
    assert looked == ([shown] if shown else [])


def test_logs_are_not_read_if_hadoop_says_why_the_job_ended(heard: Complaints, looked: list[str]) -> None:
    from cdxmill.jobs.launcher.hadoop_failure import explain

    logging.getLogger("mrjob.hadoop").info(ENDED)
    line = explain(Exception("x"), runner(), heard)
    assert line.startswith("the job failed: Job setup failed; ")
    assert looked == []


@pytest.mark.parametrize(
    ("failures", "first"),
    [
        ([], {}),
        ([{}], {}),
        ([{}, FULL], FULL),
        ([KILLED, FULL], FULL),
        ([KILLED], {}),
        ([java(NO_REASON), FULL], FULL),
        ([java(NO_REASON)], java(NO_REASON)),
        ([task(f"cdxmill: {NO_REASON}"), FULL], task(f"cdxmill: {NO_REASON}")),
        ([task("cdxmill: a"), task("cdxmill: b")], task("cdxmill: a")),
    ],
)
def test_the_first_failure_with_a_reason_of_its_own_counts(
    failures: list[dict[str, Any]], first: dict[str, Any]
) -> None:
    from cdxmill.jobs.launcher.hadoop_failure import _first

    assert _first(failures) == first


def test_the_logs_of_the_first_tasks_are_read_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first container is that of the master, which runs no task."""
    from cdxmill.jobs.launcher import hadoop_failure

    names = [f"container_1_0001_01_{number:06d}" for number in range(500, 0, -1)]
    seen: list[tuple[list[str], bool]] = []

    def interpret(_: object, logs: list[dict[str, str]], partial: bool) -> dict[str, object]:
        seen.append(([log["container_id"] for log in logs], partial))
        return {"errors": [{"container_id": "b"}, {"container_id": "a"}, {}]}

    monkeypatch.setattr(hadoop_failure, "task_logs", lambda *_: [{"container_id": name} for name in names])
    monkeypatch.setattr(hadoop_failure, "interpret_task_logs", interpret)
    found = hadoop_failure._failures_in_logs(runner(), APPLICATION)
    assert [error.get("container_id") for error in found] == [None, "a", "b"]
    assert seen == [(sorted(names)[1:401], False)]


@pytest.mark.parametrize(
    ("failure", "files"),
    [
        ({"split": {"path": "/a.gz"}}, ["/a.gz"]),
        ({"split": {"path": "Paths:/a.gz:0+9,/b.gz"}}, ["/a.gz", "/b.gz"]),
        ({"split": {"path": "/a.gz"}, **task("x")}, []),
        (task("x"), []),
        ({}, []),
    ],
)
def test_inputs_are_named_if_the_task_itself_said_nothing(failure: dict[str, Any], files: list[str]) -> None:
    from cdxmill.jobs.launcher.hadoop_failure import _inputs

    assert _inputs(failure) == files


@pytest.mark.parametrize(
    ("number", "shown"), [(1, "0"), (5, "0, 1, 2, 3, 4"), (6, "0, 1, 2, 3, 4 and 1 more")]
)
def test_five_files_are_named(number: int, shown: str) -> None:
    from cdxmill.jobs.launcher.hadoop_failure import _some

    assert _some([str(one) for one in range(number)]) == shown
