"""The section `compression`: size and time of each library that can compress a block, at each level."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.compress import BLOCKS, LIBRARIES, LINES
from bench.contenders import ROOT
from bench.corpora import ensure
from bench.report import Passage
from bench.running import show

DEFAULT = "libdeflate 6"
HEADER = ["library, level", "CPU s", "(min-max)", "MB", "compressed to", "CPU x", "size x"]


class Packing(NamedTuple):
    """One run; `cpu` (s) and `size` (bytes) are per million lines."""

    cpu: float
    size: float
    share: float


def pack(library: str, level: int, file: Path) -> Packing:
    command = [sys.executable, "-m", "bench.compress", library, str(level), str(file)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    cpu, size, plain, lines = map(float, done.stdout.split())
    return Packing(cpu / lines * 1e6, size / lines * 1e6, size / plain)


def passage(runs: int, quick: bool) -> Passage:
    file = ensure("cdxj-1", quick)[0]
    kinds = [(name, level) for name, (_, levels) in LIBRARIES.items() for level in levels]
    measured: dict[str, list[Packing]] = {f"{name} {level}": [] for name, level in kinds}
    for number in range(runs):
        for name, level in kinds:
            show(f"{number + 1}/{runs} {name} {level}")
            measured[f"{name} {level}"].append(pack(name, level, file))
    show("")
    facts = (
        f"{BLOCKS} blocks of {LINES} lines, each library alone, one process. Figures are per million lines; "
        f"the last two columns are ratios to {DEFAULT}."
    )
    return Passage("Compression of blocks", facts, make_rows(measured))


def make_rows(measured: dict[str, list[Packing]]) -> list[list[str]]:
    base_cpu, base_size = median(run.cpu for run in measured[DEFAULT]), measured[DEFAULT][0].size
    rows = [HEADER]
    for name, runs in measured.items():
        cpus = [run.cpu for run in runs]
        size, cpu = runs[0].size, median(cpus)
        spread = f"{min(cpus):.2f}-{max(cpus):.2f}"
        ratios = [f"{cpu / base_cpu:.2f}", f"{size / base_size:.3f}"]
        rows.append([name, f"{cpu:.2f}", spread, f"{size / 1e6:.1f}", f"{runs[0].share:.1%}", *ratios])
    return rows
