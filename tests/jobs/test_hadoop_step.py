"""jobs/launcher/hadoop_step.py: what a step gives to mrjob."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

OF_THE_USER = {
    "jobconf": {"a": "of the user", "u": "1"},
    "upload_files": ["mine#m"],
    "upload_archives": ["x.zip#x"],
    "kept": 1,
}
"""Arguments that a job has from its user."""


@pytest.mark.parametrize("reducer", [None, ["shard", "--cluster", "c"]])
def test_a_step_is_described_for_mrjob(reducer: list[str] | None, tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.hadoop_step import HadoopStep, runner_arguments

    step = HadoopStep(
        inputs=[],
        mapper=["chunks", "x"],
        reducer=reducer,
        settings={"mapreduce.input.lineinputformat.linespermap": "7", "a": "of the step"},
        defaults={"b": "not here"},
        output_format="Out",
        partitioner="Part",
        output_dir="hdfs:///out",
        files={"splits": tmp_path / "own"},
    )
    found = runner_arguments(step, ["python3", "-I"], tmp_path / "nodes.zip", OF_THE_USER)
    commands = {
        kind: {"type": "command", "command": ["python3", "-I", "cdxmill_nodes/hadoop_task.py", *words]}
        for kind, words in (("mapper", ["chunks", "x"]), ("reducer", reducer))
        if words
    }
    assert found == {
        "kept": 1,
        "input_paths": [str(tmp_path / "work.jsonl")],
        "output_dir": "hdfs:///out",
        "steps": [{"type": "streaming", "jobconf": {}, "input_manifest": False, **commands}],
        "hadoop_input_format": "org.apache.hadoop.mapred.lib.NLineInputFormat",
        "hadoop_output_format": "Out",
        "partitioner": "Part",
        "jobconf": {
            "a": "of the step",
            "u": "1",
            "stream.map.input.ignoreKey": "true",
            "mapreduce.input.lineinputformat.linespermap": "7",
        },
        "upload_files": ["mine#m", f"{tmp_path}/own#splits"],
        "upload_archives": ["x.zip#x", f"{tmp_path}/nodes.zip#cdxmill_nodes"],
        "extra_args": [],
        "bootstrap_mrjob": False,
        "check_input_paths": False,
    }


def test_a_step_may_have_no_files_and_settings_of_its_own(tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.hadoop_step import HadoopStep, runner_arguments

    archive = tmp_path / "nodes.zip"
    alone = runner_arguments(HadoopStep([], ["index"], None, {}, {}), ["python3"], archive, {})
    assert (alone["upload_files"], alone["upload_archives"]) == ([], [f"{archive}#cdxmill_nodes"])
    assert alone["jobconf"] == {
        "stream.map.input.ignoreKey": "true",
        "mapreduce.input.lineinputformat.linespermap": "1",
    }


def test_what_the_user_has_set_stays_and_files_of_this_machine_are_sent(tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList, add_files

    sent: list[str] = []

    def send(path: str) -> str:
        sent.append(path)
        return f"hdfs:///sent{path}"

    settings = {"b": "of the user"}
    runner: Any = SimpleNamespace(_opts={"jobconf": settings}, _upload_mgr=SimpleNamespace(add=send))
    inputs: WorkList = [{"paths": ["/a", "s3://b/c"], "n": 1}, {"archive": "/x"}]
    shared = {"partitions": Path("/p.seq")}
    step = HadoopStep(inputs, ["chunks"], None, {"s": "1"}, {"b": "default", "d": "default"}, shared=shared)
    add_files(runner, step, tmp_path)
    assert sent == ["/a", "/p.seq"]
    work = [json.loads(line) for line in (tmp_path / "work.jsonl").read_text().splitlines()]
    assert work == [{"paths": ["hdfs:///sent/a", "s3://b/c"], "n": 1}, {"archive": "/x"}]
    assert settings == {
        "b": "of the user",
        "d": "default",
        "partitions": "hdfs:///sent/p.seq",
        "mapreduce.map.env.JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        "mapreduce.reduce.env.JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        "dfs.client.max.block.acquire.failures": "10",
        "mapreduce.output.fileoutputformat.compress": "false",
    }
