"""Makes the corpora, runs cdxmill and its peers on them in turn, prints what each costs.

Every tool runs once before any runs twice, so that a busy spell of the machine meets them all.
CPU is user and system time of a tool with its children; memory the peak of the whole process tree;
ratios are to cdxmill: 3.00 means three times as much. Inputs are read from the page cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from isal import igzip

from bench import corpora, machine, report
from bench.contenders import Section, Tool, index_sections, zipnum_section
from bench.measure import Cost, measure
from bench.report import Result

ROOT = Path(__file__).parent.parent


def clean(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def count_lines(folder: Path, patterns: tuple[str, ...]) -> int | None:
    files = [file for pattern in patterns for file in folder.glob(pattern) if file.is_file()]
    return sum(map(count_file, files)) if files else None


def count_file(file: Path) -> int:
    with file.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = igzip.open(raw) if is_gzip else raw  # type: ignore[no-untyped-call]
        return sum(piece.count(b"\n") for piece in iter(lambda: stream.read(1 << 20), b""))


def run_tool(tool: Tool, folder: Path, cpus: set[int]) -> Cost:
    command = tool.command(clean(folder / "out"))
    if shutil.which(command[0]) is None:
        return Cost(0, 0, 0, f"{Path(command[0]).name} is not installed")
    scratch = clean(folder / "tmp")
    env = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": str(ROOT)}
    return measure(command, folder / "log", cpus, env)


def show(progress: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{progress:70}\r", end="", file=sys.stderr, flush=True)


def warm(files: list[Path]) -> None:
    """Brings the inputs into the page cache, so that no tool waits for the disk for the others."""
    for file in files:
        with file.open("rb") as raw:
            while raw.read(1 << 20):
                pass


def run_section(section: Section, runs: int, folder: Path) -> list[Result]:
    cpus = set(sorted(os.sched_getaffinity(0))[-section.cores :])
    costs: dict[str, list[Cost]] = {tool.name: [] for tool in section.tools}
    lines: dict[str, int | None] = {}
    warm(section.files)
    for number in range(runs):
        for tool in section.tools:
            show(f"{number + 1}/{runs} {tool.name}")
            costs[tool.name].append(run_tool(tool, folder, cpus))
            if number == runs - 1:
                lines[tool.name] = count_lines(folder / "out", tool.outputs)
    show("")
    return [Result(tool.name, tool.is_limit, costs[tool.name], lines[tool.name]) for tool in section.tools]


def choose_sections(options: argparse.Namespace) -> list[Callable[[], Section]]:
    sections = [] if options.only == "zipnum" else index_sections(options.quick)
    if options.only != "index":
        sections.append(lambda: zipnum_section(options.lines, options.quick))
    return sections


def write_report(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str]]:
    """Pairs of the same passage as text and as Markdown, each as soon as it is measured."""
    head = [*machine.describe(), f"Medians of {options.runs} alternating runs."]
    yield "\n".join(head), "\n".join(f"- {line}" for line in head)
    for make_section in choose_sections(options):
        section = make_section()
        results = run_section(section, options.runs, folder)
        rows, note = report.make_rows(results), report.limit_note(results)
        yield (
            f"\n{section.title}\n{section.facts}\n{report.as_text(rows)}\n{note}",
            f"\n### {section.title}\n\n{section.facts}\n\n{report.as_markdown(rows)}\n\n{note}",
        )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="alternating runs (default 5)")
    parser.add_argument("--only", choices=["index", "zipnum"], help="one half of the measurements")
    parser.add_argument("--lines", type=int, choices=[1, 10], default=1, help="millions of lines for ZipNum")
    parser.add_argument("--quick", action="store_true", help="tiny inputs: shows that all runs, not how fast")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the tables there as Markdown too"
    )
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    corpora.FOLDER.mkdir(exist_ok=True)
    markdown = []
    with tempfile.TemporaryDirectory(dir=corpora.FOLDER, prefix="work-") as folder:
        for text, passage in write_report(options, Path(folder)):
            print(text, flush=True)
            markdown.append(passage)
    if options.markdown:
        options.markdown.write_text("\n".join(markdown) + "\n")


if __name__ == "__main__":
    main()
