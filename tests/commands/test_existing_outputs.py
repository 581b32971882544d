"""A file that exists is not overwritten without --replace: `sample`, `split-points`, dosample.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.jobs.seqfileutils import main as convert
from cdxmill.storage.local import write_named

LINES = b"".join(b"com,a)/%03d 2020 {}\n" % number for number in range(100))
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cdx(tmp_path: Path) -> Path:
    path = tmp_path / "a.cdxj"
    path.write_bytes(LINES)
    return path


@pytest.fixture(params=["sample", "split-points"])
def call(request: pytest.FixtureRequest, cdx: Path, tmp_path: Path) -> list[str]:
    if request.param == "sample":
        return ["sample", "-q", "-p", "1", "-s", "2", str(cdx)]
    cluster = tmp_path / "C"
    assert main(["zipnum", "-q", "-p", "1", "-s", "1", "--numlines", "10", "-o", str(cluster), str(cdx)]) == 0
    return ["split-points", "-q", "-s", "2", "--from-cluster", str(cluster)]


@pytest.mark.parametrize("existing", ["s.txt", "s.seq"])
def test_an_existing_file_is_not_overwritten(
    existing: str, call: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / existing).write_bytes(b"mine")
    assert main([*call, "-o", str(tmp_path / "s.txt")]) == 2
    assert f"{existing}: already exists; use --replace" in capfd.readouterr().err
    assert (tmp_path / existing).read_bytes() == b"mine"
    assert main([*call, "-o", str(tmp_path / "s.txt"), "--replace"]) == 0
    assert (tmp_path / existing).read_bytes() != b"mine"


def test_an_empty_file_is_written(call: list[str], tmp_path: Path) -> None:
    (tmp_path / "s.txt").touch()  # as mktemp does
    assert main([*call, "-o", str(tmp_path / "s.txt")]) == 0
    assert (tmp_path / "s.txt").read_bytes().startswith(b"com,a)/")


def test_a_directory_is_wrong_usage(
    call: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*call, "-o", str(tmp_path)]) == 2
    assert "is a directory" in capfd.readouterr().err


@pytest.mark.parametrize("from_cluster", [True, False])
def test_dosample_does_not_overwrite_a_split_file(from_cluster: bool, cdx: Path, tmp_path: Path) -> None:
    cluster, splits = tmp_path / "C", tmp_path / "s.seq"
    call = [sys.executable, str(ROOT / "jobs/dosample.py"), "--shards", "2", "--splitfile", str(splits)]
    if from_cluster:
        options = ["-q", "-p", "1", "-s", "1", "--numlines", "10", "-o", str(cluster)]
        assert main(["zipnum", *options, str(cdx)]) == 0
        call += ["--from-cluster", str(cluster)]
    else:
        call += ["--no-conf", "-r", "inline", str(cdx)]
    (tmp_path / "s.txt").write_bytes(b"mine")
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, b"s.txt: already exists; use --replace" in done.stderr) == (2, True)
    assert not splits.exists()
    subprocess.run([*call, "--replace"], cwd=tmp_path, capture_output=True, check=True)
    assert splits.exists()
    assert (tmp_path / "s.txt").read_bytes() != b"mine"


def test_dosample_that_cannot_write_has_stopped(cdx: Path, tmp_path: Path) -> None:
    """Its exit status was 1, as if an input had failed."""
    cluster, script = tmp_path / "C", str(ROOT / "jobs/dosample.py")
    assert main(["zipnum", "-q", "-p", "1", "-s", "1", "--numlines", "10", "-o", str(cluster), str(cdx)]) == 0
    splits = "/proc/none/s.seq"  # nobody can write there
    call = [sys.executable, script, "--shards", "2", "--from-cluster", str(cluster), "--splitfile", splits]
    done = subprocess.run(call, capture_output=True, check=False)
    assert (done.returncode, b"cannot be written" in done.stderr) == (3, True), done.stderr


def test_seqfileutils_does_not_overwrite_a_file(tmp_path: Path) -> None:
    text, other = tmp_path / "s.txt", tmp_path / "s.seq"
    text.write_bytes(b"com,a)/ 2020\n")
    other.write_bytes(b"mine")
    assert convert(["--copyfrom", str(text), str(other)]) == 2
    assert other.read_bytes() == b"mine"
    assert convert(["--copyfrom", str(text), str(other), "--replace"]) == 0
    assert other.read_bytes().startswith(b"SEQ")


def test_a_pipe_is_written_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    with write_named(str(pipe)) as file:
        file.write(b"text")
    assert reader.communicate()[0] == b"text"
    assert pipe.is_fifo()


def test_standard_output_is_written(tmp_path: Path) -> None:
    code = "from cdxmill.storage.local import write_named\nwith write_named('/dev/stdout') as f: f.write(b'text')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.stdout == b"text"
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_bytes() == b"text"
    assert Path("/dev/stdout").is_symlink()
