"""The archive that is sent with a job: cdxmill, and wheels of libraries for the nodes' Pythons.

    hadoop_task.py              the start script of each task
    cdxmill/...                 the package of this machine, with its compiled modules
    wheels/<tag>-<machine>/     the compressor, deflate, for CPython 3.9, 3.10, and 3.11 and later (abi3)
    wheels/none-any/            urllib3, for WebHDFS

pip downloads a wheel once, to ~/.cache/cdxmill/wheels or the directory in CDXMILL_NODE_WHEELS.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Collection
from pathlib import Path

from cdxmill.errors import UsageError
from cdxmill.messages import say

NAME = "cdxmill_nodes"
"""Name of the directory with the unpacked archive, in the working directory of a task."""
DEFLATE, URLLIB3 = "deflate==0.8.1", "urllib3==2.6.3"
"""The libraries as pip names them. Later versions of urllib3 do not support Python 3.9."""

_WHEELS = {
    (DEFLATE, "cp39", "x86_64"): "cbf3f1bde8de7b7b292552d199ee75cc18c2ff5859cbb56f3f0de3459bf6d60a",
    (DEFLATE, "cp39", "aarch64"): "50a3ef1a4363ae5a0e6ce4792d014dccc058e38c008bfdfe46a19f2341250a59",
    (DEFLATE, "cp310", "x86_64"): "cbb8af5029201382298008d47b4c914f0c0837803cd4f7d6fdf3cd695a38cdf6",
    (DEFLATE, "cp310", "aarch64"): "22b9624b9394af53c8982b0c41e930665bdc21ca7c8f418c50dc1a4fc018246c",
    (DEFLATE, "abi3", "x86_64"): "d0bf846e44f84d93ae99dc7bd4b71176f2abf0fd4f3baddbfc164387963763b6",
    (DEFLATE, "abi3", "aarch64"): "ba5c8676f402480a290b61a8051953c8bbab85983b03e56cbfc7b1708bb6776c",
    (URLLIB3, "none", "any"): "bf272323e553dfb2e87d9bfd225ca7b0f467b919d7bbd355436d3fd37cb0acd4",
}
"""SHA-256 of the wheel of a library for a Python tag and a machine."""
_PYTHON = {
    "cp39": ("3.9", "cp39"),
    "cp310": ("3.10", "cp310"),
    "abi3": ("3.11", "cp311"),
    "none": ("3.9", "py3"),
}
"""Python version and tag of each kind of wheel, for pip and the file name."""


def pack_archive(directory: Path, libraries: Collection[str]) -> Path:
    """Write the archive with these libraries to `directory`. Returns its path.

    Raises UsageError if a wheel of DEFLATE is missing. Without that of URLLIB3, tasks use `hadoop fs`, which is printed.
    """
    path = directory / f"{NAME}.zip"
    package = Path(__file__).parents[2]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(package / "jobs/nodes/hadoop_task.py", "hadoop_task.py")
        # nodes with the same Python and machine use the compiled modules, others ignore them
        for file in sorted((*package.rglob("*.py"), *package.rglob("*.so"))):
            archive.write(file, f"cdxmill/{file.relative_to(package).as_posix()}")
        for library, tag, machine in (key for key in _WHEELS if key[0] in libraries):
            try:
                _unpack(_wheel(library, tag, machine), archive, f"wheels/{tag}-{machine}")
            except UsageError as error:
                if library != URLLIB3:
                    raise UsageError(f"{error}, or use --compressor zlib") from None
                say(f"note: {error}; without it, tasks use hadoop fs instead of WebHDFS, which takes longer")
    return path


def _unpack(wheel: Path, archive: zipfile.ZipFile, directory: str) -> None:
    with zipfile.ZipFile(wheel) as content:
        for name in content.namelist():
            if not name.endswith("/"):
                archive.writestr(f"{directory}/{name}", content.read(name))


def _wheel(library: str, tag: str, machine: str) -> Path:
    cache = Path(os.environ.get("CDXMILL_NODE_WHEELS") or Path.home() / ".cache" / "cdxmill" / "wheels")
    version, python = _PYTHON[tag]
    platform = machine if tag == "none" else f"manylinux_2_17_{machine}.manylinux2014_{machine}"
    wheel = cache / f"{library.replace('==', '-')}-{python}-{tag}-{platform}.whl"
    if not wheel.exists():
        _fetch(library, tag, machine, cache)
    if not wheel.exists() or hashlib.sha256(wheel.read_bytes()).hexdigest() != _WHEELS[library, tag, machine]:
        raise UsageError(
            f"{wheel}: the wheel for nodes with Python {version} ({machine}) is missing or corrupt; "
            f"put it there (pip download {library})"
        )
    return wheel


def _fetch(library: str, tag: str, machine: str, cache: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    wanted = ["--only-binary", ":all:", "--implementation", "cp", "--platform", f"manylinux2014_{machine}"]
    python = ["--python-version", _PYTHON[tag][0], "--abi", tag, "--dest", str(cache)]
    cache.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [*command, *wanted, *python, library],
        check=False,
        stdout=sys.stderr,
        stdin=subprocess.DEVNULL,
    )
