"""Decompress CDX files and compress them again in blocks of about 3000 lines: the limit of any ZipNum writer.

    python -m bench.recompress OUT_DIR PROCESSES FILE...

It uses the libraries and the level of cdxmill (isal; libdeflate, 6). It neither sorts nor parses the lines.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import deflate
from isal import igzip

LINES = 3000
LEVEL = 6
READ = 1 << 22


def cut_blocks(path: Path) -> Iterator[bytes]:
    """The content of a file in pieces of whole lines, each as large as 3000 lines of average length."""
    rest, size = b"", 0
    with igzip.open(path) as file:  # type: ignore[no-untyped-call]
        while piece := file.read(READ):
            rest += piece
            size = size or LINES * len(rest) // max(1, rest.count(b"\n"))
            start = 0
            while (end := rest.find(b"\n", start + size - 1) + 1) > 0:
                yield rest[start:end]
                start = end
            rest = rest[start:]
    if rest:
        yield rest


def recompress(path: Path, directory: Path) -> None:
    with (directory / path.name).open("wb") as file:
        for block in cut_blocks(path):
            file.write(deflate.gzip_compress(block, LEVEL))


def main() -> None:
    directory, processes, files = Path(sys.argv[1]), int(sys.argv[2]), [Path(name) for name in sys.argv[3:]]
    directory.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(recompress, files, [directory] * len(files)))


if __name__ == "__main__":
    main()
