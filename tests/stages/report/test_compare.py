"""What is taken for a report, and what two of them differ in."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from cdxmill.stages.report.compare import NAMES, TOTALS, difference, is_report


def row(name: str, captures: int) -> dict[str, Any]:
    return {"name": name, "captures": captures}


def report(*hosts: dict[str, Any], complete: bool = True, **totals: int) -> dict[str, Any]:
    empty = {"complete": True, "rows": []}
    return {
        "format": 1,
        "inputs": ["x"],
        "totals": {**dict.fromkeys(TOTALS, 0), **totals},
        "by": {**{name: dict(empty) for name in NAMES}, "host": {"complete": complete, "rows": list(hosts)}},
    }


REPORT = report(row("a.com", 2), row("b.com", 1))


def spoilt() -> Iterator[tuple[str, Any]]:
    """The report with one part of another type, or without it."""
    places = [("format",), ("inputs",), ("totals",), ("by",), *(("totals", name) for name in TOTALS), *(("by", name) for name in NAMES)]  # fmt: skip
    places += [("by", "host", "complete"), ("by", "host", "rows")]
    places += [("by", "host", "rows", 1), ("by", "host", "rows", 1, "name"), ("by", "host", "rows", 1, "captures")]  # type: ignore[list-item] # fmt: skip
    for place in places:
        values: tuple[Any, ...] = (None, 2.5, "x", [], {}, ...)
        for value in values:
            found = copy.deepcopy(REPORT)
            *before, last = place
            part: Any = found
            for name in before:
                part = part[name]
            if type(part[last]) is type(value) or (value is ... and isinstance(part, list)):
                continue
            if value is ...:
                del part[last]
            else:
                part[last] = value
            yield "/".join(map(str, place)) + f"={value!r}", found


def test_only_what_has_all_parts_of_a_report_is_one() -> None:
    assert is_report(REPORT)
    assert not is_report([REPORT])
    assert not is_report(REPORT | {"format": 2})
    for name, found in spoilt():
        assert not is_report(found), name


def test_a_missing_name_is_known_only_of_a_complete_table() -> None:
    for is_new, is_old in ((True, True), (True, False), (False, True), (False, False)):
        new = report(row("a", 3), row("new", 1), complete=is_new)
        old = report(row("a", 3), row("gone", 2), complete=is_old)
        found = difference(new, old)["by"]["host"]
        assert found["added"] == [{"name": "new", "before": 0, "captures": 1}] * is_old
        assert found["gone"] == [{"name": "gone", "before": 2, "captures": 0}] * is_new
        assert found["added_number"] == (1 if is_old else None)
        assert found["gone_number"] == (1 if is_new else None)
        assert found["changed"] == []


def test_the_largest_changes_come_first_and_long_lists_are_cut() -> None:
    new = [row(f"n{number}", number) for number in range(102)]
    old = [row(f"o{number}", number) for number in range(101)]
    both = [(f"b{number}", number, number * (3 if number % 2 else 0)) for number in range(1, 110)]
    found = difference(
        report(*new, *(row(name, now) for name, _, now in both), captures=9),
        report(*old, *(row(name, before) for name, before, _ in both), captures=4),
    )
    assert found["totals"]["captures"] == {"before": 4, "now": 9}
    assert found["totals"]["urls"] == {"before": 0, "now": 0}
    assert found["with"] == ["x"]
    hosts = found["by"]["host"]
    assert (len(hosts["added"]), hosts["added_number"]) == (100, 102)
    assert (len(hosts["gone"]), hosts["gone_number"]) == (100, 101)
    sizes = [abs(one["captures"] - one["before"]) for one in hosts["changed"]]
    assert sizes == sorted((abs(now - before) for _, before, now in both), reverse=True)[:100]
    assert sizes[0] == 218


@pytest.mark.parametrize("name", NAMES)
def test_every_table_is_compared(name: str) -> None:
    new, old = report(), report()
    new["by"][name] = {"complete": True, "rows": [row("x", 1)]}
    found = difference(new, old)["by"]
    assert [one for one in found if found[one]["added"]] == [name]
