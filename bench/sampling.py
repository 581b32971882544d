"""The section `sampling`: the cost of the exact sample, and the quality of a sample of a part of the files."""

from __future__ import annotations

import math
from bisect import bisect_left
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from isal import igzip

from bench.contenders import OURS, Section, Tool, inflater, program
from bench.corpora import ensure
from bench.report import Passage
from bench.running import processors, run_tool, show, warm
from bench.zipnum_contenders import size_of
from cdxmill.formats.clusters.split_points import parse_text

SHARDS, FRACTIONS = (25, 300), (0.01, 0.05, 0.2, 1.0)
LIMIT = "inflate: isal, finding the members itself"
HEADER = ["shards, part of the files", "files", "CPU s", "wall s", "largest shard / mean", "(min-max)"]


def sampler(name: str, files: list[Path], *options: str) -> Tool:
    names = [str(file) for file in files]
    return Tool(
        name, lambda out: [program("cdxmill"), "sample", *options, "-o", str(out / "splits.txt"), *names]
    )


def section(millions: int, quick: bool) -> Section:
    files = ensure(f"cdxj-{millions}", quick)
    tools = [
        sampler(OURS, files, "-p", "1", "-s", "25"),
        sampler("cdxmill, 300 shards", files, "-p", "1", "-s", "300"),
        inflater("isal-stream", files, LIMIT),
    ]
    count = "tiny inputs" if quick else f"{millions} million lines"
    return Section("sampling", f"Sampling, {count}, one core, 25 shards", size_of(files), 1, files, tools)


class Sampled(NamedTuple):
    cpu: float
    wall: float
    points: list[bytes]


def sample_once(files: list[Path], shards: int, fraction: float, seed: int, directory: Path) -> Sampled:
    options = ["-q", "-p", "2", "-s", str(shards), "--fraction", str(fraction), "--seed", str(seed)]
    cost = run_tool(sampler("", files, *options), directory, processors(2))
    if cost.failure:
        raise SystemExit(f"cdxmill sample: {cost.failure}")
    return Sampled(cost.cpu, cost.wall, parse_text((directory / "out/splits.txt").read_bytes()))


def count_shards(file: Path, all_points: list[list[bytes]]) -> list[list[int]]:
    """The number of lines of a sorted file that each shard gets, for each list of split points."""
    with igzip.open(file) as lines:  # type: ignore[no-untyped-call]
        found = lines.read().splitlines()
    ends = [[0, *(bisect_left(found, point) for point in points), len(found)] for points in all_points]
    return [[high - low for low, high in pairwise(row)] for row in ends]


def worst_shards(files: list[Path], all_points: list[list[bytes]]) -> list[float]:
    """The ratio of the largest shard to the mean, in lines, for each list of split points."""
    with ProcessPoolExecutor(2) as pool:
        counted = list(pool.map(partial(count_shards, all_points=all_points), files))
    totals = [list(map(sum, zip(*rows, strict=True))) for rows in zip(*counted, strict=True)]
    return [max(lines) * len(lines) / sum(lines) for lines in totals]


def fractions(millions: int, quick: bool, runs: int, directory: Path) -> Passage:
    """Sample with fractions of the files. Each run has another seed, so it reads other files and lines."""
    files = ensure(f"cdxj-{millions}", quick)
    warm(files)
    kinds = [(shards, fraction) for shards in SHARDS for fraction in FRACTIONS]
    found: dict[tuple[int, float], list[Sampled]] = {kind: [] for kind in kinds}
    for seed in range(runs):
        for shards, fraction in kinds:
            show(f"{seed + 1}/{runs} {shards} shards, {fraction:.0%}")
            found[shards, fraction].append(sample_once(files, shards, fraction, seed, directory))
    show("")
    worst = worst_shards(files, [run.points for kind in kinds for run in found[kind]])
    rows = [HEADER]
    for number, (shards, fraction) in enumerate(kinds):
        ratios = worst[number * runs : (number + 1) * runs]
        rows.append(
            make_row(
                f"{shards}, {fraction:.0%}", math.ceil(len(files) * fraction), found[shards, fraction], ratios
            )
        )
    facts = f"{size_of(files)}, two processes, another seed for each run."
    return Passage("Sampling, a part of the files", facts, rows)


def make_row(name: str, files: int, runs: list[Sampled], ratios: list[float]) -> list[str]:
    cpu, wall = median(run.cpu for run in runs), median(run.wall for run in runs)
    spread = f"{min(ratios):.3f}-{max(ratios):.3f}"
    return [name, f"{files}", f"{cpu:.2f}", f"{wall:.2f}", f"{median(ratios):.3f}", spread]
