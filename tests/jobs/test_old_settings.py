"""A mrjob.conf of 2015 is refused before anything starts. mrjob ignores its settings, and would start another cluster."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from cdxmill.errors import UsageError
from cdxmill.jobs.launcher.mrjob_parts import runner_class
from cdxmill.jobs.launcher.old_settings import NOW, check_conf, main
from tests.jobs.conftest import RunJob

OLD = """runners:
  emr:
    aws_region: eu-west-1
    emr_job_flow_id: j-CLUSTERID
    ami_version: 3.1.4
    num_ec2_core_instances: 2
    ec2_task_instance_bid_price:
  local:
    num_core: 2
"""
REFUSED = (
    "settings that mrjob does not know: ami_version (now release_label), aws_region (now region), "
    "emr_job_flow_id (now cluster_id), num_ec2_core_instances (now num_core_instances); rename or remove them"
)


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "mrjob.conf"
    path.write_text(OLD)
    return path


@pytest.mark.parametrize("name", ["indexwarcsjob", "samplecdxjob", "dosample", "zipnumclusterjob"])
def test_every_job_refuses_the_settings_of_2015_in_one_line(
    name: str, conf: Path, tmp_path: Path, run_script: RunJob
) -> None:
    (tmp_path / "warcs.txt").write_text("s3://bucket/a.warc.gz\n")
    own = {"indexwarcsjob": ["--cdx_bucket", "s3://b/cdx"], "zipnumclusterjob": ["--zipnum-dir", "s3://b/c"]}
    done = run_script(
        f"jobs/{name}.py", "-q", "-r", "emr", "-c", conf, *own.get(name, []), "warcs.txt", cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"{conf}: {REFUSED} (mrjob would ignore them)\n"


def test_settings_of_an_included_file_are_checked(conf: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.conf"
    own.write_text("include: mrjob.conf\nrunners: {emr: {region: us-east-1}}\n")
    with pytest.raises(UsageError, match="aws_region"):
        check_conf("emr", [str(own)])


def test_a_setting_that_never_existed_is_refused_too(conf: Path) -> None:
    with pytest.raises(UsageError, match=r": settings that mrjob does not know: num_core; rename"):
        check_conf("local", [str(conf)])


def test_settings_of_other_runners_are_not_checked(conf: Path) -> None:
    check_conf("hadoop", [str(conf)])


def test_the_launchers_check_the_files_before_a_job(
    conf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["emr", str(conf)]) == 2
    assert capsys.readouterr().err.endswith(f"{conf}: {REFUSED} (mrjob would ignore them)\n")
    assert main(["hadoop", str(conf)]) == 0
    monkeypatch.setenv("MRJOB_CONF", str(conf))
    assert [main(["emr"]), main(["hadoop"])] == [2, 0]


def test_mrjob_says_later_which_files_it_uses(conf: Path) -> None:
    check_conf("hadoop", [str(conf)])
    assert not logging.getLogger("mrjob.conf").disabled
    with pytest.raises(OSError, match="absent"):
        check_conf("hadoop", [str(conf.with_name("absent"))])
    assert not logging.getLogger("mrjob.conf").disabled


def test_no_configuration_is_fine() -> None:
    check_conf("emr", [])


def test_mrjob_has_every_new_name_and_no_old_one() -> None:
    known = runner_class("emr").OPT_NAMES | runner_class("hadoop").OPT_NAMES
    assert {re.split(r",| ", name)[0] for name in NOW.values()} <= known
    assert not set(NOW) & known
