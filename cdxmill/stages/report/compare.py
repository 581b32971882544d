"""Two reports -> what was added and what is gone."""

from __future__ import annotations

from typing import Any

TOTALS = (
    "captures",
    "urls",
    "bytes",
    "revisits",
    "revisit_bytes",
    "digests",
    "duplicates",
    "duplicate_bytes",
)
"""Totals that are compared."""
NAMES = ("domain", "host", "mime", "status", "language", "year", "month", "archive")
"""Tables that are compared."""
_ROWS = 100


def is_report(found: object) -> bool:
    """Whether this is the JSON of a report, with all that `difference` reads."""
    if not isinstance(found, dict) or found.get("format") != 1:
        return False
    totals, by = found.get("totals"), found.get("by")
    if not isinstance(totals, dict) or not isinstance(by, dict) or not isinstance(found.get("inputs"), list):
        return False
    numbers = all(isinstance(totals.get(name), int) for name in TOTALS)
    return numbers and all(_is_table(by.get(name)) for name in NAMES)


def _is_table(table: object) -> bool:
    if not isinstance(table, dict) or not isinstance(table.get("complete"), bool):
        return False
    rows = table.get("rows")
    return isinstance(rows, list) and all(
        isinstance(row, dict) and isinstance(row.get("name"), str) and isinstance(row.get("captures"), int)
        for row in rows
    )


def difference(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """What `new` has more and less than `old`.

    >>> table = {"complete": True, "rows": [{"name": "a.com", "captures": 2}]}
    >>> one = {"inputs": ["x"], "totals": dict.fromkeys(TOTALS, 0), "by": dict.fromkeys(NAMES, table)}
    >>> two = one | {"by": one["by"] | {"host": {"complete": True, "rows": [{"name": "b.com", "captures": 3}]}}}
    >>> found = difference(two, one)["by"]["host"]
    >>> found["added"], found["gone"]
    ([{'name': 'b.com', 'before': 0, 'captures': 3}], [{'name': 'a.com', 'before': 2, 'captures': 0}])
    """
    return {
        "with": old["inputs"],
        "totals": {name: {"before": old["totals"][name], "now": new["totals"][name]} for name in TOTALS},
        "by": {name: _changes(new["by"][name], old["by"][name]) for name in NAMES},
    }


def _changes(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """A name that is not listed is known to be missing only if the table is complete."""
    now = {row["name"]: row["captures"] for row in new["rows"]}
    before = {row["name"]: row["captures"] for row in old["rows"]}
    added = [_change(name, 0, now[name]) for name in now if name not in before and old["complete"]]
    gone = [_change(name, before[name], 0) for name in before if name not in now and new["complete"]]
    both = [
        _change(name, before[name], now[name]) for name in now if before.get(name, now[name]) != now[name]
    ]
    both.sort(key=lambda row: -abs(row["captures"] - row["before"]))
    return {
        "added": added[:_ROWS],
        "added_number": len(added) if old["complete"] else None,
        "gone": gone[:_ROWS],
        "gone_number": len(gone) if new["complete"] else None,
        "changed": both[:_ROWS],
    }


def _change(name: str, before: int, captures: int) -> dict[str, Any]:
    return {"name": name, "before": before, "captures": captures}
