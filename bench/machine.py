"""The machine of a measurement: processor, Python, libraries."""

from __future__ import annotations

import os
import platform
import subprocess
import zlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = "cdxmill pywb cdxj-indexer warcio fastwarc isal zlib-ng deflate stringzilla mrjob".split()  # noqa: SIM905


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def package_version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} absent"


def program_version(name: str) -> str:
    try:
        output = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return f"{name} absent"
    return output.splitlines()[0]


def describe() -> list[str]:
    """The first lines of a report."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    libraries = ", ".join([*map(package_version, PACKAGES), f"zlib {zlib.ZLIB_RUNTIME_VERSION}"])
    return [
        f"Machine: {len(os.sched_getaffinity(0))} cores of {cpu_model()}, {memory:.0f} GB, "
        f"{platform.system()} {platform.release()}; load at the start {os.getloadavg()[0]:.1f}",
        f"Python {platform.python_version()}; {libraries}",
        "; ".join(program_version(name) for name in ("sort", "gzip", "pigz")),
    ]
