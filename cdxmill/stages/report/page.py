"""A report as one HTML file: plots, tables that can be sorted, and nothing from elsewhere. It is at most 2 MB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from cdxmill.messages import human_bytes, printable
from cdxmill.stages.report.page_style import SCRIPT, STYLE
from cdxmill.stages.report.plots import bars, mime_over_time, over_time, shown
from cdxmill.stages.report.terminal import TITLES, part_shown, size_text, total_rows

_ROWS = 200
"""Rows of a table. With names of 120 characters, each of which is escaped, all tables have 1.6 MB."""
_PRINTED = 40
"""Rows of a table on paper, as the style has it."""
_LISTED = 50
_SITES, _BARS = 18, 7
"""Bars of a plot."""
_SHORT, _LONG = 12, ' class="long"'
"""Characters of a total that are shown large."""

Cell = tuple[str, float | None]
"""The text of a cell, and its number if it is sorted by one."""


def format_page(report: dict[str, Any]) -> bytes:
    """The page of a report."""
    by = report["by"]
    title = f"Report of {', '.join(report['inputs'])}"
    plots = [
        _section("Captures over time", over_time(by), "wide"),
        _sites(by),
        f'<div class="pair">{_bars("Statuses", by["status"])}{_bars("MIME types", by["mime"])}</div>',
        _section("MIME types over time", mime_over_time(by), "wide"),
    ]
    tables = [_group_table(name, title_of, by[name]) for name, title_of in TITLES.items()]
    body = [*_compared(report), *plots, *tables, _largest(report), _shards(report), *_failures(report)]
    return _document(title, _totals(report), "".join(body)).encode("utf-8", "backslashreplace")


def _sites(by: dict[str, Any]) -> str:
    """The domains; of a collection with one or two of them, the hosts."""
    if len(by["domain"]["rows"]) > 2:
        return _section("Registered domains with the most captures", bars(by["domain"]["rows"][:_SITES]))
    return _section("Hosts with the most captures", bars(by["host"]["rows"][:_SITES]))


def _bars(title: str, table: dict[str, Any]) -> str:
    return _section(title, bars(table["rows"][:_BARS]))


def _document(title: str, totals: str, body: str) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    name = shown(printable(title), 300)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{STYLE}</style></head>"
        f'<body><main><h1>{name}</h1><p>Made by cdxmill report from index lines.</p>{totals}<div class="grid">{body}</div></main>'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _totals(report: dict[str, Any]) -> str:
    cards = "".join(
        f"<div><b{_LONG if len(value) > _SHORT else ''}>{shown(value, 300)}</b><span>{escape(name)}</span></div>"
        for name, value in total_rows(report)
    )
    return f'<div class="totals">{cards}</div>'


def _section(title: str, content: str, kind: str = "") -> str:
    return f'<section class="{kind}"><h2>{shown(title)}</h2>{content}</section>'


def _table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    cells = "".join(f'<th scope="col"><button type="button">{escape(name)}</button></th>' for name in head)
    lines = "".join(
        "<tr>"
        + "".join(
            f"<td>{text}</td>" if number is None else f'<td data-n="{number}">{text}</td>'
            for text, number in row
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>'


def _count(number: int) -> Cell:
    return f"{number:,}", number


def _bytes(number: int) -> Cell:
    return human_bytes(number), number


def _name(text: str) -> Cell:
    return shown(printable(text)), None


def _group_table(name: str, title: str, table: dict[str, Any]) -> str:
    rows = table["rows"][:_ROWS]
    has_urls = all(row["urls"] is not None for row in rows)
    head = ["Name", "Captures", *(["URLs"] if has_urls else []), "Bytes"]
    cells = [
        [
            _name(row["name"]),
            _count(row["captures"]),
            *([_count(row["urls"])] if has_urls else []),
            _bytes(row["bytes"]),
        ]
        for row in rows
    ]
    note = part_shown(table, rows)
    if table["captures_error"]:
        note += f"; estimates, wrong by at most {table['captures_error']:,} captures"
    short = (
        f'<p class="note printed">On paper: the first {_PRINTED} rows.</p>' if len(rows) > _PRINTED else ""
    )
    return _section(title, f'{_table(head, cells)}<p class="note">{note}</p>{short}', "long")


def _largest(report: dict[str, Any]) -> str:
    rows = [
        [
            _name(one["url"]),
            _name(one["mime"]),
            (shown(size_text(one["length"])), int(one["length"]) if one["length"].isdecimal() else 0),
        ]
        for one in report["largest"]
    ]
    return _section("Largest records", _table(["URL", "MIME type", "Bytes"], rows), "wide")


def _shards(report: dict[str, Any]) -> str:
    rows = [
        [_name(one["path"]), _count(one["captures"]), _count(one["blocks"]), _bytes(one["bytes"])]
        for one in report["shards"][:_ROWS]
    ]
    return _section("Shards and files", _table(["Name", "Captures", "Blocks", "Bytes"], rows), "wide")


def _failures(report: dict[str, Any]) -> Iterable[str]:
    for name, title in (
        ("build_failures", "What failed when it was built"),
        ("failures", "What this report could not read"),
    ):
        found = report[name]
        if found["number"]:
            listed = "".join(f"<li>{shown(printable(one), 300)}</li>" for one in found["first"][:_LISTED])
            note = f'<p class="note">{min(_LISTED, len(found["first"]))} of {found["number"]:,}</p>'
            yield _section(
                title, f'<div class="scroll"><ul class="list">{listed}</ul></div>{note}', "wide long"
            )


def _compared(report: dict[str, Any]) -> Iterable[str]:
    compared = report.get("compared")
    if compared is None:
        return
    rows = [
        [
            _name(name.replace("_", " ")),
            _count(one["before"]),
            _count(one["now"]),
            _count(one["now"] - one["before"]),
        ]
        for name, one in compared["totals"].items()
    ]
    title = f"Compared with {', '.join(compared['with'])}"
    yield _section(title, _table(["Total", "Before", "Now", "Difference"], rows), "wide")
    for name, table in compared["by"].items():
        for what in ("added", "gone", "changed"):
            if found := table[what][:_LISTED]:
                cells = [
                    [_name(one["name"]), _count(one["before"]), _count(one["captures"])] for one in found
                ]
                yield _section(
                    f"{TITLES.get(name, 'Months')}: {what}", _table(["Name", "Before", "Now"], cells)
                )
