"""The compiled part of cdxmill with the sanitizers of gcc, which stop a process at the first invalid read or write."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sysconfig
from pathlib import Path

from cdxmill.stages import native

from .compiled import compile_module, stamp_of

SOURCES = Path(native.__file__).parents[1] / "native"
_KEPT = Path(__file__).parents[1] / "build/sanitized"
_SANITIZE = ("-g", "-O1", "-fsanitize=address,undefined,bounds-strict", "-fno-sanitize-recover=all")


def compile_sanitized(library: Path) -> None:
    """Compile all sources to a module, once for all who need it: it is kept in build/."""
    _KEPT.mkdir(parents=True, exist_ok=True)
    kept = _KEPT / f"{sysconfig.get_python_version()}-{stamp_of(SOURCES)}.so"
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            compile_module(SOURCES, kept.with_suffix(".tmp"), *_SANITIZE)
            kept.with_suffix(".tmp").replace(kept)
    shutil.copyfile(kept, library)


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
