"""A cluster of Spark's own: a master and a worker on the loopback interface. cdxmill is sent to the worker."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.spark.conftest import hashes

STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
PATIENCE = 60


def spark_class() -> str:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return f"{spec.submodule_search_locations[0]}/bin/spark-class"


@pytest.fixture
def master(tmp_path: Path, quick: str) -> Iterator[str]:
    """The URL of the master. It has one worker with two cores."""
    env = {**os.environ, "JAVA_TOOL_OPTIONS": quick, "SPARK_LOCAL_IP": "127.0.0.1"}
    env |= {"SPARK_HOME": str(Path(spark_class()).parents[1]), "PYSPARK_PYTHON": sys.executable}
    running = []

    def start(name: str, *words: str) -> Path:
        log = tmp_path / f"{name}.log"
        command = [
            spark_class(),
            f"org.apache.spark.deploy.{name}",
            "--host",
            "127.0.0.1",
            "--webui-port",
            "0",
        ]
        with log.open("wb") as file:
            running.append(
                subprocess.Popen(
                    [*command, *words], env=env, stdout=file, stderr=file, start_new_session=True
                )
            )
        return log

    try:
        url = wait_for(start("master.Master", "--port", "0"), STARTED)[1]
        worker = start(
            "worker.Worker", "--cores", "2", "--memory", "1g", "--work-dir", str(tmp_path / "w"), url
        )
        wait_for(worker, re.compile("Successfully registered with master"))
        yield url
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(log: Path, wanted: re.Pattern[str]) -> re.Match[str]:
    end = time.monotonic() + PATIENCE
    while (found := wanted.search(log.read_text())) is None:
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)
    return found


def run_both(
    master: str, quick: str, tmp_path: Path, command: list[str], inputs: Path
) -> dict[str, subprocess.CompletedProcess[str]]:
    """Run a command on the cluster and on this machine. Its inputs are relative to a directory that is not the worker's."""
    env = {**os.environ, "JAVA_TOOL_OPTIONS": quick, "SPARK_LOCAL_IP": "127.0.0.1"}
    env["PYSPARK_PYTHON"], env["PYTHONPATH"] = sys.executable, str(tmp_path)
    return {
        name: subprocess.run(
            [sys.executable, "-m", "cdxmill", *command, "-o", tmp_path / name, *options, inputs.name],
            cwd=inputs.parent,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        for name, options in {"spark": ["--engine", "spark", "--master", master], "local": []}.items()
    }


def test_a_build_and_counts_on_a_cluster_equal_the_local_ones(
    master: str, quick: str, tmp_path: Path, pywb_warcs: Path
) -> None:
    """Failures are reported as inputs were named. The module of a counter is sent, too."""
    done = run_both(master, quick, tmp_path, ["build", "-q", "-s", "3", "--location", "/x"], pywb_warcs)
    assert done["spark"].returncode == 1, done["spark"].stderr
    found = [line for line in done["spark"].stderr.splitlines() if line.startswith(pywb_warcs.name)]
    assert sorted(found) == sorted(done["local"].stderr.splitlines())
    assert hashes(tmp_path / "spark") == hashes(tmp_path / "local")
    assert list((tmp_path / "w").glob("*/*/cdxmill_nodes/cdxmill/__init__.py"))
    (tmp_path / "counts").mkdir()
    (tmp_path / "counts/kinds.py").write_text("def kinds(record):\n    return record.kind, record.size\n")
    done = run_both(master, quick, tmp_path / "counts", ["count", "-q", "--call", "kinds:kinds"], pywb_warcs)
    assert done["spark"].returncode == 1, done["spark"].stderr
    found = [line for line in done["spark"].stderr.splitlines() if line.startswith(pywb_warcs.name)]
    assert sorted(found) == sorted(done["local"].stderr.splitlines())
    assert (tmp_path / "counts/spark").read_bytes() == (tmp_path / "counts/local").read_bytes()
