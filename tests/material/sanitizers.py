"""Run code with the compiled part under the sanitizers of gcc, which stop it at the first invalid read or write."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from cdxmill.stages import native

SOURCES = Path(native.__file__).parents[1] / "native"


def run_sanitized(code: str, directory: Path, *arguments: str) -> None:
    """Compile the sources to `folder` and run the Python `code`, which can import _native. Fail if it fails."""
    sanitize = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-shared", "-fPIC"]
    options = [f"-I{sysconfig.get_paths()['include']}", "-DPy_LIMITED_API=0x030B0000"]
    command = ["gcc", "-Wall", "-Wextra", "-Werror", *sanitize, *options, *map(str, SOURCES.glob("*.c"))]
    subprocess.run([*command, "-o", str(directory / "_native.so")], check=True)
    library = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    )
    env = {"LD_PRELOAD": library.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | env | {"PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
