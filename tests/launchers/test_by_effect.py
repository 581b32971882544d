"""run_index_ccpyspark.sh gives spark-submit what the script of webarchive-indexing gives it (issue 33).

`THEIRS` is the command of the original, word by word, for the variables that its spark_env.sh sets: SPARK_HOME,
SPARK_HADOOP_OPTS and HADOOP_CONF_DIR. `DIFFERENT` says what is not passed on, and why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Launch, commands

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
def environ(tmp_path: Path) -> dict[str, str]:
    """What a spark_env.sh sets, and a spark-submit that exists."""
    (tmp_path / "spark/bin").mkdir(parents=True)
    (tmp_path / "spark/bin/spark-submit").touch(0o755)
    hadoop = {"SPARK_HADOOP_OPTS": "--conf spark.hadoop.x=y", "HADOOP_CONF_DIR": str(tmp_path)}
    return {"SPARK_HOME": str(tmp_path / "spark"), **hadoop}


def test_spark_gets_what_it_got(launch: Launch, environ: dict[str, str]) -> None:
    done = launch(
        "run_index_ccpyspark.sh",
        "--dry-run",
        "2026-44",
        "s3://b/warc.paths",
        env=environ,
        S3_LOCAL_TEMP_DIR="/scratch",
    )
    for words in commands(done):
        assert words[0] == f"{environ['SPARK_HOME']}/bin/spark-submit"
        (script,) = [Path(word).name for word in words if word.endswith(".py")]
        ours, theirs = options_of(words[1:]), THEIRS[script]
        assert {
            name for name in theirs if name not in ours or not same(name, ours[name], theirs[name])
        } == set()
        assert ours.keys() - theirs.keys() <= OURS_ALONE
        assert not ours.keys() & DIFFERENT.keys()
    assert len(commands(done)) == 2


def test_without_step_1_the_cdx_files_are_those_of_the_crawler(
    launch: Launch, environ: dict[str, str]
) -> None:
    done = launch(
        "run_index_ccpyspark.sh", "--dry-run", "2026-44", "", env=environ, S3_LOCAL_TEMP_DIR="/scratch"
    )
    (words,) = commands(done)
    assert f"s3a://{BUCKET}/{CRAWL}/cdx/segments/*/*/*.cdx.gz" in words
    assert options_of(words[1:])["--executor-memory"] == "3g"


def test_fewer_partitions_than_cores_are_refused(launch: Launch, environ: dict[str, str]) -> None:
    done = launch(
        "run_index_ccpyspark.sh",
        "--dry-run",
        "2026-44",
        "s3://b/x",
        env={**environ, "NUM_EXECUTORS": "6"},
        SHARDS=300,
    )
    assert done.returncode == 2
    assert "NUM_WARC_INPUT_PARTITIONS=10: fewer than all executors have cores (6 * 2)" in done.stderr
