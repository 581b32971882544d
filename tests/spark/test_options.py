"""Wrong usage of --engine and --master is reported before Spark is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.formats.clusters.split_points import format_boundaries, parse_boundaries
from cdxmill.spark import scripts
from cdxmill.spark.jobs import Maker
from tests.conftest import RunCdxmill

HIDE = """import sys
class Hide:
    def find_spec(name, path=None, target=None):
        if name == "pyspark":
            raise ModuleNotFoundError("No module named 'pyspark'", name=name)
sys.meta_path.insert(0, Hide)
"""


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ["build", "--engine", "hadoop", "-o", "c"],
            "invalid --engine 'hadoop': expected one of local, spark",
        ),
        (["build", "--master", "yarn", "-o", "c"], "--master needs --engine spark"),
        (["build", "-o", "s3://bucket/c"], "not a local directory"),
        (["index", "--engine", "spark", "-o", "all.cdxj"], "--engine spark needs an output directory"),
        (["index", "--engine", "spark", "-o", "-"], "--engine spark needs an output directory"),
    ],
)
def test_wrong_usage_is_reported(
    words: list[str], reason: str, run_cdxmill: RunCdxmill, pywb_archives: list[Path], tmp_path: Path
) -> None:
    done = run_cdxmill(*words, pywb_archives[0], cwd=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


def run_with(tmp_path: Path, archive: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    words = ["build", "-q", "--engine", "spark", "-o", "c", str(archive)]
    command = [sys.executable, "-m", "cdxmill", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)


def test_without_pyspark_the_message_says_what_to_install(tmp_path: Path, pywb_archives: list[Path]) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDE)
    done = run_with(tmp_path, pywb_archives[0], {"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "cdxmill: --engine spark needs PySpark: pip install './cdxmill[spark]', with a checkout in ./cdxmill\n"
    )


def test_without_java_the_run_stops(tmp_path: Path, pywb_archives: list[Path]) -> None:
    done = run_with(tmp_path, pywb_archives[0], {"PATH": "/nowhere", "JAVA_HOME": "/nowhere"})
    assert done.returncode == 3
    assert "cdxmill: Spark cannot be started: " in done.stderr
    assert not (tmp_path / "c/cluster.json").exists()


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '[["a"]]', '[["a", 1]]', '[["b", "1"], ["a", "1"]]', '[["", ""]]', '[["a\\n", ""]]'],
)
def test_a_file_without_boundaries_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is not|split points must increase|a split point is)"):
        parse_boundaries(text.encode())


def test_boundaries_have_any_bytes() -> None:
    points = [b"com,a)/ 20200101000000", b"com,b)/\xff 2020", b"net,\ttab)/ 2", b"org"]
    assert parse_boundaries(format_boundaries(points)) == points


def test_boundaries_are_not_written_if_no_input_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rerun would take them for those of the whole crawl: one shard."""
    monkeypatch.setattr(Maker, "split_points", lambda *arguments: [])
    monkeypatch.setattr(scripts, "build_cluster", lambda *arguments: None)
    (tmp_path / "a.cdx.gz").write_bytes(b"")
    words = [f"--output_base_url={tmp_path}/c", f"--partition_boundaries_file={tmp_path}/b.json"]
    scripts.zipnum(["-q", "--num_output_partitions=3", *words, f"{tmp_path}/a.cdx.gz"])
    assert not (tmp_path / "b.json").exists()
    scripts.zipnum(["-q", "--num_output_partitions=1", *words, f"{tmp_path}/a.cdx.gz"])
    assert (tmp_path / "b.json").read_text() == "[]"
