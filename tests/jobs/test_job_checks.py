"""What is wrong with the settings of a job is one line with what to do, before anything is uploaded."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.errors import UsageError


def runner(alias: str, hadoop: str = "hadoop", jar: str | None = None, **settings: str) -> Any:
    return SimpleNamespace(
        alias=alias,
        get_hadoop_bin=lambda: [hadoop],
        get_hadoop_streaming_jar=lambda: jar,
        _opts={"jobconf": settings},
    )


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "%", "1%%", "\u0663"])
def test_a_limit_of_failures_is_a_number_or_a_percentage(text: str) -> None:
    from cdxmill.jobs.archive_job import parse_limit

    with pytest.raises(UsageError, match=f"^invalid --max-failures {text}: expected a number of archives"):
        parse_limit(text)


def test_on_emr_a_directory_is_a_url_or_a_bucket() -> None:
    from cdxmill.jobs.archive_job import directory_url

    assert directory_url("bucket", runner("emr")) == "s3://bucket"
    assert directory_url("s3://bucket/a", runner("emr")) == "s3://bucket/a"
    assert directory_url("some/where", runner("hadoop")).startswith("hdfs:")
    with pytest.raises(UsageError, match=r"^some/where: not a URL; on EMR a directory is s3://BUCKET/DIR"):
        directory_url("some/where", runner("emr"))


def test_on_emr_a_cluster_is_at_a_url() -> None:
    from cdxmill.jobs.launcher.zipnum_on_hadoop import ClusterOnHadoop

    build: Any = None  # the place is checked first
    with ExitStack() as holding, pytest.raises(UsageError, match=r"^C: not a URL; on EMR give --zipnum-dir"):
        ClusterOnHadoop("C", None, build, runner("emr"), holding)


def test_the_bytes_of_a_mapper_are_a_number() -> None:
    from cdxmill.jobs.launcher.hadoop_inputs import MAPPER_BYTES, SIZE_SETTING, bytes_per_mapper

    assert bytes_per_mapper(runner("hadoop")) == MAPPER_BYTES
    assert bytes_per_mapper(runner("hadoop", **{SIZE_SETTING: "7"})) == 7
    with pytest.raises(UsageError, match=f"^{SIZE_SETTING}: 64m is not a number of bytes"):
        bytes_per_mapper(runner("hadoop", **{SIZE_SETTING: "64m"}))


def test_a_machine_from_which_no_job_can_be_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher.hadoop_step import check_engine

    with pytest.raises(UsageError, match=r"^no hadoop command found; set HADOOP_HOME"):
        check_engine(runner("hadoop", str(tmp_path / "absent"), "x.jar"))
    with pytest.raises(UsageError, match=r"^no hadoop-streaming jar found; set HADOOP_HOME"):
        check_engine(runner("hadoop", sys.executable))
    check_engine(runner("hadoop", sys.executable, "x.jar"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(UsageError, match=r"^no AWS credentials found; set AWS_ACCESS_KEY_ID"):
        check_engine(runner("emr"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    check_engine(runner("emr"))
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(UsageError, match=r"^boto3 is not installed; -r emr needs it: pip install"):
        check_engine(runner("emr"))
