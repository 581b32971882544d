"""The plots of a report's page, as SVG and HTML. All texts are escaped here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_MOST_BARS = 240
_MONTHS = 36
"""A longer time is shown in years."""
_SPAN = 80
"""Years are shown without gaps if there are not more of them."""
_MIMES = 6
_HEIGHT = 100.0
_WIDEST = 110
"""Pixels of a bar at most: one month alone would fill the page."""

Stacks = dict[str, dict[str, int]]
"""For each time, the captures by a name."""


def shown(text: str, most: int = 120) -> str:
    """A text for the page: cut and escaped."""
    return escape(text if len(text) <= most else text[: most - 1] + "\u2026")


def bars(rows: Iterable[dict[str, Any]]) -> str:
    """Horizontal bars of captures, the longest first."""
    found = list(rows)
    most = max((row["captures"] for row in found), default=0) or 1
    return "".join(
        f'<div class="bar"><span title="{shown(row["name"])}">{shown(row["name"])}</span>'
        f'<i style="width:{100 * row["captures"] / most:.1f}%"></i><em>{row["captures"]:,}</em></div>'
        for row in found
    )


def over_time(by: dict[str, Any]) -> str:
    """The captures of each month or year. The first, the middle and the last have a label.

    >>> plot = over_time({"month": {"rows": [{"name": name, "captures": 1} for name in ("202001", "202004")]}})
    >>> [f"<span>2020-0{month}</span>" in plot for month in range(1, 5)]
    [True, False, True, True]
    """
    names, counts = _times(by)
    return _stacked(names, {name: {"": counts.get(name, 0)} for name in names}, [""])


def mime_over_time(by: dict[str, Any]) -> str:
    """The captures of each month or year, by MIME type: the most frequent ones, and all others."""
    names, _ = _times(by)
    size = len(names[0]) if names else 4
    top = [row["name"] for row in by["mime"]["rows"][:_MIMES]]
    stacks: Stacks = {name: defaultdict(int) for name in names}
    for row in by["mime_by_month"]["rows"]:
        time, mime = _dashed(row["name"][:6])[:size], row["name"][6:]
        if time in stacks:
            stacks[time][mime if mime in top else "other"] += row["captures"]
    key = "".join(
        f'<li><i style="background:var(--c{number})"></i>{shown(mime)}</li>'
        for number, mime in enumerate([*top, "other"])
    )
    return f'{_stacked(names, stacks, [*top, "other"])}<ul class="key">{key}</ul>'


def _dashed(month: str) -> str:
    return f"{month[:4]}-{month[4:]}"


def _times(by: dict[str, Any]) -> tuple[list[str], dict[str, int]]:
    """The names of the months or years, without gaps if that is possible, and their captures."""
    months = {_dashed(row["name"]): row["captures"] for row in by["month"]["rows"] if row["name"] != "-"}
    all_months = _range(months, 12)
    if len(all_months) <= _MONTHS:
        return all_months, months
    years = {row["name"]: row["captures"] for row in by["year"]["rows"] if row["name"] != "-"}
    return (_range(years, 1) if int(max(years)) - int(min(years)) < _SPAN else sorted(years))[
        -_MOST_BARS:
    ], years


def _range(times: Iterable[str], parts: int) -> list[str]:
    """All months or years from the first to the last; at most those that a plot can have."""
    found = sorted(times)
    if not found:
        return []
    first, last = (
        int(one[:4]) * parts + (int(one[5:]) - 1 if parts > 1 else 0) for one in (found[0], found[-1])
    )
    numbers = range(first, min(last + 1, first + _MOST_BARS + 1))
    return [f"{one // parts:04d}-{one % parts + 1:02d}" if parts > 1 else f"{one:04d}" for one in numbers]


def _stacked(names: Sequence[str], stacks: Stacks, order: Sequence[str]) -> str:
    """Vertical bars. The labels are HTML, so that they keep their size when the plot is narrow."""
    if not names:
        return '<p class="note">No capture has a date.</p>'
    most = max(sum(stacks[name].values()) for name in names) or 1
    width = _HEIGHT * 10 / len(names)
    drawn: list[str] = []
    for number, name in enumerate(names):
        below = _HEIGHT
        for color, part in enumerate(order):
            if count := stacks[name].get(part, 0):
                height = count * _HEIGHT / most
                below -= height
                title = f"{name}: {count:,} {part}".strip()
                drawn.append(
                    f'<rect x="{number * width:.2f}" y="{below:.2f}" width="{width * 0.86:.2f}" height="{height:.2f}"'
                    f' fill="var(--c{color})"><title>{shown(title)}</title></rect>'
                )
    axis = [names[0], names[len(names) // 2], names[-1]] if len(names) > 2 else names
    labels = "".join(f"<span>{shown(one)}</span>" for one in axis)
    svg = f'<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img">{"".join(drawn)}</svg>'
    plot = f'<div style="max-width:{_WIDEST * len(names)}px">{svg}<div class="axis">{labels}</div></div>'
    return f'<p class="note">Highest bar: {most:,} captures</p>{plot}'
