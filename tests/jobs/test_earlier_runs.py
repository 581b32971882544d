"""jobs/launcher/earlier_runs.py: what cannot be looked at is left as it is, and the job runs all the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.errors import InputError, StoppedError
from cdxmill.storage.hadoop import hdfs, pick
from cdxmill.storage.location import Location, locate
from tests.storage.name_node import name_node

PARENT = "hdfs:///tmp/mrjob"
RUNNER: Any = SimpleNamespace(alias="hadoop", _hadoop_tmp_dir=f"{PARENT}/mine/")


@pytest.fixture
def in_hdfs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory of an earlier run, and a file, beside the one of this run."""
    for made in (hdfs._client, pick._picked):
        made.cache_clear()
    with name_node() as node:
        monkeypatch.setenv("CDXMILL_WEBHDFS", node.address)
        node.put("/tmp/mrjob/earlier/files/work.jsonl", b"{}")
        node.put("/tmp/mrjob/notes.txt", b"mine")
        yield
    for made in (hdfs._client, pick._picked):
        made.cache_clear()


@pytest.mark.parametrize("error", [InputError("x", "refused"), StoppedError("refused")])
def test_a_job_runs_if_what_others_left_cannot_be_looked_at(
    error: Exception, in_hdfs: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.launcher import earlier_runs

    def fail(place: Location) -> None:
        raise error

    monkeypatch.setattr(earlier_runs, "killed_run", fail)
    with ExitStack() as holding:
        earlier_runs.own_temporary_directory(RUNNER, holding)
        assert locate(f"{PARENT}/mine/.lock").exists()
    said = capsys.readouterr().err
    assert said.startswith("note: temporary files of earlier runs are not deleted: ")
    assert "refused" in said


def test_only_directories_may_be_of_a_run(in_hdfs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdxmill.jobs.launcher import earlier_runs

    asked: list[str] = []
    monkeypatch.setattr(earlier_runs, "killed_run", lambda place: asked.append(place.name))
    with ExitStack() as holding:
        earlier_runs.own_temporary_directory(RUNNER, holding)
    assert asked == ["earlier"]
