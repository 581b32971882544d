"""Decompress the gzip members of WARCs and do nothing else: the limit of any indexer in Python.

    python -m bench.inflate LIBRARY FILE...

Each library checks the CRC of every member. Libraries that cannot read streams get the offsets of the members.
"""

from __future__ import annotations

import mmap
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.members import load


def each_member(inflate: Callable[[memoryview, int], object]) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
            memoryview(data) as view,
        ):
            for start, end, size in load(path):
                inflate(view[start:end], size)

    return run


def run_isal() -> Callable[[Path], None]:
    from isal import isal_zlib

    return each_member(lambda member, size: isal_zlib.decompress(member, 31, size))


def run_zlib_ng() -> Callable[[Path], None]:
    from zlib_ng import zlib_ng

    return each_member(lambda member, size: zlib_ng.decompress(member, 31, size))


def run_zlib() -> Callable[[Path], None]:
    return each_member(lambda member, size: zlib.decompress(member, 31, size))


def run_libdeflate() -> Callable[[Path], None]:
    import deflate

    return each_member(deflate.gzip_decompress)


def run_isal_stream() -> Callable[[Path], None]:
    from isal import igzip

    def run(path: Path) -> None:
        buffer = bytearray(1 << 20)
        with igzip.open(path) as file:  # type: ignore[no-untyped-call]
            while file.readinto(buffer):
                pass

    return run


def run_fastwarc(parse_http: bool) -> Callable[[Path], None]:
    from fastwarc.warc import ArchiveIterator

    def run(path: Path) -> None:
        with path.open("rb") as file:
            for _record in ArchiveIterator(file, parse_http=parse_http):
                pass

    return run


# Each library is imported when it runs, so that none pays for the import of another.
LIBRARIES: dict[str, Callable[[], Any]] = {
    "isal": run_isal,
    "isal-stream": run_isal_stream,
    "zlib-ng": run_zlib_ng,
    "zlib": run_zlib,
    "libdeflate": run_libdeflate,
    "fastwarc": lambda: run_fastwarc(False),
    "fastwarc-http": lambda: run_fastwarc(True),
}

if __name__ == "__main__":
    run = LIBRARIES[sys.argv[1]]()
    for name in sys.argv[2:]:
        run(Path(name))
