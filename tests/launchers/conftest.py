"""The launchers of bin/ as users start them, with an index_env.sh of the test's own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
_OF_THE_USER = (
    "AWS_",
    "HADOOP_",
    "WARC_",
    "ZIPNUM_",
    "MRJOB_",
    "SPLIT_FILE",
    "SHARDS",
    "RUNNER",
    "INDEX_ENV",
)

Finished = subprocess.CompletedProcess[str]
Launch = Callable[..., Finished]


def clean_environment() -> dict[str, str]:
    """The environment without what would set a launcher up, and with this Python for cdxmill."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THE_USER)}
    files = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    return {**kept, **files, "AWS_EC2_METADATA_DISABLED": "true", "CDXMILL_VENV": sys.prefix}


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Runs a launcher in an empty folder; keywords but `cwd` and `env` are the lines of its index_env.sh."""
    return launch_in(tmp_path)


def launch_in(directory: Path) -> Launch:
    """`launch`, with its files in a directory."""
    place = directory / "called from"
    place.mkdir()

    def run(
        name: str, *args: str | Path, cwd: Path = place, env: dict[str, str] | None = None, **settings: object
    ) -> Finished:
        own = write_settings(directory / "index_env.sh", settings) if settings else directory / "absent.sh"
        return subprocess.run(
            [ROOT / "bin" / name, *map(str, args)],
            cwd=cwd,
            env={**clean_environment(), "INDEX_ENV": str(own), **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def write_settings(path: Path, settings: dict[str, object]) -> Path:
    """An index_env.sh, as a copy of the sample looks when it is filled in."""
    path.write_text("".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in settings.items()))
    return path


class RunPaths(NamedTuple):
    """The directory that a whole run writes to, and that of its archives."""

    directory: Path
    archives: Path

    @property
    def settings(self) -> dict[str, object]:
        """The variables of index_env.sh for the engine on this machine."""
        return {
            "RUNNER": "local",
            "WARC_MANIFEST": self.archives / "warcs.txt",
            "WARC_BUCKET": self.archives / "warcs",
            "WARC_CDX_BUCKET": self.directory / "cdx",
            "WARC_CDX": self.directory / "cdx",
            "SPLIT_FILE": self.directory / "splits.seq",
            "SHARDS": 2,
            "ZIPNUM_CLUSTER_DIR": self.directory / "cluster",
        }


@pytest.fixture
def places(tmp_path: Path, pywb_warcs: Path) -> RunPaths:
    """A manifest of two small archives that are whole."""
    return lay_out(tmp_path, pywb_warcs)


def lay_out(directory: Path, pywb_warcs: Path) -> RunPaths:
    """`places` in a directory."""
    names = ("iana.warc.gz", "dupes.warc.gz")
    (directory / "warcs").mkdir()
    for name in names:
        shutil.copy(pywb_warcs / name, directory / "warcs")
    (directory / "warcs.txt").write_text("".join(f"{name}\n" for name in names))
    return RunPaths(directory, directory)


def commands(done: Finished) -> list[list[str]]:
    """The words of each command that a dry run shows."""
    assert done.returncode == 0, done.stderr
    return [shlex.split(line) for line in done.stdout.splitlines()]
