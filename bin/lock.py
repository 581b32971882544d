#!/usr/bin/env python3
"""Write hashes.txt and constraints-lowest.txt from setup.py and constraints.txt.

usage: bin/setup-env audit && .venv/bin/python bin/lock.py      after each change of constraints.txt or setup.py; needs the network

hashes.txt has the packages of constraints.txt with the SHA-256 of each of their files; bin/setup-env installs only these
files. A comment before each package has the extras of setup.py that need it; `cdxmill` needs it without extras.
constraints-lowest.txt has the lowest versions that setup.py accepts, with which bin/test-lowest runs a part of the tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = (
    "s3",
    "scan",
    "languages",
    "parquet",
    "report",
    "jobs",
    "spark",
    "serve",
    "server",
    "audit",
    "docs",
    "test",
    "bench",
)
_BASE = "cdxmill"
_FOR_USERS = ("s3", "scan", "languages", "parquet", "report", "jobs", "server")
"""The extras whose libraries have lower bounds. The others have one version."""
_ALL_PYTHONS = ("--universal", "--python-version", "3.11.5", "-c", "constraints.txt")
"""The oldest Python for which all packages have a release."""
_LOWEST = ("--resolution", "lowest-direct", "--python-version", "3.11")
_NAME = re.compile(r"^[A-Za-z0-9][\w.-]*(?===)", re.M)


def compiled(extras: tuple[str, ...], *options: str) -> str:
    """What uv resolves for these extras."""
    with tempfile.TemporaryDirectory() as directory:
        build, out = Path(directory) / "build.in", Path(directory) / "out.txt"
        build.write_text("setuptools>=77\n")  # builds cdxmill itself
        uv = str(Path(sys.executable).with_name("uv"))
        command = [uv, "pip", "compile", "-q", "--no-header", "--no-annotate", "-o", str(out), *options]
        named = [word for extra in extras for word in ("--extra", extra)]
        subprocess.run([*command, *named, "setup.py", str(build)], cwd=ROOT, check=True)
        return out.read_text()


def main() -> int:
    """Write both files."""
    needed: dict[str, list[str]] = defaultdict(list)
    sets = [(), *((extra,) for extra in EXTRAS)]
    with ThreadPoolExecutor(4) as pool:
        for extra, text in zip(
            (_BASE, *EXTRAS), pool.map(lambda one: compiled(one, *_ALL_PYTHONS), sets), strict=True
        ):
            for name in _NAME.findall(text):
                needed[name].append(extra)
    text = compiled(EXTRAS, *_ALL_PYTHONS, "--generate-hashes")
    text = _NAME.sub(lambda found: f"# {' '.join(needed[found[0]])}\n{found[0]}", text)
    (ROOT / "hashes.txt").write_text(f"# Written by bin/lock.py.\n{text}")
    (ROOT / "constraints-lowest.txt").write_text(
        f"# Written by bin/lock.py.\n{compiled(_FOR_USERS, *_LOWEST)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
