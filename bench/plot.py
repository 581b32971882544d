"""Rates as bars, in an SVG for light and dark pages.

python -m bench.plot FILE      draws the stored results of the last runs
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from bench import results
from bench.contenders import OURS

PANELS = {
    "web": ("Indexing a WARC, one core", "MB of WARC a second"),
    "zipnum": ("A ZipNum cluster of sorted CDXJ, two processes", "MB of .cdx.gz a second"),
    "pipeline": ("From archives to a cluster, two processes", "MB of WARC a second"),
}
NOT_DRAWN = {
    "warcio index",
    "fastwarc index",
    "FastWARC iteration",
    "inflate: isal",
    "inflate: zlib-ng",
    "inflate: zlib",
}
LIMITS = ("inflate", "FastWARC")  # names that start with these are limits, not tools
WIDTH, LABELS, NUMBERS, ROW = 800, 324, 60, 24
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f } .title { font-weight: 600 } .axis { fill: #57606a }
.ours { fill: #0969da } .peer { fill: #8c959f } .limit { fill: none; stroke: #8c959f; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .axis { fill: #9198a1 } .ours { fill: #4493f8 } .peer { fill: #6e7681 }
}
"""


class Bar(NamedTuple):
    name: str
    rate: float

    @property
    def kind(self) -> str:
        return "ours" if self.name == OURS else "limit" if self.name.startswith(LIMITS) else "peer"


def bars_of(section: dict[str, Any]) -> list[Bar]:
    """MB of input per second of wall time, slowest first."""
    tools = {name: costs for name, costs in section["tools"].items() if name not in NOT_DRAWN}
    bars = [Bar(name, section["size"] / 1e6 / median(costs["wall"])) for name, costs in tools.items()]
    return sorted(bars, key=lambda bar: bar.rate)


def draw_panel(top: int, title: str, unit: str, bars: list[Bar]) -> Iterator[str]:
    most = max(bar.rate for bar in bars)
    yield f'<text class="title" x="0" y="{top + 16}">{escape(title)}</text>'
    yield f'<text class="axis" x="{WIDTH}" y="{top + 16}" text-anchor="end">{escape(unit)}</text>'
    for number, bar in enumerate(bars):
        y, width = top + 26 + ROW * number, (WIDTH - LABELS - NUMBERS) * bar.rate / most
        yield f'<text x="{LABELS - 8}" y="{y + 14}" text-anchor="end">{escape(bar.name)}</text>'
        yield f'<rect class="{bar.kind}" x="{LABELS}" y="{y}" width="{width:.1f}" height="{ROW - 6}"/>'
        yield f'<text class="axis" x="{LABELS + width + 6:.1f}" y="{y + 14}">{bar.rate:.3g}</text>'


def draw(measured: dict[str, Any]) -> str:
    """Draw one panel per section that was run. Dashed bars are limits."""
    parts, top = [f"<style>{STYLE}</style>"], 0
    for name, (title, unit) in PANELS.items():
        if name in measured and (bars := bars_of(measured[name])):
            parts += draw_panel(top, title, unit, bars)
            top += 26 + ROW * len(bars) + 22
    size = f'viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}"'
    label = "Rates of cdxmill, of its peers and of the limits"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">'
    return "\n".join([head, *parts, "</svg>\n"])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(results.load(quick=False)))
