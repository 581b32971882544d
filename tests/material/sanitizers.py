"""Run code with the compiled part under the sanitizers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.sanitizers import SOURCES, compile_sanitized, sanitizing

__all__ = ["SOURCES", "run_sanitized"]


def run_sanitized(code: str, directory: Path, *arguments: str) -> None:
    """Compile the sources to `directory` and run the Python `code`, which can import _native. Fail if it fails."""
    compile_sanitized(directory / "_native.so")
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | sanitizing(directory),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
