"""Measurements as tables: medians, and their ratios to those of cdxmill."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from bench.contenders import OURS, Section
from bench.measure import Cost

HEADER = ["tool", "CPU s", "(min-max)", "wall s", "peak MB", "CPU x", "wall x", "memory x", "lines"]


class Passage(NamedTuple):
    """A table with its title, the facts above it and a note below it."""

    title: str
    facts: str
    rows: list[list[str]]
    note: str = ""

    def as_text(self) -> str:
        return "\n".join(["", self.title, self.facts, as_text(self.rows), self.note])

    def as_markdown(self) -> str:
        return "\n\n".join([f"### {self.title}", self.facts, as_markdown(self.rows), self.note]).rstrip()


class Result(NamedTuple):
    """All runs of one tool. `lines` is the number of lines that the last run wrote; None if not counted.

    Times are divided by `units`, the units of work. It is 1 if all tools of a section do the same work.
    """

    name: str
    is_limit: bool
    costs: list[Cost]
    lines: int | None
    units: float = 1

    @property
    def failure(self) -> str:
        return next((cost.failure for cost in self.costs if cost.failure), "")

    def medians(self) -> tuple[float, float, float]:
        return (
            median(cost.cpu for cost in self.costs) / self.units,
            median(cost.wall for cost in self.costs) / self.units,
            median(cost.memory for cost in self.costs) / 1e6,
        )


def find_ours(results: list[Result]) -> Result | None:
    return next((result for result in results if result.name == OURS and not result.failure), None)


def make_row(result: Result, ours: Result | None) -> list[str]:
    if result.failure:
        return [result.name, result.failure, *[""] * (len(HEADER) - 2)]
    cpu, wall, memory = result.medians()
    cpus = [cost.cpu / result.units for cost in result.costs]
    pairs = zip(result.medians(), ours.medians(), strict=True) if ours else ()
    ratios = [f"{value / base:.2f}" for value, base in pairs] or ["-"] * 3
    lines = "" if result.lines is None else f"{result.lines:,}"
    return [
        result.name,
        f"{cpu:.2f}",
        f"{min(cpus):.2f}-{max(cpus):.2f}",
        f"{wall:.2f}",
        f"{memory:.0f}",
        *ratios,
        lines,
    ]


def limit_note(results: list[Result]) -> str:
    """Name the cheapest limit, and cdxmill's distance from it; empty if no limit was measured."""
    limits = [result for result in results if result.is_limit and not result.failure]
    if not limits:
        return ""
    best = min(limits, key=lambda result: result.medians()[0])
    note = f"The limit is {best.name}: {best.medians()[0]:.2f} CPU s."
    if ours := find_ours(results):
        note += f" cdxmill takes {ours.medians()[0] / best.medians()[0]:.2f} times as much."
    return note


def make_rows(results: list[Result]) -> list[list[str]]:
    ours = find_ours(results)
    return [HEADER, *(make_row(result, ours) for result in results)]


def as_passage(section: Section, results: list[Result]) -> Passage:
    return Passage(section.title, section.facts, make_rows(results), limit_note(results))


def as_text(rows: list[list[str]]) -> str:
    whole = [row for row in rows if any(row[2:])]  # the reason of a failure would widen its column
    widths = [max(len(row[column]) for row in whole) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(max(widths[0], len(row[0])))]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def as_markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    lines.insert(1, "|---" + "|--:" * (len(rows[0]) - 1) + "|")
    return "\n".join(lines)
