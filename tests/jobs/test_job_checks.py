"""What is wrong with the settings of a job is one line with what to do, before anything is uploaded."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

from cdxmill.errors import StoppedError, UsageError
from cdxmill.running.failures import Failure


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


@pytest.mark.parametrize(
    ("text", "archives", "most"),
    [("0", 9, 0), ("3", 1, 3), ("1%", 99, 0), ("1%", 100, 1), ("50%", 3, 1), ("100%", 7, 7)],
)
def test_a_percentage_of_the_archives_is_rounded_down(text: str, archives: int, most: int) -> None:
    from cdxmill.jobs.archive_job import parse_limit

    assert parse_limit(text).of(archives) == most


@pytest.mark.parametrize(
    ("listed", "inside", "total"), [(1, 0, 2), (1, 4, 5), (3, 0, 3)], ids=["unknown", "in a WACZ", "listed"]
)
def test_archives_that_failed_are_among_those_that_are_counted(
    listed: int, inside: int, total: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A WACZ that cannot be opened has an unknown number of archives."""
    from cdxmill.jobs.archive_job import counted
    from cdxmill.jobs.count_job import CountJob
    from cdxmill.jobs.nodes.wacz_work import COUNTER

    job = CountJob(["--no-conf", "--max-failures", "100%", "list"])
    job.total = listed
    for name in "ab":
        job.failures.report(Failure(f"{name}.warc.gz", None, "is corrupt"))
    found: Any = SimpleNamespace(counters=lambda: [{"cdxmill": {COUNTER: inside}}, {"mrjob": {COUNTER: 9}}])
    assert counted(found, COUNTER) == inside
    assert job.status_of(found, "counted", ", 1 note") == 0
    told = f"{total - 2} of {total} archives counted, 2 with failures, 1 note\n"
    assert capsys.readouterr().err.endswith(told)


