"""Outputs of a scan on Spark have the bytes of the local engine. A user's module is sent to the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from cdxmill.commands.scanning.ask import scan_asked
from cdxmill.errors import UsageError
from cdxmill.options.contents import Scanning
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import RunTasks
from cdxmill.spark.engine import Engine
from cdxmill.spark.jobs import ScanRunner
from tests.commands.test_scan_parquet import EVERY
from tests.conftest import RunCdxmill
from tests.spark.conftest import hashes

STEPS = """
import os
import signal


def words(page):
    return {"words": len(page.text.split())}


def harm(record):
    if record.url.endswith("/about"):
        os.kill(os.getpid(), signal.SIGKILL)
    if record.url.endswith("/numbers"):
        raise ValueError("numbers")
"""


def scanned(
    warcs: Path, output: Path, run: RunTasks | None, **options: Any
) -> tuple[dict[str, str], list[Failure], str]:
    """The hashes of the outputs, what failed, and the summary."""
    failures = Failures(printed=False)
    summary = scan_asked(Scanning(warcs, output=output, **options), failures, run)
    return hashes(output), sorted(failures.items), str(summary)


def test_outputs_are_those_of_the_local_engine(
    engine: Engine, warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/spark_steps_of_scan.py").write_text(STEPS)
    (tmp_path / "types").write_text("text/html\ntext/css\n")
    monkeypatch.syspath_prepend(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {
        "where": "mime@types",
        "extract": "url,offset,title",
        "call": "spark_steps_of_scan:harm",
        "call_page": "spark_steps_of_scan:words",
    }
    run = ScanRunner(engine, str(tmp_path))
    local = scanned(warcs, tmp_path / "local", None, **options)
    reasons = " ".join(one.reason for one in local[1])
    assert all(word in reasons for word in ("ValueError", "SIGKILL", "truncated"))
    assert scanned(warcs, tmp_path / "spark", run, **options) == local
    found = scanned(warcs, tmp_path / "spark-sample", run, sample=7, to="warc.gz")
    assert found == scanned(warcs, tmp_path / "local-sample", None, sample=7, to="warc.gz")
    table = {"extract": EVERY, "to": "parquet", "call_page": "n:spark_steps_of_scan.words:json"}
    found = scanned(warcs, tmp_path / "spark-table", run, **table)
    assert found == scanned(warcs, tmp_path / "local-table", None, **table)
    assert _read_by_spark(engine, tmp_path / "spark-table") == _read_by_arrow(tmp_path / "local-table")


def _read_by_spark(engine: Engine, folder: Path) -> list[tuple[str | None, list[str] | None]]:
    """URL and links of all rows of a folder, which has records of the run and columns of all types."""
    from pyspark.sql import SparkSession

    found = SparkSession(engine._context).read.parquet(str(folder)).select("url", "links").collect()
    return sorted(((row.url, row.links) for row in found), key=repr)


def _read_by_arrow(folder: Path) -> list[tuple[str | None, list[str] | None]]:
    rows = pyarrow.parquet.read_table(folder, columns=["url", "links"]).to_pylist()
    assert len(rows) > 100 and (folder / "_cdxmill/failures.tsv").exists()
    return sorted(((row["url"], row["links"]) for row in rows), key=repr)


def test_what_spark_cannot_do_is_wrong_usage(warcs: Path, run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    words = ["scan", "--engine", "spark", "--captures", "x.cdxj", "-o", tmp_path / "out", warcs]
    done = run_cdxmill(*words)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"--captures and --engine spark cannot be used together" in done.stderr
    with pytest.raises(UsageError, match="no input"):
        scan_asked(Scanning(output=tmp_path / "out"), Failures(printed=False))
