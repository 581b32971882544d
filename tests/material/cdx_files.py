"""CDX files for the tests, and their sorted lines by `sort`."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path


def cdxj(key: str, timestamp: int = 20200101000000, rest: str = "{}") -> bytes:
    """A CDXJ line."""
    return f"{key} {timestamp} {rest}".encode()


def many_lines(count: int, seed: int = 1, hosts: int = 50) -> list[bytes]:
    """Unsorted lines of about 110 bytes. A few hosts have most of them."""
    source = random.Random(seed)
    lines = []
    for _ in range(count):
        host, page = int(hosts * source.random() ** 3), source.randrange(10**6)
        when = 20200101000000 + source.randrange(10**6)
        lines.append(
            b'com,host%03d)/page/%06d %d {"url": "http://host%d.com/page/%d", "status": "200"}'
            % (host, page, when, host, page)
        )
    return lines  # fmt: skip


def as_text(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def write_plain(path: Path, lines: Iterable[bytes]) -> Path:
    path.write_bytes(as_text(lines))
    return path


def write_gzip(path: Path, lines: Sequence[bytes], members: int = 1) -> Path:
    """Write a gzip file with the given number of members, divided anywhere."""
    text = as_text(lines)
    size = max(1, len(text) // members)
    starts = [size * number for number in range(members)]
    parts = [text[start:stop] for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]
    path.write_bytes(b"".join(gzip.compress(part, 1) for part in parts))
    return path


def content_of(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def sort_unique(paths: Iterable[Path]) -> bytes:
    """The output of `LC_ALL=C sort -u` for all lines, without header lines and empty lines."""
    lines = [line for path in paths for line in content_of(path).split(b"\n")]
    wanted = as_text(line for line in lines if line and not line.startswith(b" CDX"))
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(
        ["sort", "-u"], input=wanted, env=environment, capture_output=True, check=True
    ).stdout
