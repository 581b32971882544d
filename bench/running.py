"""Run the tools of a section in turn: each tool once before any runs twice."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from isal import igzip

from bench.contenders import ROOT, Section, Tool
from bench.hadoop_run import busy
from bench.measure import Cost, measure
from bench.report import Result


def clean(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def count_lines(directory: Path, patterns: tuple[str, ...]) -> int | None:
    files = [file for pattern in patterns for file in directory.glob(pattern) if file.is_file()]
    return sum(map(count_file, files)) if files else None


def count_file(file: Path) -> int:
    with file.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = igzip.open(raw) if is_gzip else raw  # type: ignore[no-untyped-call]
        return sum(piece.count(b"\n") for piece in iter(lambda: stream.read(1 << 20), b""))


def run_tool(tool: Tool, directory: Path, cpus: set[int]) -> Cost:
    """Run a tool once. It writes to `directory`/out."""
    out = clean(directory / "out")
    if tool.absent:
        return Cost(0, 0, 0, f"skipped: {tool.absent}")
    command = tool.command(out)
    if shutil.which(command[0]) is None:
        return Cost(0, 0, 0, f"skipped: {Path(command[0]).name} is not installed")
    scratch = clean(directory / "tmp")
    os.sync()  # or the kernel writes the output of the previous tool meanwhile
    env = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": str(ROOT)}
    before = busy()
    cost = measure(command, directory / "log", cpus, env)
    return cost._replace(cpu=busy() - before) if tool.whole_machine else cost


def show(progress: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{progress:70}\r", end="", file=sys.stderr, flush=True)


def warm(files: list[Path]) -> None:
    """Read the inputs into the page cache, so that no tool has to wait for the disk."""
    for file in files:
        with file.open("rb") as raw:
            while raw.read(1 << 20):
                pass


def processors(count: int) -> set[int]:
    return set(sorted(os.sched_getaffinity(0))[-count:])


def run_section(section: Section, runs: int, directory: Path) -> list[Result]:
    """Run all tools `runs` times. The lines that a tool wrote are counted after its last run."""
    cpus = processors(section.cores)
    costs: dict[str, list[Cost]] = {tool.name: [] for tool in section.tools}
    lines: dict[str, int | None] = {}
    warm(section.files)
    for number in range(runs):
        for tool in section.tools:
            show(f"{number + 1}/{runs} {tool.name}")
            costs[tool.name].append(run_tool(tool, directory, cpus))
            if number == runs - 1:
                lines[tool.name] = count_lines(directory / "out", tool.outputs)
    show("")
    return [
        Result(tool.name, tool.is_limit, costs[tool.name], lines[tool.name], tool.units)
        for tool in section.tools
    ]
