"""Two runs in one output folder: the second one says who holds it, and changes nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..material.processes import COMMAND

HOLDER = """
import sys, time
from pathlib import Path
from cdxmill.running.lock import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cluster(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("built") / "C"
    call: list[str | Path] = [COMMAND, "build", "-q", "-s", "2", "-o", directory, pywb_warcs / "iana.warc.gz"]
    subprocess.run(call, check=True)
    return directory


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A folder that another run holds."""
    directory = tmp_path / "held"
    with subprocess.Popen([sys.executable, "-c", HOLDER, directory], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield directory
        holder.kill()


@pytest.mark.parametrize("name", ["index", "recompress", "zipnum", "build", "publish", "copy", "job"])
def test_the_second_run_is_refused(name: str, held: Path, cluster: Path, pywb_warcs: Path) -> None:
    archive = pywb_warcs / "iana.warc.gz"
    calls: dict[str, list[str | Path]] = {
        "index": [COMMAND, "index", "-o", held, archive],
        "recompress": [COMMAND, "recompress", "-o", held, archive],
        "zipnum": [COMMAND, "zipnum", "-s", "2", "-o", held, cluster / "cdx-00000.gz"],
        "build": [COMMAND, "build", "-s", "2", "-o", held, archive],
        "publish": [COMMAND, "publish", cluster, held],
        "copy": [COMMAND, "copy", "-o", held, cluster, "*.iana.org"],
        "job": [
            *(sys.executable, ROOT / "jobs/indexwarcsjob.py", "--no-conf", "-r", "inline"),
            *("--cdx_bucket", held, held.parent / "manifest"),
        ],
    }
    (held.parent / "manifest").write_text(f"{archive}\n")
    done = subprocess.run(calls[name], capture_output=True, check=False, cwd=held.parent)
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"{held}: another run writes to this directory (process ".encode() in done.stderr
    assert [path.name for path in held.iterdir()] == [".lock"]


def test_of_two_runs_one_writes_whole_files(tmp_path: Path, pywb_warcs: Path) -> None:
    archives = [pywb_warcs / name for name in ("iana.warc.gz", "example.warc.gz", "dupes.warc.gz")]
    alone = tmp_path / "alone"
    subprocess.run([COMMAND, "index", "-q", "-o", alone, *archives], check=True)
    for number in range(3):
        directory = tmp_path / str(number)
        call: list[str | Path] = [COMMAND, "index", "-q", "-o", directory, *archives]
        runs = [subprocess.Popen(call, stderr=subprocess.DEVNULL) for _ in range(2)]
        statuses = {run.wait() for run in runs}
        assert 0 in statuses
        assert statuses <= {0, 2}
        for path in alone.rglob("*.cdx.gz"):
            assert (directory / path.relative_to(alone)).read_bytes() == path.read_bytes()
        assert not (directory / ".lock").exists()
