"""A report as tables for a terminal of any width."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from cdxmill.messages import human_bytes, printable

_ROWS = 10
TITLES = {
    "domain": "Registered domains",
    "host": "Hosts",
    "tld": "Top-level domains",
    "mime": "MIME types",
    "status": "Statuses",
    "language": "Languages",
    "year": "Years",
    "archive": "Archives",
}
"""The tables of a report, with their titles."""
_NARROWEST = 40


def format_tables(report: dict[str, Any], width: int) -> str:
    """All tables, in lines of at most `width` characters."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=max(width, _NARROWEST), color_system=None, highlight=False, emoji=False)
    compared = report.get("compared")
    for title, head, rows in _tables(report):
        _print(console, title, head, rows)
    for title, head, rows in () if compared is None else _changes(compared):
        _print(console, title, head, rows)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


Shown = tuple[str, Sequence[str], Iterable[Sequence[str]]]


def _print(console: Any, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title), box=SIMPLE_HEAD, title_justify="left", pad_edge=False, show_header=any(head)
    )
    for number, name in enumerate(head):
        table.add_column(
            name, justify="right" if number else "left", overflow="fold" if not number else "ellipsis"
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print(table)


def _tables(report: dict[str, Any]) -> Iterable[Shown]:
    yield "Totals", ("", ""), total_rows(report)
    for name, title in TITLES.items():
        table = report["by"][name]
        rows = table["rows"] if name == "year" else table["rows"][:_ROWS]
        head = (part_shown(table, rows), "captures", "URLs", "bytes")
        yield title, head, [_row(row) for row in rows]
    largest = [(one["url"][:200], one["mime"], size_text(one["length"])) for one in report["largest"][:_ROWS]]
    yield "Largest records", ("URL", "MIME type", "bytes"), largest
    shards = [
        (one["path"], f"{one['captures']:,}", f"{one['blocks']:,}", human_bytes(one["bytes"]))
        for one in report["shards"][:_ROWS]
    ]
    yield (
        "Shards and files",
        (f"{len(shards)} of {len(report['shards']):,}", "captures", "blocks", "bytes"),
        shards,
    )


def part_shown(table: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    """How many of the names of a table are in rows. Lines without a value are a row, and have no name.

    >>> part_shown({"distinct": 1, "distinct_error": 0}, [{"name": "-"}, {"name": "200"}])
    '1 of 1'
    """
    names = sum(row["name"] != "-" for row in rows)
    return f"{names:,} of {'about ' if table['distinct_error'] else ''}{table['distinct']:,}"


def _row(row: dict[str, Any]) -> tuple[str, str, str, str]:
    urls = "" if row["urls"] is None else f"{row['urls']:,}"
    return row["name"], f"{row['captures']:,}", urls, human_bytes(row["bytes"])


def size_text(length: str) -> str:
    """A length in a line, for people."""
    return human_bytes(int(length)) if length.isdecimal() and len(length) < 19 else length


def total_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The totals of a report, in words."""
    totals, blocks = report["totals"], report["blocks"]
    rows = [
        ("Captures", f"{totals['captures']:,}"),
        ("URLs", _estimate(totals["urls"], totals["urls_error"])),
        ("Bytes in archives", human_bytes(totals["bytes"])),
        ("First and last capture", f"{_date(totals['first'])} to {_date(totals['last'])}"),
        ("Different contents", _estimate(totals["digests"], totals["digests_error"])),
        ("Duplicates, by digest", _estimate(totals["duplicates"], totals["digests_error"])),
        ("Bytes of duplicates", human_bytes(totals["duplicate_bytes"])),
        ("Revisits", f"{totals['revisits']:,} ({human_bytes(totals['revisit_bytes'])})"),
    ]
    odd = [name for name in ("without_date", "without_length", "invalid_lines") if totals[name]]
    rows += [(name.replace("_", " ").capitalize(), f"{totals[name]:,}") for name in odd]
    if blocks:
        sizes = [human_bytes(blocks[f"{which}_bytes"]) for which in ("least", "median", "most")]
        rows.append(("Blocks", f"{blocks['number']:,}; least, median, most: {', '.join(sizes)}"))
    rows += [("When to compact", one["compact"]) for one in report["clusters"] if one["compact"]]
    for name, what in (
        ("build_failures", "Failures when it was built"),
        ("failures", "Failures of this report"),
    ):
        if report[name]["number"]:
            rows.append((what, f"{report[name]['number']:,}"))
    return rows


def _estimate(number: int, error: float) -> str:
    return f"about {number:,} (standard error {error:.2%})" if error else f"{number:,}"


def _date(timestamp: str) -> str:
    """The day of a timestamp. One that does not exist stays digits.

    >>> _date("20200229000000"), _date("20200231000000"), _date("")
    ('2020-02-29', '20200231000000', '-')
    """
    try:
        return f"{datetime.strptime(timestamp, '%Y%m%d%H%M%S').replace(tzinfo=UTC):%Y-%m-%d}"
    except ValueError:
        return timestamp or "-"


def _changes(compared: dict[str, Any]) -> Iterable[Shown]:
    rows = [
        (name.replace("_", " "), f"{one['before']:,}", f"{one['now']:,}", f"{one['now'] - one['before']:+,}")
        for name, one in compared["totals"].items()
    ]
    yield f"Compared with {', '.join(compared['with'])}", ("", "before", "now", "difference"), rows
    for name, table in compared["by"].items():
        for what in ("added", "gone", "changed"):
            if found := table[what][:_ROWS]:
                title = f"{TITLES.get(name, name.capitalize() + 's')}: {what}"
                yield (
                    title,
                    ("", "before", "now"),
                    [(one["name"], f"{one['before']:,}", f"{one['captures']:,}") for one in found],
                )
