"""jobs/launcher/stream_job.py: how a job ends, its work list for a local runner, and its temporary files in HDFS."""

from __future__ import annotations

import json
import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.jobs.count_job import CountJob


class Tags(CountJob):
    """A job."""

    what = "tags"


def errors() -> list[tuple[Exception, str]]:
    from cdxmill.jobs.launcher.hadoop_failure import WrongPythonError
    from cdxmill.jobs.launcher.mrjob_parts import StepFailedException

    return [
        (WrongPythonError("no Python"), "no Python"),
        (OSError("no disk"), "no disk"),
        (StepFailedException("no step"), "no step"),
        (
            subprocess.CalledProcessError(2, ["hadoop", "secret=1"]),
            "the command returned non-zero exit status 2.",
        ),
    ]


@pytest.mark.parametrize("is_on_hadoop", [False, True])
@pytest.mark.parametrize("number", range(4))
def test_a_failure_on_hadoop_is_explained_and_no_command_is_shown(
    number: int,
    is_on_hadoop: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from cdxmill.jobs.launcher import stream_job

    error, text = errors()[number]

    def fail() -> int:
        raise error

    explained: list[object] = []

    def explain(*given: object) -> str:
        explained.append(given)
        return f"the reason is {error}"

    monkeypatch.setattr(stream_job, "explain", explain)
    job: Any = SimpleNamespace(
        complaints="heard", held=nullcontext(), run_all=fail, is_on_hadoop=is_on_hadoop, runner="runner"
    )
    assert stream_job.launch(job) == 3
    assert explained == ([(error, "runner", "heard")] if is_on_hadoop else [])
    said = capsys.readouterr().err
    assert text in said
    assert ("the reason is" in said) == is_on_hadoop
    assert "secret" not in said


@pytest.mark.parametrize(
    ("alias", "cleanup", "places"),
    [
        ("emr", ["NONE"], {}),
        ("local", ["NONE"], {}),
        (
            "hadoop",
            ["NONE"],
            {"hadoop_tmp_dir": "hdfs:///t", "cleanup_on_failure": ["HADOOP_TMP", "LOCAL_TMP"]},
        ),
        ("hadoop", ["ALL"], {"hadoop_tmp_dir": "hdfs:///t"}),
    ],
)
def test_temporary_files_in_hdfs_are_removed_unless_the_user_says_otherwise(
    alias: str, cleanup: list[str], places: dict[str, object]
) -> None:
    from cdxmill.jobs.launcher.stream_job import _hadoop_places

    runner: Any = SimpleNamespace(alias=alias, _opts={"hadoop_tmp_dir": "/t", "cleanup_on_failure": cleanup})
    assert _hadoop_places(runner) == places


@pytest.mark.parametrize("items", [[], [{"a": 1}], [{"a": 1}, {"path": "x" * 99}, {}]])
def test_the_items_of_a_work_list_are_lines_of_one_length(
    items: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """mrjob splits its input by bytes: in that way, each mapper gets as many lines."""
    made: list[dict[str, Any]] = []
    job = Tags(["--no-conf", "-r", "local", "--jobconf", "a=b", "x"])
    monkeypatch.setattr(job, "_make", made.append)
    job.local_runner(items, "--more", "1", step_output_dir="/out")
    (given,) = made
    lines = given["stdin"].read().split(b"\n")
    assert [json.loads(line) for line in lines[:-1]] == items
    assert len({len(line) for line in lines[:-1]}) <= 1
    assert lines[-1] == b""
    assert given["extra_args"][-4:] == ["--launched-from", str(Path.cwd()), "--more", "1"]
    assert (given["input_paths"], given["bootstrap_mrjob"], given["step_output_dir"]) == (
        ["-"],
        False,
        "/out",
    )
