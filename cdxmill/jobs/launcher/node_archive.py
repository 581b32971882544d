"""The archive that is sent with a job: cdxmill, and the compressor's wheels for the nodes' Pythons.

    hadoop_task.py              the start script of each task
    cdxmill/...                 the package of this machine, with its compiled modules
    wheels/<tag>-<machine>/     deflate for CPython 3.9, 3.10, and 3.11 and later (abi3)

pip downloads a wheel once, to ~/.cache/cdxmill/wheels or the directory in CDXMILL_NODE_WHEELS.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from cdxmill.errors import UsageError

NAME = "cdxmill_nodes"
"""Name of the directory with the unpacked archive, in the working directory of a task."""
VERSION = "0.8.1"

_WHEELS = {
    ("cp39", "x86_64"): "cbf3f1bde8de7b7b292552d199ee75cc18c2ff5859cbb56f3f0de3459bf6d60a",
    ("cp39", "aarch64"): "50a3ef1a4363ae5a0e6ce4792d014dccc058e38c008bfdfe46a19f2341250a59",
    ("cp310", "x86_64"): "cbb8af5029201382298008d47b4c914f0c0837803cd4f7d6fdf3cd695a38cdf6",
    ("cp310", "aarch64"): "22b9624b9394af53c8982b0c41e930665bdc21ca7c8f418c50dc1a4fc018246c",
    ("abi3", "x86_64"): "d0bf846e44f84d93ae99dc7bd4b71176f2abf0fd4f3baddbfc164387963763b6",
    ("abi3", "aarch64"): "ba5c8676f402480a290b61a8051953c8bbab85983b03e56cbfc7b1708bb6776c",
}
"""SHA-256 of the wheel for a Python tag and a machine."""
_PYTHON = {"cp39": ("3.9", "cp39"), "cp310": ("3.10", "cp310"), "abi3": ("3.11", "cp311")}
"""Python version and tag of each kind of wheel, for pip and the file name."""


def pack_archive(folder: Path, with_wheels: bool) -> Path:
    """Write the archive to `folder`. Returns its path. Raises UsageError if a wheel is missing."""
    path = folder / f"{NAME}.zip"
    package = Path(__file__).parents[2]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(package / "jobs/nodes/hadoop_task.py", "hadoop_task.py")
        # nodes with the same Python and machine use the compiled modules, others ignore them
        for file in sorted((*package.rglob("*.py"), *package.rglob("*.so"))):
            archive.write(file, f"cdxmill/{file.relative_to(package).as_posix()}")
        for tag, machine in _WHEELS if with_wheels else ():
            _unpack(_wheel(tag, machine), archive, f"wheels/{tag}-{machine}")
    return path


def fetch_wheels() -> None:
    """Download all wheels into the cache. Raises UsageError."""
    for tag, machine in _WHEELS:
        _wheel(tag, machine)


def _unpack(wheel: Path, archive: zipfile.ZipFile, folder: str) -> None:
    with zipfile.ZipFile(wheel) as content:
        for name in content.namelist():
            if not name.endswith("/"):
                archive.writestr(f"{folder}/{name}", content.read(name))


def _wheel(tag: str, machine: str) -> Path:
    cache = Path(os.environ.get("CDXMILL_NODE_WHEELS") or Path.home() / ".cache" / "cdxmill" / "wheels")
    name = f"deflate-{VERSION}-{_PYTHON[tag][1]}-{tag}-manylinux_2_17_{machine}.manylinux2014_{machine}.whl"
    wheel = cache / name
    if not wheel.exists():
        _fetch(tag, machine, cache)
    if not wheel.exists() or hashlib.sha256(wheel.read_bytes()).hexdigest() != _WHEELS[tag, machine]:
        raise UsageError(
            f"{wheel}: the compressor for nodes with Python {_PYTHON[tag][0]} on {machine} is missing or corrupt; "
            f"put it there (pip download deflate=={VERSION}), or use --compressor zlib"
        )
    return wheel


def _fetch(tag: str, machine: str, cache: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    wanted = ["--only-binary", ":all:", "--implementation", "cp", "--platform", f"manylinux2014_{machine}"]
    python = ["--python-version", _PYTHON[tag][0], "--abi", tag, "--dest", str(cache)]
    cache.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [*command, *wanted, *python, f"deflate=={VERSION}"],
        check=False,
        stdout=sys.stderr,
        stdin=subprocess.DEVNULL,
    )
