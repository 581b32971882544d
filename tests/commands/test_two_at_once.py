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


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A folder that another run holds."""
    directory = tmp_path / "held"
    with subprocess.Popen([sys.executable, "-c", HOLDER, directory], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield directory
        holder.kill()


def test_a_job_beside_it_is_refused(held: Path, pywb_warcs: Path) -> None:
    """The commands are in tests/reliability/test_wiring.py."""
    (held.parent / "manifest").write_text(f"{pywb_warcs / 'iana.warc.gz'}\n")
    call: list[str | Path] = [sys.executable, ROOT / "jobs/indexwarcsjob.py", "--no-conf", "-r", "inline"]
    call += ["--cdx_bucket", held, held.parent / "manifest"]
    done = subprocess.run(call, capture_output=True, check=False, cwd=held.parent)
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
