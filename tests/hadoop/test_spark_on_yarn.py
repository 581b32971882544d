"""Spark on YARN, from HDFS to HDFS: the bytes are those of the local engine."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from cdxmill.spark.java import QUICK

from .conftest import Hadoop

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "spark.yarn.am.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
    "spark.executor.instances": "1",
    **{f"spark.{name}.extraJavaOptions": QUICK for name in ("executor", "driver", "yarn.am")},
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}


def own_files(directory: Path) -> dict[str, bytes]:
    """The files of a cluster, without the records of runs."""
    own = (".finished.json", ".outputs.tsv", "failures.tsv")
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and not path.name.endswith(own)
    }


@pytest.mark.usefixtures("jobs")
def test_a_build_on_yarn_equals_the_local_one(hadoop: Hadoop, pywb_warcs: Path, tmp_path: Path) -> None:
    """With `--deploy-mode cluster`, the driver is on a node, too; what is added has it here. A rerun starts no Spark."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    home = spec.submodule_search_locations[0]
    env = {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": sys.executable}
    quick = dict.fromkeys(("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS"), QUICK)
    hadoop.fs("-mkdir", "-p", "/spark-warcs")
    archives = [pywb_warcs / name for name in ("iana.warc.gz", "dupes.warc.gz", "example.arc.gz")]
    hadoop.fs("-put", "-f", *archives, "/spark-warcs/")
    settings = {**SETTINGS, "spark.yarn.jars": f"local:{home}/jars/*"}
    submit = [f"{home}/bin/spark-submit", "--master", "yarn"]
    submit += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    build = ["-q", "-s", "3", "--location", "/x", "hdfs:///spark-warcs"]
    script = str(ROOT / "jobs/build_on_spark.py")
    environ = [f"spark.yarn.appMasterEnv.{name}={value}" for name, value in env.items()]
    there = ["--deploy-mode", "cluster", *(word for value in environ for word in ("--conf", value))]
    done = hadoop.run(*submit, *there, script, "-o", "hdfs:///spark-cluster", *build, env=quick, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    hadoop.cdxmill("build", "-o", tmp_path / "local", *build)
    hadoop.fs("-get", "/spark-cluster", tmp_path / "spark")
    assert own_files(tmp_path / "spark") == own_files(tmp_path / "local")
    again = hadoop.cdxmill("build", "--engine", "spark", "-o", "hdfs:///spark-cluster", *build[1:])
    assert b"unchanged, because it has these inputs already" in again.stdout + again.stderr
    check_added(hadoop, [*submit, str(ROOT / "jobs/add_on_spark.py")], {**env, **quick}, pywb_warcs, tmp_path)


def check_added(
    hadoop: Hadoop, add: list[str], env: dict[str, str], pywb_warcs: Path, tmp_path: Path
) -> None:
    """The cluster that Spark has built is added to another one, by Spark in HDFS and here on a disk."""
    here = tmp_path / "here"
    hadoop.cdxmill("build", "-q", "-s", "2", "-o", here, pywb_warcs / "example.warc.gz")
    hadoop.cdxmill("publish", "-q", "--location", "/x", here, "hdfs:///spark-added")
    hadoop.cdxmill("publish", "-q", "--location", "/x", here, tmp_path / "published")
    added = ["--cdx", "hdfs:///spark-cluster"]
    done = hadoop.run(*add, "-q", "hdfs:///spark-added", *added, env=env, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    hadoop.cdxmill("add", "-q", tmp_path / "published", *added)
    hadoop.fs("-get", "/spark-added", tmp_path / "spark-added")
    assert b"iana.warc.gz\thdfs:///spark-warcs/" in (tmp_path / "spark-added/archives.tsv").read_bytes()
    kinds = ("cdx-*", "part-*", "cluster.idx", "cluster.json")
    found, wanted = (
        {path.name: path.read_bytes() for kind in kinds for path in directory.glob(kind)}
        for directory in (tmp_path / "spark-added", tmp_path / "published")
    )
    assert found == wanted
    assert any(name.endswith("-1.gz") for name in found)
