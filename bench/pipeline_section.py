"""The section `pipeline`: archives to a cluster, by `cdxmill build` and by a shell pipeline."""

from __future__ import annotations

from pathlib import Path

from bench.contenders import OURS, Section, Tool, copies
from bench.corpora import ensure
from bench.pipeline import contenders

OUTPUTS = ("cdx-*.gz", "c/cdx-*.gz")


def pipeline_section(quick: bool) -> Section:
    """All WARCs, four times each. The first contender is cdxmill."""
    originals = [file for name in ("web", "web-plain", "web-large") for file in ensure(name, quick)]
    files = copies(originals, 4 * len(originals))
    names = [OURS, *(name for name, _ in contenders(Path("out"), files)[1:])]

    def tool(number: int) -> Tool:
        return Tool(names[number], lambda out: contenders(out, files)[number][1], OUTPUTS)

    tools = [tool(number) for number in range(len(names))]
    facts = f"{len(originals)} WARCs, four times each, {sum(file.stat().st_size for file in files) / 1e6:,.1f} MB in all."
    return Section("pipeline", "Archives to a cluster, two processes", facts, 2, files, tools)
