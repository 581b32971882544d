"""Size against time to compress, one panel per kind of file, in an SVG for light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, GAP = 800, 250, 60, 30, 70
LABELLED = (1, 3, 6, 9, 12, 15, 19)
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f } .title { font-weight: 600 } .axis { fill: #57606a }
line { stroke: #8c959f; stroke-width: .5 } polyline { fill: none; stroke-width: 1.5 }
.c0 { stroke: #8c959f; fill: #8c959f } .c1 { stroke: #0969da; fill: #0969da }
.c2 { stroke: #1a7f37; fill: #1a7f37 } .c3 { stroke: #bc4c00; fill: #bc4c00 } text.key { stroke: none }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .axis { fill: #9198a1 } }
"""


class Point(NamedTuple):
    """One way: its level, and time and size as ratios to gzip 6."""

    level: int
    time: float
    size: float


Series = dict[str, list[Point]]


def _place(point: Point, top: int, scales: tuple[float, float, float, float]) -> tuple[float, float]:
    first, last, low, high = scales
    x = LEFT + (WIDTH - LEFT - 10) * (math.log(point.time) - first) / (last - first)
    return x, top + HEIGHT * (high - point.size) / (high - low)


def _panel(top: int, title: str, series: Series) -> Iterator[str]:
    points = [point for one in series.values() for point in one]
    times = [math.log(point.time) for point in points]
    low = math.floor(min(point.size for point in points) * 10) / 10
    high = math.ceil(max(point.size for point in points) * 10) / 10
    scales = min(times), max(times), low, high
    yield f'<text class="title" x="0" y="{top - 12}">{escape(title)}: size (gzip 6 = 1) against time to compress (gzip 6 = 1)</text>'
    for step in range(round(low * 10), round(high * 10) + 1):
        _, y = _place(Point(0, 1, step / 10), top, scales)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - 10}" y2="{y:.1f}"/>'
        yield f'<text class="axis" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{step / 10}</text>'
    for time in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100):
        if scales[0] <= math.log(time) <= scales[1]:
            x, _ = _place(Point(0, time, low), top, scales)
            yield f'<text class="axis" x="{x:.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">{time}</text>'
    for number, (name, found) in enumerate(series.items()):
        yield from _line(number, name, found, top, scales)


def _line(
    number: int, name: str, found: list[Point], top: int, scales: tuple[float, float, float, float]
) -> Iterator[str]:
    places = [_place(point, top, scales) for point in found]
    if number:
        yield f'<polyline class="c{number}" style="fill:none" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>'
    for point, (x, y) in zip(found, places, strict=True):
        yield f'<circle class="c{number}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
        if point.level in LABELLED:
            yield f'<text class="axis" x="{x:.1f}" y="{y - 6:.1f}" text-anchor="middle">{point.level}</text>'
    yield f'<text class="key c{number}" x="{LEFT + 180 * number}" y="{top + HEIGHT + 34}">{escape(name)}</text>'


def draw(panels: dict[str, Series]) -> str:
    """Draw the panels below each other. The first series of each has no line: its points are of different libraries."""
    parts, top = [f"<style>{STYLE}</style>"], TOP
    for title, series in panels.items():
        parts += _panel(top, title, series)
        top += HEIGHT + GAP
    size = f'viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}"'
    label = "Size and time of gzip and of each level of zstd"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">'
    return "\n".join([head, *parts, "</svg>\n"])
