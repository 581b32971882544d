"""A packed environment as docs/engines.md describes it, made of this Python, and nodes that have no Python of their own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

BARE_NODE = Path(__file__).with_name("bare_node.sh")
_WRAPPER = """#!/bin/sh
# A Python of python-build-standalone or conda finds its libraries itself.
home=$(dirname "$(dirname "$(readlink -f "$0")")")
LD_LIBRARY_PATH=$home/lib PYTHONHOME=$home exec "$home/bin/python3" "$@"
"""
_LEFT_OUT = (
    "site-packages",
    "test",
    "tests",
    "__pycache__",
    "idlelib",
    "tkinter",
    "ensurepip",
    "config-*",
    "*.a",
)


def pack(directory: Path) -> Path:
    """An archive with this Python and the libraries that cdxmill needs, with the program at bin/python."""
    home = directory / "environment"
    lib = home / f"lib/{Path(sysconfig.get_path('stdlib')).name}"
    shutil.copytree(
        sysconfig.get_path("stdlib"), lib, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True
    )
    for name in needed("cdxmill") - {"cdxmill"}:
        copy_distribution(name, lib / "site-packages")
    (home / "bin").mkdir()
    shutil.copy2(Path(sys.executable).resolve(), home / "bin/python3")
    for library in Path(sysconfig.get_config_var("LIBDIR")).glob("libpython3*.so*"):
        shutil.copy2(library, home / "lib", follow_symlinks=False)
    (home / "bin/python").write_text(_WRAPPER)
    (home / "bin/python").chmod(0o755)
    archive = directory / "environment.tar.gz"
    subprocess.run(["tar", "-I", "gzip -1", "-cf", archive, "-C", home, "."], check=True)
    shutil.rmtree(home)
    return archive


def needed(name: str) -> set[str]:
    """The names of a distribution and of all that it requires here, without extras."""
    found = {name}
    for text in distribution(name).requires or []:
        requirement, _, marker = text.partition(";")
        if "extra" not in marker:
            with suppress(PackageNotFoundError):  # for other versions of Python
                found |= needed(re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0])
    return found


def copy_distribution(name: str, directory: Path) -> None:
    """Copy the files that pip has installed for a distribution, without its programs."""
    for file in distribution(name).files or []:
        source = Path(str(file.locate()))
        if ".." not in file.parts and "__pycache__" not in file.parts and source.is_file():
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, directory / file)
