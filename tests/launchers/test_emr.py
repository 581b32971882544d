"""The three jobs on EMR, as the launchers start them: what Amazon is asked for, and what becomes of it."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from ..conftest import RunCdxmill
from .conftest import ROOT, Finished, Launch, launch_in
from .emr_nodes import Nodes
from .emr_server import BUCKET, KEYS, Emr, Submitted, emr_server

SAMPLE = ROOT / "conf/mrjob-emr.conf"
PYTHON = "/opt/cdxmill/bin/python"

pytestmark = pytest.mark.xdist_group("emr")  # a job is run once for several tests
RunStep = Callable[..., Finished]


@pytest.fixture
def emr(tmp_path: Path) -> Iterator[Emr]:
    with emr_server() as running:
        running.nodes = Nodes(running, tmp_path / "nodes")
        yield running


@pytest.fixture
def run_step(emr: Emr, launch: Launch, tmp_path: Path) -> RunStep:
    """Runs a launcher with the settings that come with cdxmill, this server's addresses, and a bucket's name."""
    return run_with(emr, launch, tmp_path)


def run_with(emr: Emr, launch: Launch, directory: Path) -> RunStep:
    """`run_step`, with the settings in a directory."""
    addresses = {f"{service}_endpoint": emr.url for service in ("emr", "s3", "iam", "ec2")}
    waits = {"check_cluster_every": 0.1, "cloud_fs_sync_secs": 0}
    places = {"cloud_tmp_dir": f"s3://{BUCKET}/tmp/", "cloud_log_dir": f"s3://{BUCKET}/logs/"}
    own = {"include": str(SAMPLE), "runners": {"emr": {**addresses, **waits, **places}}}
    (directory / "mrjob.conf").write_text(yaml.safe_dump(own))
    settings = {
        "RUNNER": "emr",
        "MRJOB_CONF": directory / "mrjob.conf",
        "WARC_MANIFEST": f"s3://{BUCKET}/warc.paths",
        "WARC_BUCKET": BUCKET,
        "WARC_CDX_BUCKET": f"s3://{BUCKET}/cdx",
        "WARC_CDX": f"s3://{BUCKET}/cdx/*.cdx.gz",
        "SPLIT_FILE": f"s3://{BUCKET}/splits.seq",
        "SHARDS": "3",
        "ZIPNUM_CLUSTER_DIR": f"s3://{BUCKET}/cluster",
    }

    def run(name: str, *args: str, **more: object) -> Finished:
        env = {**KEYS, "AWS_ENDPOINT_URL_S3": emr.url}
        return launch(name, *args, env=env, **{**settings, **more})

    return run


def given() -> dict[str, Any]:
    """What the settings say."""
    loaded: dict[str, Any] = yaml.safe_load(SAMPLE.read_text())["runners"]["emr"]
    return loaded


def command(words: str) -> list[str]:
    """The task that a mapper or reducer is, and its options."""
    start = f"{PYTHON} cdxmill_nodes/hadoop_task.py "
    assert words.startswith(start)
    return words.removeprefix(start).split()


@pytest.fixture
def cdx(emr: Emr) -> None:
    put_cdx(emr)


def put_cdx(emr: Emr) -> list[str]:
    """Put CDX files into S3. Returns their URLs."""
    urls = []
    for host in "abcd":
        lines = (b'com,%b)/%d 2020010100000%d {"url": "u"}\n' % (host.encode(), n, n) for n in range(9))
        urls.append(emr.put(f"cdx/{host}.cdx.gz", gzip.compress(b"".join(lines))))
    return urls


class Sampled(NamedTuple):
    """A job that has sampled CDX files: the only cluster, what Amazon was asked for, its only step, and what is in S3 now."""

    cdx: list[str]
    cluster: dict[str, Any]
    asked: dict[str, Any]
    step: Submitted
    objects: set[str]


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    directory = tmp_path_factory.mktemp("sampled")
    with emr_server() as emr:
        emr.nodes = Nodes(emr, directory / "nodes")
        cdx = put_cdx(emr)
        run = run_with(emr, launch_in(directory), directory)
        done = run("runsample.sh", "--jobconf", "a.b=c")
        assert done.returncode == 0, done.stderr
        (cluster,), (asked,), (step,) = emr.clusters(), emr.asked, emr.steps
        return Sampled(cdx, cluster, asked, step, set(emr.objects()))


def test_the_cluster_that_is_asked_for(sampled: Sampled) -> None:
    cluster, wanted = sampled.cluster, given()
    assert cluster["ReleaseLabel"] == wanted["release_label"]
    assert [each["Name"] for each in cluster["Applications"]] == ["Hadoop"]
    assert cluster["ServiceRole"] == "EMR_DefaultRole"
    assert cluster["Ec2InstanceAttributes"]["IamInstanceProfile"] == "EMR_EC2_DefaultRole"
    assert cluster["LogUri"] == f"s3://{BUCKET}/logs/"
    assert {"Key": "project", "Value": "cdxmill"} in cluster["Tags"]
    groups = {
        each["InstanceGroupType"]: (each["InstanceType"], each["RequestedInstanceCount"], each["Market"])
        for each in cluster["InstanceGroups"]
    }
    assert groups == {
        "MASTER": (wanted["master_instance_type"], 1, "ON_DEMAND"),
        "CORE": (wanted["core_instance_type"], wanted["num_core_instances"], "ON_DEMAND"),
        "TASK": (wanted["task_instance_type"], wanted["num_task_instances"], "SPOT"),
    }
    ours, idle = cluster["BootstrapActions"]
    assert sampled.step.files[ours["ScriptPath"]] == (ROOT / "bootstrap.sh").read_bytes()
    assert idle["ScriptPath"].endswith("/terminate_idle_cluster_emr.sh")
    assert idle["Args"] == ["900"]
    assert sampled.asked["AutoTerminationPolicy"] == {"IdleTimeout": 900}
    assert sampled.asked["Instances"]["KeepJobFlowAliveWhenNoSteps"] is True


def test_the_step_that_is_submitted(sampled: Sampled) -> None:
    step = sampled.step
    assert step.args[0] == "hadoop-streaming"
    settings = step.options("-D")
    assert settings.items() >= {name: str(value) for name, value in given()["jobconf"].items()}.items()
    assert settings["a.b"] == "c"
    assert settings["mapreduce.job.reduces"] == "1"
    assert [command(step.option(kind))[0] for kind in ("-mapper", "-reducer")] == ["sample", "points"]
    items = [json.loads(line) for line in step.files[step.option("-input")].splitlines()]
    assert sorted(url for item in items for url in item["paths"]) == sampled.cdx
    assert "-cmdenv" not in step.args  # the nodes have a role
    uploaded, _, name = step.option("-archives").partition("#")
    assert name == "cdxmill_nodes"
    names = zipfile.ZipFile(io.BytesIO(step.files[uploaded])).namelist()
    assert {"hadoop_task.py", "cdxmill/__init__.py", "cdxmill/jobs/nodes/sample.py"} <= set(names)


def test_nothing_is_left_in_s3_but_what_was_asked_for(sampled: Sampled) -> None:
    assert sampled.objects - set(sampled.cdx) == {f"s3://{BUCKET}/splits.seq", f"s3://{BUCKET}/splits.txt"}


def test_all_steps_from_archives_in_s3(
    emr: Emr, run_step: RunStep, pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    directory = "crawl-data/CC-MAIN-2026-44/segments/1/warc"
    names = ("iana", "dupes", "absent")
    for name in names[:2]:
        emr.put(f"{directory}/{name}.warc.gz", (pywb_warcs / f"{name}.warc.gz").read_bytes())
    emr.put("warc.paths", "".join(f"{directory}/{name}.warc.gz\n" for name in names).encode())
    cdx = f"s3://{BUCKET}/cdx/cc-index/cdx/CC-MAIN-2026-44/segments/1/warc"
    done = run_step("run_index_hadoop.sh", WARC_CDX=f"{cdx}/*.cdx.gz")
    assert emr.trouble == []
    assert done.returncode == 1, done.stderr
    assert "absent.warc.gz" in done.stdout

    assert len(emr.clusters()) == 1  # a job takes the one of the job before, which waits
    index, sample, zipnum = emr.steps
    assert command(index.option("-mapper"))[0] == "index"
    assert "-reducer" not in index.args
    assert command(sample.option("-mapper"))[0] == "sample"
    assert command(zipnum.option("-mapper"))[0] == "chunks"
    assert zipnum.options("-D")["mapreduce.job.reduces"] == "3"
    assert command(zipnum.option("-reducer"))[0] == "shard"

    made = emr.objects()
    inputs = [tmp_path / f"{name}.cdx.gz" for name in names[:2]]
    for path in inputs:
        path.write_bytes(made[f"{cdx}/{path.name}"])
    (tmp_path / "splits.seq").write_bytes(made[f"s3://{BUCKET}/splits.seq"])
    options = ("--splits", tmp_path / "splits.seq", "--location", f"s3://{BUCKET}/cluster")
    assert run_cdxmill("zipnum", "-q", *options, "-o", tmp_path / "local", *inputs).returncode == 0
    cluster = {url.rpartition("/")[2]: data for url, data in made.items() if "/cluster/" in url}
    (tmp_path / "local/.finished.json").unlink()  # jobs on Hadoop have no such record
    assert cluster == {path.name: path.read_bytes() for path in (tmp_path / "local").iterdir()}

    again = run_step("runzipcluster.sh", WARC_CDX=f"{cdx}/*.cdx.gz")
    assert again.returncode == 2
    assert f"s3://{BUCKET}/cluster: holds a finished cluster" in again.stderr
    assert len(emr.steps) == 3


def test_a_finished_cluster_is_told_of_before_the_first_step(emr: Emr, run_step: RunStep) -> None:
    emr.put("cluster/cluster.json", b"{}")
    done = run_step("run_index_hadoop.sh")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert (
        "holds a finished cluster; use --replace-cluster to replace it, or choose another directory" in line
    )
    assert emr.clusters() == []


def test_a_step_that_fails_is_told(emr: Emr, run_step: RunStep, cdx: None) -> None:
    def fail(step: Submitted) -> None:
        raise RuntimeError

    emr.nodes = fail
    done = run_step("runsample.sh")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "stopped (exit status 3)" in done.stderr.splitlines()[-1]
    assert f"s3://{BUCKET}/splits.seq" not in emr.objects()


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("runsample.sh", "s3://no-such-bucket/cdx"),
        ("runzipcluster.sh", f"s3://{BUCKET}/none/*/x-*.cdx.gz"),
    ],
)
def test_a_place_without_cdx_files_is_told_before_a_cluster_starts(
    name: str, place: str, emr: Emr, run_step: RunStep
) -> None:
    done = run_step(name, WARC_CDX=place)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"{place}: no CDX file found; check WARC_CDX" in line
    assert emr.clusters() == []


@pytest.mark.parametrize("manifest", ["s3://no-such-bucket/cdx", f"s3://{BUCKET}/none/1/x-1.cdx.gz"])
def test_an_absent_manifest_is_told_before_a_cluster_starts(
    manifest: str, emr: Emr, run_step: RunStep
) -> None:
    done = run_step("runindexwarcs.sh", WARC_MANIFEST=manifest)
    assert done.returncode == 2
    assert "the manifest s3://" in done.stderr.splitlines()[1]
    assert emr.clusters() == []


def test_a_bucket_s_name_that_nobody_has_filled_in(emr: Emr, run_step: RunStep) -> None:
    done = run_step("runsample.sh", MRJOB_CONF=SAMPLE)
    assert done.returncode == 2
    assert "still has s3://my-bucket; copy conf/mrjob-emr.conf to mrjob.conf" in done.stderr
