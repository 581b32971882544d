"""A dry run shows the commands, word for word, and needs neither Hadoop nor keys nor a file."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, Launch, RunPaths, commands

PYTHON = str(Path(sys.prefix) / "bin/python")
SETTINGS = {
    "RUNNER": "hadoop",
    "WARC_MANIFEST": "hdfs:///warc.paths",
    "WARC_CDX_BUCKET": "hdfs:///cdx",
    "WARC_CDX": "hdfs:///cdx/*/*.cdx.gz",
    "SPLIT_FILE": "hdfs:///splits.seq",
    "ZIPNUM_CLUSTER_DIR": "hdfs:///cluster",
}


def started(job: str, runner: str = "hadoop") -> list[str]:
    """How each command begins."""
    return [
        PYTHON,
        str(ROOT / "jobs" / job),
        "-r",
        runner,
        "--conf-path",
        str(ROOT / f"conf/mrjob-{runner}.conf"),
    ]


def test_the_three_steps(launch: Launch) -> None:
    index = [*started("indexwarcsjob.py"), "--cdx_bucket", "hdfs:///cdx", "hdfs:///warc.paths"]
    sample = [*started("dosample.py"), "--splitfile", "hdfs:///splits.seq", "hdfs:///cdx/*/*.cdx.gz"]
    places = ["--splitfile", "hdfs:///splits.seq", "--zipnum-dir", "hdfs:///cluster"]
    zipnum = [*started("zipnumclusterjob.py"), *places, "hdfs:///cdx/*/*.cdx.gz"]
    assert commands(launch("runindexwarcs.sh", "--dry-run", **SETTINGS)) == [index]
    assert commands(launch("runsample.sh", "--dry-run", **SETTINGS)) == [sample]
    assert commands(launch("runzipcluster.sh", "--dry-run", **SETTINGS)) == [zipnum]
    assert commands(launch("run_index_hadoop.sh", "--dry-run", **SETTINGS)) == [index, sample, zipnum]


def test_every_optional_setting_has_its_option(launch: Launch) -> None:
    more = {
        "WARC_BUCKET": "s3://archive",
        "S3_LOCAL_TEMP_DIR": "/mnt/tmp",
        "WARC_CDX_SAMPLE": "hdfs:///cdx/1/*.cdx.gz",
        "SHARDS": "10",
        "ZIPNUM_OUTPUT_DIR": "hdfs:///out",
    }
    index, sample, zipnum = commands(launch("run_index_hadoop.sh", "--dry-run", **SETTINGS, **more))
    index_words = (
        "--cdx_bucket hdfs:///cdx --warc_bucket s3://archive --s3_local_temp_dir /mnt/tmp hdfs:///warc.paths"
    )
    assert index[6:] == index_words.split()
    sample_words = "--splitfile hdfs:///splits.seq --shards 10 hdfs:///cdx/1/*.cdx.gz"
    assert sample[6:] == sample_words.split()
    zipnum_words = "--zipnum-dir hdfs:///cluster --output-dir hdfs:///out --shards 10 hdfs:///cdx/*/*.cdx.gz"
    assert zipnum[8:] == zipnum_words.split()


def test_options_are_passed_on_behind_those_of_the_settings(launch: Launch, tmp_path: Path) -> None:
    file = tmp_path / "own.sh"
    lines = [f"export {name}='{value}'" for name, value in SETTINGS.items()]
    file.write_text("\n".join([*lines, "SAMPLE_OPTIONS=(--seed '1 or 2')", ""]))
    done = launch(
        "runsample.sh", "--dry-run", "--jobconf", "a=b c", "--seed", "3", env={"INDEX_ENV": str(file)}
    )
    (words,) = commands(done)
    assert words[8:] == ["--seed", "1 or 2", "--jobconf", "a=b c", "--seed", "3", "hdfs:///cdx/*/*.cdx.gz"]


def test_several_inputs_are_separate_words(launch: Launch) -> None:
    settings = {**SETTINGS, "WARC_CDX": "hdfs:///a/*.gz  hdfs:///b", "WARC_MANIFEST": "s3://b/1 s3://b/2"}
    index, sample, zipnum = commands(launch("run_index_hadoop.sh", "--dry-run", **settings))
    assert index[-2:] == ["s3://b/1", "s3://b/2"]
    assert sample[-2:] == zipnum[-2:] == ["hdfs:///a/*.gz", "hdfs:///b"]


def test_one_setting_picks_the_engine_and_its_settings(launch: Launch) -> None:
    for runner in ("emr", "local"):
        done = launch("runsample.sh", "--dry-run", **{**SETTINGS, "RUNNER": runner})
        assert commands(done)[0][:6] == started("dosample.py", runner)
    for argument in (["-r", "emr"], ["--runner", "emr"], ["--runner=emr"]):
        done = launch("runsample.sh", "--dry-run", *argument, **SETTINGS)
        assert commands(done)[0][:6] == started("dosample.py", "emr")


def test_keys_are_in_no_command(launch: Launch) -> None:
    """Every user of a cluster can read the options of a job."""
    keys = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "hush/hush"}
    for runner in ("hadoop", "emr"):
        shown = launch("runsample.sh", "--dry-run", **{**SETTINGS, **keys, "RUNNER": runner}).stdout
        assert "AWS_" not in shown
        assert "hush" not in shown


@pytest.mark.parametrize(
    "words",
    [
        ["--cmdenv", "AWS_SECRET_ACCESS_KEY=hush"],
        ["--cmdenv=AWS_SECRET_ACCESS_KEY=hush"],
        ["--cmdenv=AWS_ACCESS_KEY_ID=hush"],
        ["--jobconf", "fs.s3a.secret.key=hush"],
        ["--jobconf=fs.s3a.secret.key=hush"],
        ["-D", "fs.s3a.bucket.b.access.key=hush"],
        ["--cmdenv=MY_password=hush"],
        ["-Dfs.azure.account.key.a.dfs.core.windows.net=hush"],
        ["--conf=spark.x.apikey=hush"],
        ["--cmdenv=http_proxy=http://me:hush@proxy/?a=http://you:hush@b/"],
    ],
)
def test_secrets_among_the_options_are_not_shown(words: list[str], launch: Launch) -> None:
    done = launch("runsample.sh", "--dry-run", "--seed", "3", *words, **SETTINGS)
    assert "--seed 3 " in done.stdout
    assert "hush" not in done.stdout + done.stderr


def test_other_settings_are_shown(launch: Launch) -> None:
    done = launch("runsample.sh", "--dry-run", "--jobconf=stream.num.map.output.key.fields=2", **SETTINGS)
    assert "key.fields=2" in done.stdout


def test_settings_of_mrjob(launch: Launch, tmp_path: Path) -> None:
    done = launch("runsample.sh", "--dry-run", MRJOB_CONF=ROOT / "conf/mrjob-emr.conf", **SETTINGS)
    assert commands(done)[0][4:6] == ["--conf-path", str(ROOT / "conf/mrjob-emr.conf")]


def test_publishing(launch: Launch) -> None:
    place = SETTINGS["ZIPNUM_CLUSTER_DIR"]
    publish = [PYTHON, "-m", "cdxmill", "publish"]
    assert commands(launch("publish_index.sh", "--dry-run", **SETTINGS)) == [[*publish, place, place]]
    done = launch(
        "publish_index.sh", "--dry-run", "--location", "https://a/", PUBLISH_DIR="s3://site/1", **SETTINGS
    )
    assert commands(done) == [[*publish, "--location", "https://a/", place, "s3://site/1"]]


def test_it_is_the_same_from_anywhere(places: RunPaths, launch: Launch) -> None:
    project = places.directory / "project"
    for name in ("bin", "conf", "jobs"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    (project / "warcs.txt").touch()
    lines = ["RUNNER=local", "WARC_MANIFEST=warcs.txt", "WARC_CDX_BUCKET=cdx", ""]
    (project / "index_env.sh").write_text("\nexport ".join(["", *lines[:-1]]) + "\n")
    wanted = str(project / "jobs/indexwarcsjob.py")
    script = Path(os.path.relpath(project / "bin", ROOT / "bin")) / "runindexwarcs.sh"
    for directory in (project, project / "bin", places.directory):
        done = launch(script, "--dry-run", cwd=directory, env={"INDEX_ENV": ""})
        (words,) = commands(done)
        assert words[1] == wanted
        assert words[-3:] == ["--cdx_bucket", "cdx", "warcs.txt"]
