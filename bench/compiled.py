"""The compiled part of cdxmill, compiled apart from setup.py: with other options, or from other sources."""

from __future__ import annotations

import subprocess
import sysconfig
import zlib
from pathlib import Path

_COMMAND = (
    *("gcc", "-Wall", "-Wextra", "-Werror", "-fPIC"),
    *(f"-I{sysconfig.get_paths()['include']}", "-DPy_LIMITED_API=0x030B0000"),
)


def stamp_of(sources: Path) -> int:
    """The CRC-32 with which cdxmill/stages/native.py finds out what a module was compiled from."""
    return zlib.crc32(b"".join(path.read_bytes() for path in sorted(sources.glob("*.[ch]"))))


def compile_module(sources: Path, library: Path, *options: str) -> None:
    """Compile all files of a directory to a module."""
    files = map(str, sources.glob("*.c"))
    stamp = f"-DSOURCES={stamp_of(sources)}u"
    subprocess.run([*_COMMAND, stamp, *options, "-shared", *files, "-o", str(library)], check=True)


def assembly_of(source: bytes, directory: Path) -> bytes | None:
    """What a file of this directory is compiled to, all inline functions of a header included. None on errors and warnings."""
    kept = ("-fkeep-inline-functions", "-fkeep-static-functions")
    command = [*_COMMAND, "-O2", *kept, "-iquote", str(directory), "-x", "c", "-S", "-o", "-", "-"]
    done = subprocess.run(command, input=source, capture_output=True, check=False)
    return None if done.returncode else done.stdout
