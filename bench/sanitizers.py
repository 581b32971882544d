"""The compiled part of cdxmill with the sanitizers of gcc, which stop a process at the first invalid read or write."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sysconfig
import zlib
from pathlib import Path

from cdxmill.stages import native

SOURCES = Path(native.__file__).parents[1] / "native"
_KEPT = Path(__file__).parents[1] / "build/sanitized"
_SANITIZE = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-shared", "-fPIC")


def compile_sanitized(library: Path) -> None:
    """Compile all sources to a module, once for all who need it: it is kept in build/."""
    stamp = zlib.crc32(b"".join(path.read_bytes() for path in sorted(SOURCES.glob("*.[ch]"))))
    _KEPT.mkdir(parents=True, exist_ok=True)
    kept = _KEPT / f"{sysconfig.get_python_version()}-{stamp}.so"
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _compile(kept.with_suffix(".tmp"), stamp)
            kept.with_suffix(".tmp").replace(kept)
    shutil.copyfile(kept, library)


def _compile(library: Path, stamp: int) -> None:
    include = sysconfig.get_paths()["include"]
    options = [f"-I{include}", "-DPy_LIMITED_API=0x030B0000", f"-DSOURCES={stamp}u"]
    command = ["gcc", "-Wall", "-Wextra", "-Werror", *_SANITIZE, *options, *map(str, SOURCES.glob("*.c"))]
    subprocess.run([*command, "-o", str(library)], check=True)


def sanitizing(directory: Path) -> dict[str, str]:
    """The environment variables for a Python that imports from a directory, with the sanitizers."""
    asked = ["gcc", "-print-file-name=libasan.so"]
    found = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    return {
        "LD_PRELOAD": found,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(directory),
    }
