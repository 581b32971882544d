"""The launchers pass on what those of webarchive-indexing pass on.

`THEIRS` and `OF_HADOOP` are the commands of the originals, word by word. Those of Spark are for the variables that its
spark_env.sh sets: SPARK_HOME, SPARK_HADOOP_OPTS and HADOOP_CONF_DIR. `DIFFERENT` says what is not passed on, and why.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from .conftest import ROOT, Finished, Launch, commands

BUCKET = "commoncrawl-index-temp"
CRAWL = "CC-MAIN-2026-44"
SUBMIT = {
    "--master": "yarn",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.task.maxFailures": "5",
    "spark.core.connection.ack.wait.timeout": "600s",
    "spark.network.timeout": "300s",
    "spark.shuffle.io.maxRetries": "50",
    "spark.shuffle.io.retryWait": "600s",
    "spark.locality.wait": "1s",
    "spark.executorEnv.LD_LIBRARY_PATH": "/usr/lib/hadoop/lib/native",
    "spark.hadoop.x": "y",
    "--num-executors": "1",
    "--executor-cores": "2",
}
THEIRS = {
    "indexwarcs_cc_pyspark.py": {
        **SUBMIT,
        "--executor-memory": "2g",
        "spark.driver.memory": "3g",
        "--input_base_url": "s3://commoncrawl/",
        "--output_base_url": f"s3://{BUCKET}/",
        "--local_temp_dir": "/scratch",
        "--num_input_partitions": "10",
    },
    "zipnumcluster_cc_pyspark.py": {
        **SUBMIT,
        "--executor-memory": "2g",
        "spark.driver.memory": "6g",
        "spark.driver.maxResultSize": "4g",
        "spark.io.compression.codec": "zstd",
        "spark.checkpoint.compress": "true",
        "--output_base_url": f"s3://commoncrawl/cc-index/collections/{CRAWL}/indexes/",
        "--local_temp_dir": "/scratch",
        "--partition_boundaries_file": f"s3a://{BUCKET}/{CRAWL}/partition_boundaries.json",
    },
}
DIFFERENT = {
    "--py-files": "sparkcc.py is not used",
    "spark.sql.warehouse.dir": "no table is written",
    "spark.executor.memory": "the same as --executor-memory",
    "--num_output_partitions": "of the index job: of the table; of the ZipNum job: 300, our default, too",
    "--num_lines": "3000, our default, too",
    "--temporary_output_base_url": "temporary files are on the nodes",
}
OURS_ALONE = {"spark.executor.memoryOverhead", "--skip-existing"}
"""Python's memory is not that of Java; and an output that exists is kept."""


def options_of(words: list[str]) -> dict[str, str]:
    """The options of a command: of `--conf a=b` and `--a=b` what is before and after the sign."""
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word == "--conf":
            name, _, value = next(rest).partition("=")
            found[name] = value
        elif word.startswith("--"):
            name, sign, value = word.partition("=")
            found[name] = value if sign or name == "--skip-existing" else next(rest)
    return found


def same(name: str, one: str, other: str) -> bool:
    """Whether two values mean the same: s3 and s3a are one file system here, and a slash at the end is none."""
    both = [value.replace("s3a://", "s3://").rstrip("/") for value in (one, other)]
    return both[0] == both[1]


@pytest.fixture
def of_spark(launch: Launch, tmp_path: Path) -> Launch:
    """A checkout with a spark_env.sh as the original's comments describe it. Its spark-submit prints what it gets."""
    (tmp_path / "spark/bin").mkdir(parents=True)
    submit = tmp_path / "spark/bin/spark-submit"
    submit.write_text('#!/bin/bash\nprintf \'%q \' "$HADOOP_CONF_DIR" "$0" "$@"; echo\n')
    submit.chmod(0o755)
    for name in ("bin", "jobs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "spark_env.sh").write_text(
        f"SPARK_HOME={tmp_path}/spark\nSPARK_HADOOP_OPTS='--conf spark.hadoop.x=y'\nHADOOP_CONF_DIR=/etc/h\n"
    )

    def run(*words: str, **settings: str) -> Finished:
        env = {"INDEX_ENV": "", "S3_LOCAL_TEMP_DIR": "/scratch", **settings}
        return launch(tmp_path / "bin/run_index_ccpyspark.sh", *words, env=env)

    return run


def test_spark_gets_what_it_got(of_spark: Launch, tmp_path: Path) -> None:
    ran = commands(of_spark("2026-44", "s3://b/warc.paths"))
    for conf, submit, *words in ran:
        assert (conf, submit) == ("/etc/h", f"{tmp_path}/spark/bin/spark-submit")
        (script,) = [Path(word).name for word in words if word.endswith(".py")]
        ours, theirs = options_of(words), THEIRS[script]
        assert {
            name for name in theirs if name not in ours or not same(name, ours[name], theirs[name])
        } == set()
        assert ours.keys() - theirs.keys() <= OURS_ALONE
        assert not ours.keys() & DIFFERENT.keys()
    assert len(ran) == 2


def test_without_step_1_the_cdx_files_are_those_of_the_crawler(of_spark: Launch) -> None:
    (words,) = commands(of_spark("2026-44", ""))
    assert f"s3a://{BUCKET}/{CRAWL}/cdx/segments/*/*/*.cdx.gz" in words
    assert options_of(words[2:])["--executor-memory"] == "3g"


