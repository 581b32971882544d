"""The files beside the shards of a very large cluster, from made-up parts: one domain has a fifth of all lines.

    python -m bench.made_up_index [SHARDS [BLOCKS]]

Joins the parts as every engine does, checks the result as a rerun does, publishes the index, and looks up the domain. Prints
CPU seconds and the peak of memory of each. The shards are empty files of the right size.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cdxmill.cluster.write import fault_of, write_cluster_files
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import part_name, shard_name
from cdxmill.storage.location import locate

_LINES = 3000
_DOMAIN = 5
"""One block in this many is of one domain."""


def _key(shard: int, block: int, shards: int) -> bytes:
    """The first key of a block; those of a fifth of the shards are of one domain."""
    host = b"com,large" if shard < shards // _DOMAIN else b"org,host%05d" % shard
    return b"%b)/a/path/of/usual/length/%05d/%07d 20260101000000" % (host, shard, block)


def _make_parts(directory: Path, shards: int, blocks: int) -> list[ShardEntry]:
    entries = []
    for shard in range(shards):
        name = shard_name(shard)
        rows = (
            b"%b\t%b\t%d\t%d\n" % (_key(shard, block, shards), name.encode(), 200_000 * block, 200_000)
            for block in range(blocks)
        )
        (directory / part_name(shard)).write_bytes(b"".join(rows))
        with (directory / name).open("wb") as file:
            file.truncate(200_000 * blocks)
        entries.append(ShardEntry(name, 200_000 * blocks, blocks * _LINES, blocks, "0" * 64))
    return entries


def cost_of(*words: str) -> str:
    """CPU and memory of a cdxmill command. Raises SystemExit if it fails."""
    process = subprocess.Popen([sys.executable, "-m", "cdxmill", *words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words[0]} ended with {process.returncode}")
    return f"{words[0]}: {usage.ru_utime + usage.ru_stime:.1f} CPU s, peak {usage.ru_maxrss >> 10} MiB"


def main(shards: int = 1000, blocks: int = 1_000_000) -> None:
    """Make the parts, join and check them, publish the index and search it, and print what that cost."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "C"
        directory.mkdir()
        entries = _make_parts(directory, shards, blocks // shards)
        points = [_key(shard, 0, shards) for shard in range(1, shards)]
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        there = locate(directory)
        write_cluster_files(there, entries, points, Compressor(), _LINES, locate(directory))
        fault = fault_of(there, index_only=True)
        seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if fault is not None:
            raise SystemExit(fault)
        size = (directory / "cluster.idx").stat().st_size
        print(f"{shards} shards, {blocks} blocks, cluster.idx of {size >> 20} MiB")
        print(
            f"join and check: {seconds:.1f} CPU s, peak {peak >> 10} MiB, {(peak - before) >> 10} more than before"
        )
        print(cost_of("publish", "-q", "--index-only", str(directory), f"{name}/published"))
        print(cost_of("lookup", "--show-num-pages", str(directory), "large.com/*"))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
