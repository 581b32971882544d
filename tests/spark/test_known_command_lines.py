"""The command lines of webarchive-indexing's Spark jobs write the bytes of the local engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.formats.clusters.split_points import parse_boundaries
from tests.conftest import RunCdxmill
from tests.spark.conftest import hashes

ROOT = Path(__file__).resolve().parents[2]
CRAWL = "crawl-data/CC-MAIN-2026-44/segments/1/warc"


@pytest.fixture
def crawl(tmp_path: Path, pywb_archives: list[Path]) -> Path:
    """Archives with the paths of Common Crawl, and the list of them. One does not exist, and a WACZ is corrupt."""
    directory = tmp_path / CRAWL
    directory.mkdir(parents=True)
    listed = [f"{CRAWL}/absent.warc.gz", f"{CRAWL}/bad.wacz"]
    (directory / "bad.wacz").write_bytes(b"PK")
    for path in pywb_archives:
        if path.name.endswith(".warc.gz"):
            (directory / path.name).write_bytes(path.read_bytes())
            listed.append(f"{CRAWL}/{path.name}")
    (tmp_path / "warc.paths").write_text("\n".join(listed) + "\n")
    return tmp_path


def launch(crawl: Path, script: str, *words: str | Path, java: str = "") -> subprocess.CompletedProcess[str]:
    settings = {
        "WARC_BUCKET": str(crawl),
        "WARC_CDX_BUCKET": str(crawl / "out"),
        "WARC_CDX": str(crawl / "out/cc-index/cdx/CC-MAIN-$YEARWEEK/segments/*/*/*.cdx.gz"),
        "SPLIT_FILE": str(crawl / "boundaries.json"),
        "ZIPNUM_CLUSTER_DIR": str(crawl / "out/CC-MAIN-$YEARWEEK/indexes"),
        "SPARK_ON_YARN": "--master local[2]",
        "NUM_WARC_INPUT_PARTITIONS": "2",
        "SHARDS": "3",
        "S3_LOCAL_TEMP_DIR": str(crawl),
    }
    (crawl / "env.sh").write_text("".join(f'{name}="{value}"\n' for name, value in settings.items()))
    environment = {**os.environ, "INDEX_ENV": str(crawl / "env.sh"), "CDXMILL_VENV": sys.prefix}
    environment["JAVA_TOOL_OPTIONS"] = java
    environment.pop("SOURCE_DATE_EPOCH", None)  # of the engine of other tests
    command = [str(ROOT / "bin" / script), *map(str, words)]
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_run_index_ccpyspark(crawl: Path, run_cdxmill: RunCdxmill, quick: str) -> None:
    """Both jobs run; the boundaries file is written by one run and read by `cdxmill`."""
    done = launch(crawl, "run_index_ccpyspark.sh", "2026-44", crawl / "warc.paths", java=quick)
    assert done.returncode == 1, done.stderr  # for the archive that does not exist, and the WACZ
    # spark-submit prints all messages of the driver on its standard output
    assert f"{CRAWL}/absent.warc.gz: cannot be read" in done.stdout
    assert f"{CRAWL}/bad.wacz: is truncated or not a zip file" in done.stdout
    indexed = run_cdxmill(
        "index", "-q", "-o", crawl / "a", "--manifest", crawl / "warc.paths", "--root", crawl
    )
    assert indexed.returncode == 1
    cdx = crawl / "out/cc-index/cdx/CC-MAIN-2026-44"
    assert hashes(cdx) == hashes(crawl / "a/crawl-data/CC-MAIN-2026-44")
    points = parse_boundaries((crawl / "boundaries.json").read_bytes())
    assert len(points) == 2
    assert all(len(row) == 2 for row in json.loads((crawl / "boundaries.json").read_bytes()))
    cluster = crawl / "out/CC-MAIN-2026-44/indexes"
    ours = ["-q", "-s", "3", "-o", crawl / "b", "--location", cluster]
    assert run_cdxmill("zipnum", *ours, cdx).returncode == 0
    assert hashes(cluster) == hashes(crawl / "b")
    verified = run_cdxmill("verify", cluster)
    assert verified.returncode == 0, verified.stderr


def test_a_dry_run_prints_the_known_options(crawl: Path) -> None:
    done = launch(crawl, "run_index_ccpyspark.sh", "--dry-run", "2026-44", "", crawl / "old.json")
    assert done.returncode == 0, done.stderr
    (command,) = done.stdout.splitlines()
    assert "zipnumcluster_cc_pyspark.py" in command
    assert f"--partition_boundaries_file={crawl}/old.json" in command
    assert "--num_output_partitions=3" in command
    replacing = launch(
        crawl, "run_index_spark.sh", "--dry-run", "--replace", "2026-44", "", crawl / "old.json"
    )
    script = "zipnumcluster_cc_pyspark.py"  # before it are the options of spark-submit, see tests/launchers/test_by_effect.py
    job = replacing.stdout.replace(" --replace", "").partition(script)[2]
    assert (replacing.returncode, job) == (0, done.stdout.partition(script)[2])
    usage = launch(crawl, "run_index_ccpyspark.sh", "2026-44")
    assert (usage.returncode, usage.stderr) == (
        2,
        "run_index_ccpyspark.sh: YEAR-WEEK and LIST are missing; see bin/run_index_ccpyspark.sh --help\n",
    )
