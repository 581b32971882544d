"""A job on Hadoop or EMR: one streaming step of commands, and the archive that its tasks start from.

The nodes need no mrjob: a mapper or reducer is a Java class, or hadoop_task.py of the archive.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.errors import UsageError
from cdxmill.jobs.node_archive import NAME

RUNNERS = ("hadoop", "emr")

_QUICK_START = {
    f"mapreduce.{kind}.env.JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1" for kind in ("map", "reduce")
}
"""A task's Java starts, moves bytes and ends: the better compiler would cost more than it wins."""

Command = str | list[str]


class HadoopStep(NamedTuple):
    """What a job asks of Hadoop.

    `mapper` and `reducer` are Java classes or, as lists, arguments of hadoop_task.py. `settings`
    must be as they are; `defaults` give way to mrjob.conf and --jobconf. `files` lie in the
    working folder of each task, by the names given; `shared` ones go to where Java finds them,
    and a setting of the name given says where that is.
    """

    inputs: list[str]
    mapper: Command
    reducer: Command | None
    settings: dict[str, str]
    defaults: dict[str, str]
    input_format: str
    output_format: str | None = None
    partitioner: str | None = None
    output_dir: str | None = None
    files: dict[str, Path] = {}  # noqa: RUF012 - never changed
    shared: dict[str, Path] = {}  # noqa: RUF012 - never changed


def check_engine(runner: Any) -> None:
    """Raise UsageError where the job could not even be submitted."""
    if runner.alias == "emr":
        _check_credentials()
        return
    hadoop = runner.get_hadoop_bin()
    if shutil.which(hadoop[0]) is None:
        raise UsageError("no Hadoop is here: set HADOOP_HOME, or put the hadoop command on PATH")
    if not runner.get_hadoop_streaming_jar():
        raise UsageError(
            "no hadoop-streaming jar was found: set HADOOP_HOME, or name it by --hadoop-streaming-jar"
        )


def _check_credentials() -> None:
    try:
        import boto3  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError("-r emr needs boto3: pip install 'cdxmill[s3]'") from None
    if boto3.Session().get_credentials() is None:
        raise UsageError(
            "no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        )


def step_kwargs(step: HadoopStep, python: list[str], archive: Path, given: dict[str, Any]) -> dict[str, Any]:
    """mrjob's arguments for a runner that runs `step`, from those `given` for the job."""
    return {
        **given,
        "input_paths": step.inputs,
        "output_dir": step.output_dir,
        "steps": [_describe(step, python)],
        "hadoop_input_format": step.input_format,
        "hadoop_output_format": step.output_format,
        "partitioner": step.partitioner,
        "jobconf": {**given.get("jobconf", {}), **step.settings},
        "upload_files": [
            *given.get("upload_files", ()),
            *(f"{path}#{name}" for name, path in step.files.items()),
        ],
        "upload_archives": [*given.get("upload_archives", ()), f"{archive}#{NAME}"],
        "extra_args": [],
        "bootstrap_mrjob": False,
        "check_input_paths": False,  # a JVM for each
    }


def needs_wheels(step: HadoopStep) -> bool:
    """Whether a task packs blocks with a library that nodes do not have."""
    return isinstance(step.reducer, list) and "libdeflate" in step.reducer


def complete_settings(runner: Any, step: HadoopStep) -> None:
    """Settings that nobody has made, and where the shared files are."""
    settings = runner._opts["jobconf"]
    settings.update((name, runner._upload_mgr.add(str(path))) for name, path in step.shared.items())
    for name, value in {**_QUICK_START, **step.defaults}.items():
        settings.setdefault(name, value)


def _describe(step: HadoopStep, python: list[str]) -> dict[str, Any]:
    tasks = {"mapper": step.mapper, "reducer": step.reducer}
    commands = {
        kind: {"type": "command", "command": task if isinstance(task, str) else _command(task, python)}
        for kind, task in tasks.items()
        if task is not None
    }
    return {"type": "streaming", "jobconf": {}, "input_manifest": False, **commands}


def _command(task: list[str], python: list[str]) -> list[str]:
    return [*python, f"{NAME}/hadoop_task.py", *task]


def is_url(path: str) -> bool:
    """Whether `path` is no path of this machine."""
    return "://" in path
