"""Make the corpora, run cdxmill and its peers on them in turn, and print the cost of each.

Each tool runs once before any runs twice, so a busy period of the machine affects all of them.
CPU is the user and system time of a tool and its children. Memory is the peak of the whole process
tree. Ratios are relative to cdxmill: 3.00 means three times as much. Inputs are read from the page
cache. The last table compares the results with the demands.
"""

from __future__ import annotations

import argparse
import compileall
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

from bench import compression, corpora, counting, demands, machine, plot, results, sampling, tables
from bench.contenders import Section, index_sections, recompressing
from bench.pipeline_section import pipeline_section
from bench.report import Passage, Result, as_passage
from bench.running import run_section
from bench.scanning import scan_sections
from bench.spark_contenders import spark_sections
from bench.zipnum_contenders import linear_section, zipnum_section

ROOT = Path(__file__).parent.parent
MARKS = "<!-- measured -->", "<!-- end of measured -->"
SECTIONS = (
    "index",
    "recompress",
    "zipnum",
    "linear",
    "pipeline",
    "sampling",
    "scan",
    "spark",
    "compression",
    "counting",
    "tables",
)


def sections(options: argparse.Namespace, directory: Path) -> Iterator[Callable[[], Section]]:
    """The sections whose tools run in turn. Calling one makes its corpora."""
    quick, millions = options.quick, options.lines
    if "index" in options.only:
        yield from index_sections(quick)
    if "recompress" in options.only:
        yield lambda: recompressing(quick)
    if "zipnum" in options.only:
        yield lambda: zipnum_section(millions, quick)
    if "linear" in options.only:
        yield lambda: linear_section(quick)
    if "pipeline" in options.only:
        yield lambda: pipeline_section(quick)
    if "sampling" in options.only:
        yield lambda: sampling.section(millions, quick)
    if "counting" in options.only:
        yield from counting.sections(quick)
    if "tables" in options.only:
        yield from tables.sections(quick)
    if "spark" in options.only:
        yield from spark_sections(millions, quick, directory)
    if "scan" in options.only:
        yield from scan_sections(quick)


def passages(options: argparse.Namespace, directory: Path) -> Iterator[Passage]:
    """Each table as soon as it is measured; with --summary only the last one."""
    measured: results.Measured = {}
    for make in sections(options, directory):
        section = demands.without_others(make()) if options.summary else make()
        if not section.tools:
            continue
        found: list[Result] = run_section(section, options.runs, directory)
        measured[section.name] = results.as_numbers(found)
        results.keep(section, found, options.quick)
        yield as_passage(section, found)
    if "sampling" in options.only and not options.summary:
        yield sampling.fractions(options.lines, options.quick, options.runs, directory)
    if "compression" in options.only and not options.summary:
        yield compression.passage(options.runs, options.quick)
    if measured:
        yield demands.passage(measured, options.quick)


def names_of_sections(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(SECTIONS):
        raise argparse.ArgumentTypeError(f"unknown section {min(unknown)}; choose from {', '.join(SECTIONS)}")
    return names


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--runs", type=int, default=3, metavar="N", help="alternating runs (default 3)")
    sections_help = f"sections to run, separated by commas: {', '.join(SECTIONS)}"
    add("--only", type=names_of_sections, default=list(SECTIONS), metavar="SECTION,...", help=sections_help)
    add(
        "--summary",
        action="store_true",
        help="run only the tools of the demands, and print only their table",
    )
    lines_help = "millions of lines for ZipNum and sampling (default 10)"
    add("--lines", type=int, choices=[1, 10], default=10, help=lines_help)
    add("--quick", action="store_true", help="tiny inputs: tests the benchmark itself, measures nothing")
    markdown_help = "also write the tables as Markdown; in an existing page, replace them"
    add("--markdown", type=Path, metavar="FILE", help=markdown_help)
    demands_help = "write the table of demands to this page, not to that of --markdown"
    add("--demands", type=Path, metavar="PAGE", help=demands_help)
    add("--plot", type=Path, metavar="FILE", help="draw the rates of the last run of each section as SVG")
    return parser.parse_args()


def write_markdown(page: Path, tables: str) -> None:
    """Write the tables between the marks of a page; without marks, as the whole file."""
    text = page.read_text() if page.exists() else ""
    before, begin, rest = text.partition(MARKS[0])
    _, end, behind = rest.partition(MARKS[1])
    page.write_text(f"{before}{begin}\n\n{tables}\n\n{end}{behind}" if end else tables + "\n")


def main() -> None:
    options = parse_options()
    compileall.compile_dir(ROOT / "cdxmill", quiet=1)  # as for an installed copy and the peers
    corpora.directory(options.quick).mkdir(parents=True, exist_ok=True)
    head = [*machine.describe(), f"Medians of {options.runs} alternating runs."]
    print("\n".join(head), flush=True)
    markdown = [f"Measured on {date.today()}.", "\n".join(f"- {line}" for line in head)]
    summary = list(markdown) if options.demands else markdown
    with tempfile.TemporaryDirectory(dir=corpora.DIRECTORY, prefix="work-") as directory:
        for passage in passages(options, Path(directory)):
            if not options.summary or passage.title == demands.TITLE:
                print(passage.as_text(), flush=True)
                if passage.title == demands.TITLE:
                    summary.insert(2, passage.as_markdown())
                else:
                    markdown.append(passage.as_markdown())
    if options.markdown:
        write_markdown(options.markdown, "\n\n".join(markdown))
    if options.demands:
        write_markdown(options.demands, "\n\n".join(summary))
    if options.plot:
        options.plot.write_text(plot.draw(results.load(options.quick)))


if __name__ == "__main__":
    main()
