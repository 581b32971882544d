"""Compress blocks of 3000 CDX lines with one library at one level, and measure it.

python -m bench.compress LIBRARY LEVEL FILE      prints CPU seconds, compressed bytes, uncompressed bytes, lines
"""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import deflate
from isal import igzip, isal_zlib
from zlib_ng import zlib_ng

LINES, BLOCKS = 3000, 20
GZIP = 31  # zlib's word for a gzip header and trailer
# Each library's function that makes a gzip member, and its levels.
LIBRARIES: dict[str, tuple[Callable[[bytes, int], bytes | bytearray], Sequence[int]]] = {
    "libdeflate": (deflate.gzip_compress, range(1, 13)),
    "isal": (lambda data, level: isal_zlib.compress(data, level, GZIP), range(4)),
    "zlib-ng": (lambda data, level: zlib_ng.compress(data, level, GZIP), (1, 6, 9)),
    "zlib": (lambda data, level: zlib.compress(data, level, GZIP), (1, 6, 9)),
}


def blocks_of(file: Path) -> list[bytes]:
    with igzip.open(file) as lines:  # type: ignore[no-untyped-call]
        blocks = (b"".join(islice(lines, LINES)) for _ in range(BLOCKS))
        return [block for block in blocks if block]


def main() -> None:
    pack, level = LIBRARIES[sys.argv[1]][0], int(sys.argv[2])
    blocks = blocks_of(Path(sys.argv[3]))
    start = time.process_time()
    size = sum(len(pack(block, level)) for block in blocks)
    cpu = time.process_time() - start
    print(cpu, size, sum(map(len, blocks)), sum(block.count(b"\n") for block in blocks))


if __name__ == "__main__":
    main()
