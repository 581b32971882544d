"""jobs/launcher/stream_job.py: how a job ends, its work list for a local runner, and its temporary files in HDFS."""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.errors import UsageError
from cdxmill.jobs.count_job import CountJob


class Tags(CountJob):
    """A job."""

    what = "tags"


def noting(done: list[Any], result: object, what: object = None) -> Callable[[object], object]:
    """A function that notes what it is given, or `what`, and returns the result."""

    def noted(given: object) -> object:
        done.append(given if what is None else what)
        return result

    return noted


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


@pytest.mark.parametrize(
    ("options", "shown"),
    [([], b"counts"), (["--output-dir", "x"], b""), (["--output-dir", "x", "--cat-output"], b"counts")],
)
def test_counts_are_printed_unless_they_are_in_a_directory(options: list[str], shown: bytes) -> None:
    job = Tags(["--no-conf", "-r", "inline", *options, "x"])
    output = BytesIO()
    job.sandbox(stdout=output)
    job.show(b"counts")
    assert output.getvalue() == shown


@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_quiet_job_says_nothing(is_quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    job = Tags(["--no-conf", *(["-q"] if is_quiet else []), "x"])
    job.tell("2 archives")
    assert capsys.readouterr().err == ("" if is_quiet else "2 archives\n")


@pytest.mark.parametrize("status", [0, 1, 3])
@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_job_exits_with_its_status(status: int, is_quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdxmill.jobs.launcher import stream_job

    done: list[object] = []
    job = Tags(["--no-conf", "-q" if is_quiet else "-v", "x"])
    monkeypatch.setattr(
        job, "set_up_logging", lambda quiet, verbose: done.append((bool(quiet), bool(verbose)))
    )
    monkeypatch.setattr(stream_job, "exit_on_signals", lambda: done.append("signals"))
    monkeypatch.setattr(stream_job, "launch", noting(done, status))
    with pytest.raises(SystemExit) if status else nullcontext() as caught:
        job.run_job()
    assert done == [(is_quiet, not is_quiet), "signals", job]
    assert caught is None or caught.value.code == status


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["-r", "inline", "x"], ""),
        (["-r", "local", "x"], ""),
        (["-r", "hadoop", "x"], ""),
        (["-r", "emr", "x"], ""),
        (["x"], ""),
        (["-r", "spark", "x"], "unsupported runner spark; use -r local, inline, hadoop or emr"),
        (["-r", "inline"], "no input; give at least one path or URL"),
    ],
)
def test_a_job_needs_a_runner_and_inputs(options: list[str], reason: str) -> None:
    job = Tags(["--no-conf", *options])
    with pytest.raises(UsageError, match=f"^{reason}$") if reason else nullcontext():
        job.check()
    assert job.is_on_hadoop == (options[1:2] in (["hadoop"], ["emr"]))


def test_the_settings_of_mrjob_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    from cdxmill.jobs.launcher import stream_job

    checked: list[tuple[object, ...]] = []
    monkeypatch.setattr(stream_job, "check_conf", lambda *given: checked.append(given))
    for options in (["-r", "hadoop"], []):
        Tags(["--no-conf", *options, "x"]).check()
    assert checked == [("hadoop", []), ("inline", [])]