def test_yarn_is_the_command_beside_hadoop(
    yarn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher.earlier_runs import yarn_command

    (tmp_path / "hadoop").write_text("#!/bin/sh\n")
    (tmp_path / "hadoop").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert yarn_command(runner("hadoop")) == str(yarn)
    yarn.unlink()
    assert yarn_command(runner("hadoop")) == "yarn"
    assert yarn_command(runner("hadoop", str(tmp_path / "absent/hadoop"))) == "yarn"


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


def test_a_wheel_that_is_corrupt_is_not_sent_to_the_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The compressor is needed; without urllib3 tasks are slower."""
    from cdxmill.jobs.launcher import node_archive

    monkeypatch.setenv("CDXMILL_NODE_WHEELS", str(tmp_path))
    for library, tag, machine in node_archive._WHEELS:
        name, python = library.replace("-", "_").replace("==", "-"), node_archive._PYTHON[tag][1]
        (tmp_path / f"{name}-{python}-{tag}-any_{machine}.whl").write_bytes(b"not this one")
    told = r"is missing or corrupt; put it there \(pip download zlib-ng.*\), or use --compressor zlib$"
    with pytest.raises(UsageError, match=told):
        node_archive.pack_archive(tmp_path, [node_archive.ZLIB_NG])
    with ZipFile(node_archive.pack_archive(tmp_path, [node_archive.URLLIB3])) as packed:
        assert not [name for name in packed.namelist() if name.startswith("wheels")]
    error = capsys.readouterr().err
    assert "; without it, tasks use hadoop fs instead of WebHDFS, which takes longer\n" in error


@pytest.fixture
def yarn(tmp_path: Path) -> Path:
    """A command beside `hadoop`, which writes down how it is called."""
    path = tmp_path / "yarn"
    path.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\nexit 0\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("reason", [KeyboardInterrupt, SystemExit, StoppedError, ValueError])
def test_an_interrupted_job_ends_its_application(
    reason: type[BaseException], yarn: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other errors are those of the application itself, which has ended then."""
    from cdxmill.jobs.launcher.stream_job import _ending_its_application

    complaints: Any = SimpleNamespace(application="application_1_0001")

    def ends(alias: str, hadoop: Path) -> str:
        with pytest.raises(reason), _ending_its_application(runner(alias, str(hadoop)), complaints):
            raise reason("a")
        return capsys.readouterr().err

    asked = yarn.with_name("asked")
    told, is_ended = ends("hadoop", yarn.with_name("hadoop")), reason is not ValueError
    assert told == ("ending application_1_0001\n" if is_ended else "")
    assert asked.exists() == is_ended
    if is_ended:
        assert asked.read_text() == "application -kill application_1_0001\n"
        yarn.write_text("#!/bin/sh\nexit 1\n")
        assert "could not be ended; use `yarn application -kill" in ends("hadoop", yarn.with_name("hadoop"))
        yarn.write_text("#!/no/such/program\n")
        assert "could not be ended" in ends("hadoop", yarn.with_name("hadoop"))
    assert ends("local", yarn.with_name("hadoop")) == ""
    complaints.application = ""  # it was interrupted before there was one
    assert ends("hadoop", yarn.with_name("hadoop")) == ""


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (UsageError("no input"), 2, "no input"),
        (ValueError("of mrjob"), 3, "ValueError: of mrjob"),
        (OSError("disk"), 3, "disk"),
    ],
)
def test_how_a_job_fails_is_its_exit_status(
    error: BaseException, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.launcher.stream_job import launch

    def run_all() -> int:
        raise error

    job: Any = SimpleNamespace(complaints=None, held=nullcontext(), run_all=run_all, is_on_hadoop=False)
    assert launch(job) == status
    assert capsys.readouterr().err.endswith(f"{text}\n")


def test_what_still_runs_is_unknown_if_yarn_cannot_be_asked(
    yarn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import earlier_runs
    from cdxmill.jobs.launcher.earlier_runs import applications_of

    hadoop = str(yarn.with_name("hadoop"))
    assert applications_of(["a", "b"], runner("hadoop", hadoop)) == []
    states = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
    asked = f"application -list -appStates {states} -appTags cdxmill-a,cdxmill-b\n"
    assert yarn.with_name("asked").read_text() == asked
    assert applications_of(["a"], runner("emr", hadoop)) is None
    yarn.write_text("#!/bin/sh\nexit 1\n")
    assert applications_of(["a"], runner("hadoop", hadoop)) is None
    yarn.write_text("#!/no/such/program\n")
    assert applications_of(["a"], runner("hadoop", hadoop)) is None
    yarn.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(earlier_runs, "_TIMEOUT", 0.05)
    assert applications_of(["a"], runner("hadoop", hadoop)) is None, "it does not answer"


def test_names_of_applications_have_any_bytes(yarn: Path) -> None:
    from cdxmill.jobs.launcher.earlier_runs import applications_of

    rows = r"application_17_0002\tmy \377 job\napplication_17_0003\tcdxmill\n"
    yarn.write_text(f"#!/bin/sh\nprintf '{rows}'\n")
    found = applications_of(["a"], runner("hadoop", str(yarn.with_name("hadoop"))))
    assert found == ["application_17_0002", "application_17_0003"]


def test_keys_for_s3_are_in_a_file_that_nobody_else_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher.hadoop_step import keys_file

    names = (
        "ACCESS_KEY_ID",
        "SECRET_ACCESS_KEY",
        "SESSION_TOKEN",
        "REGION",
        "DEFAULT_REGION",
        "ENDPOINT_URL",
    )
    settings = {f"AWS_{name}": f"my {name}" for name in (*names, "ENDPOINT_URL_S3")}
    for name, value in {**settings, "AWS_PROFILE": "of this machine"}.items():
        monkeypatch.setenv(name, value)
    assert keys_file("hdfs:///c /local", tmp_path) is None
    for text in ("s3://b/c", "x s3a://b/c"):
        path = keys_file(text, tmp_path)
        assert path is not None
        assert path.stat().st_mode & 0o777 == 0o600
        assert json.loads(path.read_text()) == settings
        path.unlink()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    assert keys_file("s3://b/c", tmp_path) is None


def test_a_wheel_for_the_nodes_is_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """By pip, which gets it from the wheels that other tests have fetched."""
    from cdxmill.jobs.launcher.node_archive import DEFLATE, URLLIB3, _wheel

    known = [_wheel(DEFLATE, "abi3", "aarch64"), _wheel(URLLIB3, "none", "any")]
    monkeypatch.setenv("CDXMILL_NODE_WHEELS", str(tmp_path / "new/wheels"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(known[0].parent))
    found = [_wheel(DEFLATE, "abi3", "aarch64"), _wheel(URLLIB3, "none", "any")]
    assert [path.parent for path in found] == [tmp_path / "new/wheels"] * 2
    assert [path.read_bytes() for path in found] == [path.read_bytes() for path in known]
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert _wheel(URLLIB3, "none", "any") == found[1]
    capfd.readouterr()
    with pytest.raises(UsageError, match=r"for nodes with Python 3\.9 \(x86_64\) is missing or corrupt"):
        _wheel(DEFLATE, "cp39", "x86_64")
    said = capfd.readouterr()
    assert ("deflate==0.8.1" in said.err, said.out) == (True, "")
