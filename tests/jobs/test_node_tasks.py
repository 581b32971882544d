"""Tasks as a node of Hadoop runs them, with every Python that is here and nothing installed."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.formats.zipnum_block import Compressor
from tests.conftest import RunCdxmill
from tests.jobs.conftest import HardInputs, packed_nodes, run_task

PACKER = ("--compressor", "libdeflate", "--level", "6")


def pythons() -> list[Path]:
    """This Python, and those that are at hand as python3.X."""
    found = {Path(sys.executable).resolve()}
    for minor in range(9, 15):
        path = shutil.which(f"python3.{minor}")
        if (
            path is not None
            and not subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode
        ):
            found.add(Path(path))
    for home in Path("~/.pyenv/versions").expanduser().glob("3.*"):
        if int(home.name.split(".")[1]) >= 9:
            found.add(home / "bin/python")
    return sorted(found)


def write_shard(folder: Path, lines: list[bytes], *options: str, python: Path = Path(sys.executable)) -> None:
    data = b"".join(line + b"\n" for line in lines)
    cluster = ("--cluster", folder.as_uri())
    run_task("shard", *cluster, *PACKER, *options, data=data, partition=1, cwd=folder.parent, python=python)


@pytest.mark.parametrize("python", pythons(), ids=lambda path: path.parents[1].name)
def test_a_shard_is_the_same_from_every_python(
    tmp_path: Path, python: Path, hard_inputs: HardInputs, run_cdxmill: RunCdxmill
) -> None:
    lines = sorted(random.Random(3).sample(sorted(hard_inputs.lines), 500))
    folder, given = tmp_path / "shared", tmp_path / "all.cdxj"
    folder.mkdir()
    write_shard(folder, [b"", b" CDX N b", *lines, lines[-1]], python=python)
    given.write_bytes(b"".join(line + b"\n" for line in lines))
    assert run_cdxmill("zipnum", "-q", "-s", "1", "-o", tmp_path / "ours", given).returncode == 0
    assert (folder / "cdx-00001.gz").read_bytes() == (tmp_path / "ours/cdx-00000.gz").read_bytes()
    part = (tmp_path / "ours/part-00000").read_bytes().replace(b"cdx-00000.gz", b"cdx-00001.gz")
    assert (folder / "part-00001").read_bytes() == part
    entry, version, duplicates = json.loads((folder / "_report-00001").read_bytes())
    assert (entry[2], version, duplicates) == (500, Compressor().version(), 3)
    assert sorted(path.name for path in folder.iterdir()) == ["_report-00001", "cdx-00001.gz", "part-00001"]


def test_lines_that_are_converted_are_sorted_as_what_they_become(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    lines = [
        b"a)/ 1 http://a/\xc3\xa4 1 0 f",
        b"a)/ 1 http://a/z 10 0 f",
        b"a)/ 1 http://a/z 9 0 f",
        b"b)/ 1 u 1 0 f",
    ]
    write_shard(folder, sorted(lines), "--convert", "--numlines", "2")
    found = gzip.decompress((folder / "cdx-00001.gz").read_bytes()).splitlines()
    assert found == sorted(found)
    assert len(found) == 4
    assert b'"length": "10"' in found[1] + found[2]


def test_an_old_python_is_told_what_to_do(tmp_path: Path) -> None:
    old = [home / "bin/python" for home in Path("~/.pyenv/versions").expanduser().glob("3.8*")]
    script = packed_nodes() / "hadoop_task.py"
    code = f"import sys; sys.version_info = (3, 6, 8); sys.argv = ['x', 'shard']; exec(open({str(script)!r}).read())"
    for command in [[sys.executable, "-c", code], *([str(python), str(script), "shard"] for python in old)]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 41
        assert done.stderr.startswith("cdxmill: this node has Python 3.")
        assert "--python-bin" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_machine_without_a_fitting_wheel_is_told(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    shutil.copytree(packed_nodes(), nodes, ignore=shutil.ignore_patterns("wheels"))
    command = [
        sys.executable,
        "-I",
        "-S",
        str(nodes / "hadoop_task.py"),
        "shard",
        "--cluster",
        tmp_path.as_uri(),
        *PACKER,
    ]
    done = subprocess.run(
        command, input=b"", env={"mapreduce_task_partition": "0"}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert done.stderr.startswith(b"cdxmill: the compressor libdeflate is not installed")


def test_gzip_that_hadoop_has_taken_for_text_is_refused(tmp_path: Path) -> None:
    """Hadoop goes by names: what is packed but not named .gz comes to the reducers as lines."""
    script = packed_nodes() / "hadoop_task.py"
    command = [sys.executable, "-I", "-S", str(script), "shard", "--cluster", tmp_path.as_uri(), *PACKER]
    junk = gzip.compress(b"a 2020 {}\n").replace(b"\n", b"")
    done = subprocess.run(
        command,
        input=b"\0\n" + junk + b"\na 2020 {}\n",
        cwd=tmp_path,
        env={"mapreduce_task_partition": "0"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert done.stderr.startswith(b"cdxmill: an input is gzip, but its name does not end in .gz")
    assert not (tmp_path / "_report-00000").exists()
