"""The scripts are shell that shellcheck has nothing to say to, and tell what they are for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, Launch


def is_shell(path: Path) -> bool:
    """Whether a file is a shell script."""
    if not path.is_file():
        return False
    first = path.read_bytes().partition(b"\n")[0]
    return path.suffix == ".sh" or (first.startswith(b"#!") and first.endswith((b"bash", b"/sh")))


SCRIPTS = sorted(
    path
    for directory in ("", "bin", ".ci", "bench")
    for path in (ROOT / directory).iterdir()
    if is_shell(path)
)
LAUNCHERS = [
    "runindexwarcs.sh",
    "runsample.sh",
    "runzipcluster.sh",
    "run_index_hadoop.sh",
    "publish_index.sh",
]

every_script = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())


def test_all_scripts_are_found() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in SCRIPTS}
    assert names >= {
        "bootstrap.sh",
        "index_env.sample.sh",
        "bin/quickstart",
        *(f"bin/{name}" for name in LAUNCHERS),
    }


@every_script
def test_bash_can_parse_a_script(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)


@every_script
def test_shellcheck_finds_nothing(path: Path) -> None:
    command = [str(Path(sys.executable).parent / "shellcheck"), "--norc", "-x", "-P", "SCRIPTDIR", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launcher_can_be_started_and_says_how(name: str, launch: Launch) -> None:
    assert os.access(ROOT / "bin" / name, os.X_OK)
    done = launch(name, "--help")
    assert done.returncode == 0
    assert f"bin/{name} [" in done.stdout
    assert "Exit status: 0 success, 1 " in done.stdout
    assert "set -e" not in done.stdout