@pytest.mark.parametrize("scratch", [None, "/scratch"])
def test_a_mapper_works_where_the_job_was_started(
    scratch: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    job = Tags(["--no-conf", "--launched-from", str(tmp_path), "x"])
    run = job.mapper_run(scratch)
    assert Path.cwd() == tmp_path
    assert run.directory == Path(scratch or tmp_path / "own")
    assert job.reducer_run().directory == Path()


def test_what_is_held_ends_with_the_run() -> None:
    """Also if a runner cannot be made."""
    job, done = Tags(["--no-conf", "x"]), list[str]()

    def make() -> None:
        job._held_by_run.callback(done.append, "ended")
        raise UsageError("no")

    job.make_runner = make  # type: ignore[method-assign,assignment]
    with pytest.raises(UsageError, match="no"), job.ran():
        raise AssertionError
    assert done == ["ended"]


@pytest.mark.parametrize("runner", ["local", "hadoop"])
def test_a_runner_is_made_after_the_checks(runner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job, done = Tags(["--no-conf", "-r", runner, "x"]), list[object]()
    monkeypatch.setattr(job, "check", lambda: done.append("checked"))
    monkeypatch.setattr(job, "list_work", lambda: ["work"])
    monkeypatch.setattr(job, "local_runner", lambda work: done.append(work))
    monkeypatch.setattr(job, "_hadoop_runner", lambda: done.append("hadoop"))
    job.make_runner()
    assert done == ["checked", "hadoop" if runner == "hadoop" else ["work"]]


STEPS = (
    "arguments_of",
    "check_engine",
    "use_storage",
    "hadoop_step",
    "keys_file",
    "libraries_of",
    "pack_archive",
    "python_of",
    "use_storage",
    "add_files",
    "tag_application",
    "own_temporary_directory",
)
"""What is done before a job runs on Hadoop, in its order."""


def named(name: str, done: list[tuple[Any, ...]], result: object) -> Callable[..., object]:
    """A function that notes its name and what it is given, without paths."""

    def noted(*given: Any) -> object:
        done.append((name, *[getattr(one, "name", one) for one in given if not isinstance(one, Path)]))
        return result

    return noted


@pytest.mark.parametrize("alias", ["hadoop", "emr"])
@pytest.mark.parametrize("has_keys", [False, True])
def test_a_job_is_checked_before_it_is_sent(
    alias: str, has_keys: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import stream_job
    from cdxmill.jobs.launcher.hadoop_step import KEYS, HadoopStep

    job, done = Tags(["--no-conf", "-r", alias, "x"]), list[tuple[Any, ...]]()
    first, second = (
        SimpleNamespace(alias=alias, name=name, _opts={"hadoop_tmp_dir": "/t", "cleanup_on_failure": ["ALL"]})
        for name in ("first", "second")
    )
    step = HadoopStep([], ["index"], None, {}, {}, files={"own": tmp_path / "own"})
    archive = tmp_path / "nodes.zip"

    results = {
        "keys_file": tmp_path / "keys" if has_keys else None,
        "pack_archive": archive,
        "libraries_of": ["a library"],
        "python_of": ["python3"],
        "arguments_of": {"of": "the job"},
        "hadoop_step": step,
    }
    for name in sorted(set(STEPS)):
        place = job if name == "hadoop_step" else stream_job
        monkeypatch.setattr(place, name, named(name, done, results.get(name)))
    monkeypatch.setattr(stream_job, "runner_arguments", lambda found, *given: {"step": found, "given": given})
    monkeypatch.setattr(job, "first_runner", lambda: first)
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(job, "_make", noting(made, second))
    with job._held_by_run:
        assert job._hadoop_runner() is second
    (given,) = made
    keys = {KEYS: tmp_path / "keys"} if has_keys and alias == "hadoop" else {}
    sent = step._replace(files={"own": tmp_path / "own", **keys})
    places = {"hadoop_tmp_dir": "hdfs:///t"} if alias == "hadoop" else {}
    assert given == {"step": sent, "given": (["python3"], archive, {"of": "the job", **places})}
    assert all("index" in words[0] for name, *words in done if name == "keys_file")
    of_hadoop = ("keys_file", "own_temporary_directory")
    assert [call[0] for call in done] == [one for one in STEPS if alias == "hadoop" or one not in of_hadoop]
    assert [call[1] for call in done if call[0] == "use_storage"] == ["first", "second"]


def test_a_job_runs_and_is_finished_with_its_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    job, done = Tags(["--no-conf", "x"]), list[str]()

    class Runner:
        alias = "local"

        def __enter__(self) -> Runner:
            return self

        def __exit__(self, *_: object) -> None:
            done.append("removed")

        def run(self) -> None:
            """Note it."""
            done.append("ran")

    runner: Any = Runner()
    monkeypatch.setattr(job, "make_runner", lambda: runner)
    monkeypatch.setattr(job, "finish", noting(done, 7, "finished"))
    assert job.run_all() == 7
    assert job.runner is runner
    assert done == ["ran", "finished", "removed"]


@pytest.mark.parametrize(("task", "status"), [("", 130), ("subprocess failed with code 41", 3)])
def test_an_interrupted_job_ends_what_it_has_started(
    task: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its application would go on, and write to the output later. One whose Python is too old ends at its first task."""
    from cdxmill.jobs.launcher.stream_job import launch

    (tmp_path / "yarn").write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\n')
    (tmp_path / "yarn").chmod(0o755)

    class Runner:
        alias = "hadoop"

        def __enter__(self) -> Runner:
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing to remove."""

        def get_hadoop_bin(self) -> list[str]:
            return [str(tmp_path / "hadoop")]

        def run(self) -> None:
            log = logging.getLogger("mrjob.hadoop")
            log.info("Submitted application application_1_0001")
            log.info(
                f"Task Id : attempt_1_0001_m_000000_0, Status : FAILED\nError: {task}" if task else "map 0%"
            )
            raise KeyboardInterrupt

    job = Tags(["--no-conf", "-q", "x"])
    monkeypatch.setattr(job, "make_runner", Runner)
    assert launch(job) == status
    logging.getLogger("mrjob").removeHandler(job.complaints)
    assert (tmp_path / "asked").read_text() == "application -kill application_1_0001\n"
    assert "ending application_1_0001\n" in capsys.readouterr().err


def test_a_second_interrupt_does_not_end_what_ends_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    from cdxmill.jobs.launcher import stream_job

    asked: list[tuple[list[str], object]] = []

    def run(command: list[str], **how: object) -> object:
        asked.append((command, how["start_new_session"]))
        return SimpleNamespace(returncode=0)

    fake = SimpleNamespace(run=run, DEVNULL=None)
    monkeypatch.setattr(stream_job, "subprocess", fake)
    monkeypatch.setattr(stream_job, "yarn_command", lambda _: "yarn")
    runner: Any = None
    stream_job._kill(runner, "application_1_0001")
    assert asked == [(["yarn", "application", "-kill", "application_1_0001"], True)]
