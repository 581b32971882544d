"""The archive that is sent with a job: cdxmill, and wheels of libraries for the nodes' Pythons.

    hadoop_task.py              the start script of each task
    cdxmill/...                 the package of this machine, with its compiled modules, without what no task imports
    wheels/<tag>-<machine>/     the compressor: zlib-ng for CPython 3.9 to 3.14, or deflate for 3.9, 3.10, and 3.11 and later (abi3)
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
ZLIB_NG, DEFLATE, URLLIB3 = "zlib-ng==1.1.0", "deflate==0.8.1", "urllib3==2.6.3"
"""The libraries as pip names them. Later versions of urllib3 do not support Python 3.9."""

_WHEELS = {
    (ZLIB_NG, "cp39", "x86_64"): "0e63b2e2e51c1fc29e0da443f9da7fa163f8fa710b884a1f08ea725207a0dc13",
    (ZLIB_NG, "cp39", "aarch64"): "bfe16a39d5033ca7716f36a9f0c8a7102caba4962d0c890de290f06acbb4d0fc",
    (ZLIB_NG, "cp310", "x86_64"): "3390802d52edf2ab0a803f795c2713a519588bebb736f3af6b30e7c35578eabf",
    (ZLIB_NG, "cp310", "aarch64"): "1cd8b4b333325d58e2bcca59e84d20463ad3ab3bb4fac9f09c74eb6fd18bbe24",
    (ZLIB_NG, "cp311", "x86_64"): "4165d05376742bbbeb448b7a2c44ad492c44d19011fb4bf1261af01357d107df",
    (ZLIB_NG, "cp311", "aarch64"): "23a4b90f5b5f3b1168e14d97bf5d2082e832c3c02486e7e2bc7f599d147af444",
    (ZLIB_NG, "cp312", "x86_64"): "69dd8c72c2e04dfefa86a0d71d79cbe5ec918629469cd91b6e55cea4c945f845",
    (ZLIB_NG, "cp312", "aarch64"): "640bb3bdb78ac0323d13062d76dc8d1f73cd9b89811fd73c204affbb0998fdbb",
    (ZLIB_NG, "cp313", "x86_64"): "f80aab75aa43743df245c44d3c00223f4bdf4b46fd03c83a695234196c6f4ece",
    (ZLIB_NG, "cp313", "aarch64"): "3f52e33eac3b5b783f963eb50e654fa271a887382c68773e671b2f0e09df589d",
    (ZLIB_NG, "cp314", "x86_64"): "80f2e5524829cc6c7698e4545cfa35b8d47a8a632374acb848a2f854a0dffb1a",
    (ZLIB_NG, "cp314", "aarch64"): "8860d7dcb6eb30c9d54be00820cc7f46c0ac3de6a8d04104b4e7c93dd3572461",
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
    "cp311": ("3.11", "cp311"),
    "cp312": ("3.12", "cp312"),
    "cp313": ("3.13", "cp313"),
    "cp314": ("3.14", "cp314"),
    "abi3": ("3.11", "cp311"),
    "none": ("3.9", "py3"),
}
"""Python version and tag of each kind of wheel, for pip and the file name."""


LEFT_OUT = ("__main__.py", "cli", "server", "spark", "jobs/launcher")
"""Parts of the package that no task imports: each node unpacks the archive."""
_CODE = (".py", ".so")


def pack_archive(directory: Path, libraries: Collection[str]) -> Path:
    """Write the archive with these libraries to `directory`. Returns its path.

    Raises UsageError if a wheel of the compressor is missing. Without that of URLLIB3, tasks use `hadoop fs`, which is printed.
    """
    path = directory / f"{NAME}.zip"
    package = Path(__file__).parents[2]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(package / "jobs/nodes/hadoop_task.py", "hadoop_task.py")
        # nodes with the same Python and machine use the compiled modules, others ignore them
        for file in sorted(file for ending in _CODE for file in package.rglob(f"*{ending}")):
            name = file.relative_to(package)
            if not any(name.is_relative_to(part) for part in LEFT_OUT):
                archive.write(file, f"cdxmill/{name.as_posix()}")
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
            if name.endswith(_CODE):  # without metadata, which nothing reads
                archive.writestr(f"{directory}/{name}", content.read(name))


def _wheel(library: str, tag: str, machine: str) -> Path:
    cache = Path(os.environ.get("CDXMILL_NODE_WHEELS") or Path.home() / ".cache" / "cdxmill" / "wheels")
    version, python = _PYTHON[tag]
    name = library.replace("-", "_").replace("==", "-")
    platforms = f"*{machine}*"  # a wheel names several, in an order of its own
    wheels = f"{name}-{python}-{tag}-{platforms}.whl"
    if not any(cache.glob(wheels)):
        _fetch(library, tag, machine, cache)
    wanted = _WHEELS[library, tag, machine]
    for wheel in cache.glob(wheels):
        if hashlib.sha256(wheel.read_bytes()).hexdigest() == wanted:
            return wheel
    raise UsageError(
        f"{cache}: the wheel {wheels} for nodes with Python {version} ({machine}) is missing or corrupt; "
        f"put it there (pip download {library})"
    )


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
