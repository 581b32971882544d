"""Compare changes of a cluster with a rebuild, and with a copy of its directory.

    python -m bench.collections [--lines N] [--keys N] [--rounds N] [--processes N]

The cluster has N lines of 40 CDX files, in 8 shards. Each command has a fresh copy of it:

- rebuild: `zipnum` of all files and of the lines to add
- cp: `cp -r` of the cluster
- add near: as many lines as a thousandth of the cluster, all of one host
- remove near: that host again
- add spread: as many lines as a hundredth of the cluster, evenly over all keys
- remove keys: the captures of many keys, of which half are in the cluster
- compact: after `add spread`

They take turns. CPU seconds are those of a command with its processes. Wall times mean little on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median

import deflate

from bench import machine
from bench.cdx_corpus import make_lines
from bench.measure import Cost, measure

FILES, SHARDS = 40, 8
NEAR, SPREAD = 1000, 100
"""One line in this many is added: all near each other, or evenly over all keys."""
DEMANDS = {
    "add near": ("CPU", "rebuild", 1 / 30),
    "remove near": ("CPU", "rebuild", 1 / 30),
    "add spread": ("CPU", "rebuild", 0.8),
    "add near, wall": ("wall", "cp", 3.0),
    "remove near, wall": ("wall", "cp", 3.0),
}
COMMAND = str(Path(sys.executable).parent / "cdxmill")
NEAR_HOST = "zzz-near.example.com"


def make_inputs(work: Path, lines: int, keys: int) -> None:
    """The CDX files, the lines to add, and the keys to remove."""
    (work / "cdx").mkdir()
    wanted: list[bytes] = []
    for number in range(FILES):
        made = make_lines(Random(number), lines // FILES)
        wanted += [line.split(b" ")[0] for line in made[:: max(1, 2 * lines // keys)]]
        write(work / f"cdx/{number:02d}.cdxj.gz", made)
    write(work / "spread.cdxj.gz", make_lines(Random(FILES), lines // SPREAD))
    near = [
        b'com,example,zzz-near)/%07d 20240101000000 {"filename": "near.warc.gz", "offset": "%d"}\n'
        % (number, number)
        for number in range(lines // NEAR)
    ]
    write(work / "near.cdxj.gz", near)
    absent = [b"%b,absent" % key for key in wanted[: keys // 2]]
    found = [*wanted[: keys // 2], *absent]
    Random(1).shuffle(found)
    (work / "keys").write_bytes(b"".join(key + b"\n" for key in found))


def write(path: Path, lines: Sequence[bytes]) -> None:
    """Write a gzipped file."""
    path.write_bytes(deflate.gzip_compress(b"".join(lines), 6))


def commands(work: Path, processes: int) -> dict[str, tuple[str, list[str]]]:
    """For each contender: the cluster that it changes a copy of, and its command."""
    running, cluster = ["-q", "-p", str(processes)], str(work / "out")
    new = [str(work / "near.cdxj.gz"), str(work / "spread.cdxj.gz")]
    remove = [COMMAND, "remove", *running, "--keep-old", "0", cluster]
    build = [COMMAND, "zipnum", *running, "-s", str(SHARDS), "-o"]
    return {
        "rebuild": ("", [*build, cluster, str(work / "cdx"), *new]),
        "cp": ("", ["cp", "-r", str(work / "cluster"), cluster]),
        "add near": ("cluster", [COMMAND, "add", *running, cluster, "--cdx", new[0]]),
        "remove near": ("near", [*remove, f"{NEAR_HOST}/*"]),
        "add spread": ("cluster", [COMMAND, "add", *running, cluster, "--cdx", new[1]]),
        "remove keys": ("cluster", [*remove, "--keys", str(work / "keys")]),
        "compact": ("spread", [COMMAND, "compact", *running, cluster]),
    }


def prepare(work: Path, processes: int) -> None:
    """The clusters that are changed: as it was built, and with lines added."""
    running = ["-q", "-p", str(processes)]
    build = [COMMAND, "zipnum", *running, "-s", str(SHARDS), "-o", str(work / "cluster"), str(work / "cdx")]
    subprocess.run(build, check=True)
    for name in ("near", "spread"):
        shutil.copytree(work / "cluster", work / name)
        call = [COMMAND, "add", *running, str(work / name), "--cdx", str(work / f"{name}.cdxj.gz")]
        subprocess.run(call, check=True)


def run(work: Path, source: str, command: list[str]) -> Cost:
    """Run a command, with a fresh copy of the cluster that it changes."""
    shutil.rmtree(work / "out", ignore_errors=True)
    if source:
        shutil.copytree(work / source, work / "out")
    os.sync()
    found = measure(command, work / "log", os.sched_getaffinity(0), os.environ)
    if found.failure:
        raise RuntimeError(f"{' '.join(command)}: {found.failure}")
    return found


def show(results: dict[str, list[Cost]]) -> None:
    """Print the medians, and the ratios that are demanded."""
    cpu = {name: median(one.cpu for one in costs) for name, costs in results.items()}
    wall = {name: median(one.wall for one in costs) for name, costs in results.items()}
    for name, costs in results.items():
        memory = max(one.memory for one in costs) / 1e6
        print(f"{name:12} {cpu[name]:8.2f} CPU s {wall[name]:8.2f} s {memory:7.0f} MB")
    for name, (kind, other, most) in DEMANDS.items():
        found = cpu if kind == "CPU" else wall
        ratio = found[name.partition(",")[0]] / found[other]
        print(f"{name:18} {ratio:7.4f} of {other} ({kind}), demanded at most {most:.4f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    print("\n".join(machine.describe()))
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        make_inputs(work, options.lines, options.keys)
        prepare(work, options.processes)
        results: dict[str, list[Cost]] = {}
        for _ in range(options.rounds):
            for name, (source, command) in commands(work, options.processes).items():
                results.setdefault(name, []).append(run(work, source, command))
        show(results)
    print(f"load at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
