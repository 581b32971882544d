"""What is wrong is said in one line before a job starts, with exit status 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Finished, Launch, RunPaths

EVERY = {
    "RUNNER": "hadoop",
    "WARC_MANIFEST": "s3://bucket/warc.paths",
    "WARC_CDX_BUCKET": "s3://bucket/cdx",
    "WARC_CDX": "s3://bucket/cdx",
    "SPLIT_FILE": "s3://bucket/splits.seq",
    "ZIPNUM_CLUSTER_DIR": "s3://bucket/cluster",
}
NEEDED = {
    "runindexwarcs.sh": ("WARC_MANIFEST", "WARC_CDX_BUCKET"),
    "runsample.sh": ("WARC_CDX", "SPLIT_FILE"),
    "runzipcluster.sh": ("WARC_CDX", "SPLIT_FILE", "ZIPNUM_CLUSTER_DIR"),
    "run_index_hadoop.sh": tuple(name for name in EVERY if name != "RUNNER"),
    "publish_index.sh": ("ZIPNUM_CLUSTER_DIR",),
}
# No hadoop, and all that a launcher itself calls.
BARE_PATH = {"PATH": "/usr/bin:/bin"}


def refusal(done: Finished) -> str:
    """The one line that is said."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("name", "variable"), [(name, each) for name, needed in NEEDED.items() for each in needed]
)
@pytest.mark.parametrize("value", [None, "", "<fill in>"])
def test_a_variable_that_is_not_set(name: str, variable: str, value: str | None, launch: Launch) -> None:
    settings = {key: text for key, text in EVERY.items() if key != variable}
    if value is not None:
        settings[variable] = value
    assert f"{name}: {variable} is not set; set it in index_env.sh" in refusal(launch(name, **settings))


@pytest.mark.parametrize("name", NEEDED)
def test_no_index_env(name: str, launch: Launch) -> None:
    assert "cp index_env.sample.sh index_env.sh" in refusal(launch(name))


def test_an_index_env_that_is_no_shell(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "broken.sh").write_text('export WARC_CDX="\n')
    done = launch("runsample.sh", env={"INDEX_ENV": str(tmp_path / "broken.sh")})
    assert done.returncode == 2
    assert "broken.sh is not a valid shell script" in done.stderr.splitlines()[-1]


def test_a_runner_that_there_is_not(launch: Launch) -> None:
    assert "invalid RUNNER spark: expected hadoop, emr or local" in refusal(
        launch("runsample.sh", "-r", "spark", **EVERY)
    )
    assert "-r needs a value" in refusal(launch("runsample.sh", "-r", **EVERY))


def test_no_hadoop(launch: Launch) -> None:
    assert "no hadoop command found; set HADOOP_HOME" in refusal(
        launch("runsample.sh", env=BARE_PATH, **EVERY)
    )


def test_a_hadoop_home_without_hadoop(launch: Launch, tmp_path: Path) -> None:
    said = refusal(launch("runsample.sh", env=BARE_PATH, HADOOP_HOME=tmp_path, **EVERY))
    assert f"HADOOP_HOME: {tmp_path}/bin/hadoop: no such file" in said


def test_no_aws_credentials(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "mrjob.conf").write_text("runners: {emr: {}}\n")
    own = {"RUNNER": "emr", "MRJOB_CONF": tmp_path / "mrjob.conf"}
    said = refusal(launch("runsample.sh", **{**EVERY, **own}))
    assert "no AWS credentials found; run aws configure" in said


def test_a_manifest_that_is_absent(launch: Launch, places: RunPaths) -> None:
    settings = {**places.settings, "WARC_MANIFEST": places.directory / "none.txt"}
    said = refusal(launch("runindexwarcs.sh", **settings))
    assert f"WARC_MANIFEST: {places.directory}/none.txt: no such file" in said


def test_settings_of_mrjob_that_are_absent(launch: Launch, places: RunPaths) -> None:
    settings = {**places.settings, "MRJOB_CONF": places.directory / "none.conf"}
    assert f"MRJOB_CONF: {places.directory}/none.conf: no such file" in refusal(
        launch("runsample.sh", **settings)
    )


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--background"]])
@pytest.mark.parametrize("name", [name for name in NEEDED if name != "publish_index.sh"])
def test_a_mrjob_conf_of_2015(name: str, options: list[str], launch: Launch, tmp_path: Path) -> None:
    conf = tmp_path / "mrjob.conf"
    conf.write_text("runners: {emr: {aws_region: eu-west-1, emr_job_flow_id: j-CLUSTERID}}\n")
    said = refusal(launch(name, *options, **{**EVERY, "RUNNER": "emr", "MRJOB_CONF": conf}))
    assert said.startswith(
        f"{conf}: settings that mrjob does not know: aws_region (now region), emr_job_flow_id "
    )


def test_a_python_without_mrjob(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mrjob.conf'] = None\n")
    said = refusal(launch("runsample.sh", env={"PYTHONPATH": str(tmp_path)}, **EVERY))
    assert said.endswith("pip install './cdxmill[jobs]', with a checkout in ./cdxmill")


def test_a_python_without_cdxmill(launch: Launch, tmp_path: Path) -> None:
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    said = refusal(launch("runsample.sh", env={"CDXMILL_VENV": str(tmp_path)}, **EVERY))
    assert (
        f"{python} cannot import cdxmill; run bin/setup-env jobs s3, or pip install -r requirements.txt"
        in said
    )


def test_a_year_and_week_without_a_manifest(launch: Launch) -> None:
    assert "MANIFEST is missing after 2026-44" in refusal(launch("run_index_hadoop.sh", "2026-44", **EVERY))


def test_a_cluster_of_another_crawl_is_not_overwritten(launch: Launch) -> None:
    said = refusal(launch("run_index_hadoop.sh", "2026-44", "", **EVERY))
    assert "ZIPNUM_CLUSTER_DIR=s3://bucket/cluster does not contain 2026-44" in said


def test_a_split_file_to_reuse_that_is_absent(launch: Launch, places: RunPaths) -> None:
    settings = {**places.settings, "ZIPNUM_CLUSTER_DIR": places.directory / "2026-44"}
    said = refusal(launch("run_index_hadoop.sh", "2026-44", "", places.directory / "none.seq", **settings))
    assert f"{places.directory}/none.seq: no such split file" in said