def test_fewer_partitions_than_cores_are_refused(of_spark: Launch) -> None:
    done = of_spark("2026-44", "s3://b/x", NUM_EXECUTORS="6")
    assert done.returncode == 2
    assert "NUM_WARC_INPUT_PARTITIONS=10: fewer than all executors have cores (6 * 2)" in done.stderr


PLACE = f"s3a://{BUCKET}/{CRAWL}"
OF_HADOOP = {
    "indexwarcsjob.py": {
        "-r": "hadoop",
        "--cdx_bucket": f"s3a://{BUCKET}",
        "--warc_bucket": "s3a://commoncrawl",
        "--s3_local_temp_dir": "/scratch",
    },
    "dosample.py": {"-r": "hadoop", "--splitfile": f"{PLACE}/splits.seq"},
    "zipnumclusterjob.py": {
        "-r": "hadoop",
        "--splitfile": f"{PLACE}/splits.seq",
        "--zipnum-dir": f"s3a://commoncrawl/cc-index/collections/{CRAWL}/indexes",
        "--output-dir": f"{PLACE}/indexes",
    },
}
"""Of run_index_hadoop.sh, with the default of --warc_bucket. A bucket was a name, and is a URL."""
DIFFERENT_ON_HADOOP = {
    "mapreduce.output.fileoutputformat.compress": "set by the jobs themselves",
    "mapreduce.map.output.compress": "what goes to the reducers is compressed already",
    "mapreduce.fileoutputcommitter.cleanup-failures.ignored": "the ZipNum job has no committer to S3",
    "--no-output": "no job prints its output, but that of failures",
    "--cleanup": "mrjob's own files are removed",
    "--skip-existing": "on, if --replace is not given",
    "--shards": "300, our default, too; and the split file has the number",
}
MEMORY = {f"mapreduce.{kind}.{name}" for kind in ("map", "reduce") for name in ("memory.mb", "java.opts")}
"""Options of each of their commands, and here in conf/mrjob-hadoop.conf, for what our tasks need."""


def pairs(words: list[str]) -> dict[str, str]:
    """The options of a job and their values."""
    return dict(zip(words[::2], words[1::2], strict=True))


def test_hadoop_gets_what_it_got(launch: Launch) -> None:
    env = {"INDEX_ENV": "", "S3_LOCAL_TEMP_DIR": "/scratch"}
    ran = commands(launch("run_index_hadoop.sh", "--dry-run", "2026-44", "s3a://b/list", env=env))
    given = {}
    for _, script, *words, cdx in ran:
        given[Path(script).name] = cdx
        ours = pairs(words)
        conf = yaml.safe_load(Path(ours.pop("--conf-path")).read_text())
        assert ours == OF_HADOOP[Path(script).name]
        assert conf["runners"]["hadoop"]["jobconf"].keys() >= MEMORY
    made = f"s3a://{BUCKET}/cc-index/cdx/{CRAWL}/segments/*/*/*.cdx.gz"  # where step 1 writes
    assert given == {
        "indexwarcsjob.py": "s3a://b/list",
        "dosample.py": made,
        "zipnumclusterjob.py": made,
    }
    assert not set().union(*OF_HADOOP.values()) & DIFFERENT_ON_HADOOP.keys()


def test_without_step_1_hadoop_reads_and_samples_the_files_of_the_crawler(launch: Launch) -> None:
    env = {"INDEX_ENV": ""}
    sample, zipnum = commands(launch("run_index_hadoop.sh", "--dry-run", "2026-44", "", env=env))
    assert sample[-1] == f"{PLACE}/cdx/segments/*[358]/*/*.cdx.gz"
    assert zipnum[-1] == f"{PLACE}/cdx/segments/*/*/*.cdx.gz"
    older = PLACE.replace("-44", "-40") + "/splits.seq"
    (zipnum,) = commands(launch("run_index_hadoop.sh", "--dry-run", "2026-44", "", older, env=env))
    assert pairs(zipnum[2:-1])["--splitfile"] == older


def test_the_scripts_of_each_step_run_on_emr(launch: Launch) -> None:
    """With the variables of the original's index_env.sample.sh, which has no RUNNER."""
    variables = {
        "WARC_MANIFEST": "s3://b/list",
        "WARC_CDX_BUCKET": "cdx",
        "WARC_CDX": "s3://b/cdx/*.gz",
        "SPLIT_FILE": "s3://b/splits.seq",
        "ZIPNUM_CLUSTER_DIR": "s3://b/C",
    }
    theirs = {
        "runindexwarcs.sh": {"--cdx_bucket": "cdx"},
        "runsample.sh": {"--splitfile": "s3://b/splits.seq"},
        "runzipcluster.sh": {"--splitfile": "s3://b/splits.seq", "--zipnum-dir": "s3://b/C"},
    }
    for script, options in theirs.items():
        ((_, _, *words, _),) = commands(launch(script, "--dry-run", **variables))
        ours = pairs(words)
        assert ours.pop("--conf-path").endswith("emr.conf")
        assert ours == {"-r": "emr", **options}
