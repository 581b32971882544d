"""Compare an overlay with a rewrite, and questions to a cluster with 30 overlays with those to one without.

    python -m bench.overlays [--lines N] [--rounds N]

The cluster has N lines of 40 files in 8 shards. As many lines as a hundredth of it, evenly over all keys, are added as an overlay and by a
rewrite. Then the cluster gets 30 overlays of a tenth of these lines each, and is asked for single URLs, of which all are in its
shards. They take turns. CPU seconds are those of a command, or of all questions of a round.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from statistics import median

import cdxmill
from bench import machine
from bench.cdx_corpus import make_lines
from bench.collections import COMMAND, FILES, write
from bench.measure import measure

OVERLAYS, QUESTIONS = 30, 1000
DEMANDS = {"overlay": 1 / 15, "30 overlays": 1.3}


def make(work: Path, lines: int) -> list[str]:
    """The cluster, the lines to add, and the same cluster with 30 overlays. Returns URLs."""
    picked: list[bytes] = []
    (work / "cdx").mkdir()
    for number in range(FILES):
        made = make_lines(Random(-1 - number), lines // FILES)
        picked += Random(number).sample(made, QUESTIONS // FILES)
        write(work / f"cdx/{number:02d}.cdxj.gz", made)
    write(work / "spread.cdxj.gz", make_lines(Random(1), lines // 100))
    cdxmill.zipnum(work / "cdx", output=work / "none", shards=8)
    shutil.copytree(work / "none", work / "many")
    for number in range(OVERLAYS):
        write(work / "some.cdxj.gz", make_lines(Random(number + 2), lines // 1000))
        cdxmill.add(work / "many", work / "some.cdxj.gz", cdx=True, mode="overlay", keep_old=0)
    return [line.split(b'"url": "', 1)[1].split(b'"')[0].decode() for line in picked]


def adding(work: Path, mode: str) -> float:
    """The CPU seconds of an addition to a copy of the cluster."""
    shutil.rmtree(work / "copy", ignore_errors=True)
    shutil.copytree(work / "none", work / "copy")
    command = [COMMAND, "add", "-q", "-p", "1", "--mode", mode, str(work / "copy"), "--cdx"]
    log = work / "log"
    done = measure([*command, str(work / "spread.cdxj.gz")], log, os.sched_getaffinity(0), os.environ)
    if done.failure:
        raise RuntimeError(done.failure)
    return done.cpu


def asking(opened: cdxmill.Cluster, urls: list[str]) -> float:
    """The CPU seconds of all questions."""
    start = time.process_time()
    for url in urls:
        for _ in opened.lines(url):
            pass
    return time.process_time() - start


def main() -> int:
    """Print the table; status 1 if a demand is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    print("\n".join(machine.describe()))
    found: dict[str, list[float]] = {name: [] for name in ("rewrite", "overlay", "none", "30 overlays")}
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        urls = make(work, asked.lines)
        with cdxmill.Cluster(work / "none") as none, cdxmill.Cluster(work / "many") as many:
            for _ in range(asked.rounds):
                for mode in ("rewrite", "overlay"):
                    found[mode].append(adding(work, mode))
                found["none"].append(asking(none, urls))
                found["30 overlays"].append(asking(many, urls))
    return report({name: median(times) for name, times in found.items()})


def report(cpu: dict[str, float]) -> int:
    """Print CPU seconds and ratios."""
    status = 0
    for name, base in (("overlay", "rewrite"), ("30 overlays", "none")):
        ratio = cpu[name] / cpu[base]
        status |= ratio > DEMANDS[name]
        print(f"{base} {cpu[base]:.3f} s, {name} {cpu[name]:.3f} s: {ratio:.3f}, at most {DEMANDS[name]:.3f}")
    return status


if __name__ == "__main__":
    sys.exit(main())
