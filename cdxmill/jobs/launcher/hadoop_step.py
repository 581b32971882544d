"""A job on Hadoop or EMR: one streaming step whose tasks are commands.

The nodes need no mrjob. A mapper or reducer is hadoop_task.py in the archive that is sent with the job (see `node_archive`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from cdxmill.errors import UsageError
from cdxmill.jobs.launcher.hadoop_directory import is_url
from cdxmill.jobs.launcher.mrjob_parts import RunnerArguments, RunnerLike, settings_of, uploaded
from cdxmill.jobs.launcher.node_archive import DEFLATE, NAME, URLLIB3, ZLIB_NG
from cdxmill.version import install_extra

RUNNERS = ("hadoop", "emr")

_S3_SETTINGS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)
KEYS = "cdxmill_keys.json"
"""Name of the file with these settings, in the working directory of a task; only the user of the job can read it."""
_WORK_LIST = "work.jsonl"
_QUICK_START = {
    f"mapreduce.{kind}.env.JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1" for kind in ("map", "reduce")
}
"""Java's quick compiler only: a task's JVM moves bytes for seconds. The better compiler would cost more than it saves."""
_PATIENT = {"dfs.client.max.block.acquire.failures": "10"}
"""How often Java asks for a block of HDFS of which no data node runs: for 2 to 5 minutes, as cdxmill does. By default it
gives up after 9 to 27 seconds, four attempts fail one after the other, and the job ends: each reads its part of the work list."""
_PLAIN = {"mapreduce.output.fileoutputformat.compress": "false"}
"""The launcher reads what the tasks write. Many a cluster compresses that by default, in ways that mrjob cannot read."""

_INPUT_SETTINGS = {
    "stream.map.input.ignoreKey": "true",
    "mapreduce.input.lineinputformat.linespermap": "1",
}
"""Each mapper gets one line of the work list, if the step says nothing else."""

WorkList = list[dict[str, Any]]


class HadoopStep(NamedTuple):
    """A step as a job describes it. `mapper` and `reducer` are the arguments of hadoop_task.py.

    `inputs` is the work list: JSON objects. Files of this machine in their `paths` are sent to the cluster.
    `settings` are fixed. `defaults` can be changed by mrjob.conf and --jobconf. `files` are put
    into the working directory of each task, under the names given. `shared` files are uploaded
    for Java; the setting of the given name gets the URL.
    """

    inputs: WorkList
    mapper: list[str]
    reducer: list[str] | None
    settings: dict[str, str]
    defaults: dict[str, str]
    output_format: str | None = None
    partitioner: str | None = None
    output_dir: str | None = None
    files: Mapping[str, Path] = MappingProxyType({})
    shared: Mapping[str, Path] = MappingProxyType({})


def check_engine(runner: RunnerLike) -> None:
    """Raise UsageError if the job cannot be submitted from this machine."""
    if runner.alias == "emr":
        _check_credentials()
        return
    hadoop = runner.get_hadoop_bin()
    if shutil.which(hadoop[0]) is None:
        raise UsageError("no hadoop command found; set HADOOP_HOME, or put hadoop on the PATH")
    if not runner.get_hadoop_streaming_jar():
        raise UsageError(
            "no hadoop-streaming jar found; set HADOOP_HOME, or give it with --hadoop-streaming-jar"
        )


def _check_credentials() -> None:
    try:
        import boto3  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(f"boto3 is not installed; -r emr needs it: {install_extra('s3')}") from None
    if boto3.Session().get_credentials() is None:
        raise UsageError(
            "no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        )


def runner_arguments(
    step: HadoopStep, python: list[str], archive: Path, arguments: RunnerArguments
) -> RunnerArguments:
    """The arguments of a runner that runs `step`, made from the job's own `arguments`."""
    return {
        **arguments,
        "input_paths": [str(archive.with_name(_WORK_LIST))],
        "output_dir": step.output_dir,
        "steps": [_describe(step, python)],
        "hadoop_input_format": "org.apache.hadoop.mapred.lib.NLineInputFormat",
        "hadoop_output_format": step.output_format,
        "partitioner": step.partitioner,
        "jobconf": {**arguments.get("jobconf", {}), **_INPUT_SETTINGS, **step.settings},
        "upload_files": [
            *arguments.get("upload_files", ()),
            *(f"{path}#{name}" for name, path in step.files.items()),
        ],
        "upload_archives": [*arguments.get("upload_archives", ()), f"{archive}#{NAME}"],
        "extra_args": [],
        "bootstrap_mrjob": False,
        "check_input_paths": False,  # it would start a JVM per path
    }


def keys_file(text: str, directory: Path) -> Path | None:
    """Write the settings for S3 of this machine to a file for the tasks, if `text` has an S3 URL. None if it has not.

    In the options of the job, every user of the cluster could read the keys.
    """
    keys = {name: os.environ[name] for name in _S3_SETTINGS if os.environ.get(name)}
    if not keys or not re.search(r"\bs3a?://", text):
        return None
    path = directory / KEYS
    path.touch(0o600)
    path.write_text(json.dumps(keys))
    return path


def libraries_of(step: HadoopStep) -> list[str]:
    """The libraries of the step's tasks, as pip names them. For the tasks that sample and sort, nodes need to have none."""
    is_bare = step.mapper[0] in ("sample", "chunks")
    compressors = {"zlib-ng": ZLIB_NG, "libdeflate": DEFLATE}
    used = [library for name, library in compressors.items() if name in (step.reducer or ())]
    return [URLLIB3] * is_bare + used


def add_files(runner: RunnerLike, step: HadoopStep, directory: Path) -> None:
    """Upload inputs of this machine and the shared files, and set what neither mrjob.conf nor --jobconf has set."""
    work = [_uploaded(item, runner) for item in step.inputs]
    (directory / _WORK_LIST).write_text("".join(json.dumps(item) + "\n" for item in work))
    settings = settings_of(runner)
    settings.update((name, uploaded(runner, str(path))) for name, path in step.shared.items())
    for name, value in {**_QUICK_START, **_PATIENT, **_PLAIN, **step.defaults}.items():
        settings.setdefault(name, value)


def _uploaded(item: dict[str, Any], runner: RunnerLike) -> dict[str, Any]:
    if "paths" not in item:
        return item
    paths = [path if is_url(path) else uploaded(runner, path) for path in item["paths"]]
    return {**item, "paths": paths}


def _describe(step: HadoopStep, python: list[str]) -> dict[str, object]:
    """The step as mrjob describes steps to its runners."""
    commands = {
        kind: {"type": "command", "command": [*python, f"{NAME}/hadoop_task.py", *task]}
        for kind, task in (("mapper", step.mapper), ("reducer", step.reducer))
        if task is not None
    }
    return {"type": "streaming", "jobconf": {}, "input_manifest": False, **commands}
