"""Compress blocks of 3000 CDX lines with sections of several lengths, and measure size and time.

python -m bench.sections FILE.cdxj.gz...      ratios to libdeflate 6 without sections; "read" is the time to decompress
                                              one section, relative to a whole block
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

from isal import isal_zlib

from bench.compress import LINES, blocks_of
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.sections import parse_sections
from cdxmill.formats.clusters.zipnum import key_of

BASE = Compressor("libdeflate", 6)
WAYS = [
    BASE,
    Compressor("zlib-ng", 5),
    *(Compressor("zlib-ng", level, lines) for level in (5, 6) for lines in (600, 500, 375, 300, 250, 150)),
    Compressor("zlib", 6, 500),
]
ROUNDS = 3


def cpu_of(run: Callable[[], object]) -> float:
    """CPU seconds, the least of some rounds."""
    least = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        run()
        least = min(least, time.process_time() - start)
    return least


def pack(way: Compressor, blocks: list[bytes]) -> list[bytes]:
    return [way.compress_block(text.count(b"\n"), text, key_of(text.partition(b"\n")[0])) for text in blocks]


def sections_of(block: bytes) -> list[bytes]:
    """The compressed sections of a block, or the whole block without its header."""
    sections = parse_sections(block, len(block))
    starts = [10, len(block) - 8] if sections is None else sections.starts
    return [block[start:stop] for start, stop in pairwise(starts)]


def read(sections: list[bytes]) -> None:
    for section in sections:
        isal_zlib.decompressobj(-15).decompress(section)


def main() -> None:
    for name in sys.argv[1:]:
        blocks = blocks_of(Path(name))
        print(f"{name}: {len(blocks)} blocks of at most {LINES} lines\n")
        print(
            "| library, level | lines of a section | size | CPU to compress | read |\n|---|---|---|---|---|"
        )
        base: tuple[float, float, float] | None = None
        for way in WAYS:
            packed = pack(way, blocks)
            cpu = cpu_of(partial(pack, way, blocks))
            sections = [section for block in packed for section in sections_of(block)]
            one = cpu_of(partial(read, sections)) / len(sections)
            size = sum(map(len, packed))
            base = base or (size, cpu, one)
            ratios = f"{size / base[0]:.4f} | {cpu / base[1]:.2f} | {one / base[2]:.3f}"
            print(f"| {way.library} {way.level} | {way.section_lines or '-'} | {ratios} |")
        print()


if __name__ == "__main__":
    main()
