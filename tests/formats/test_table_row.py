"""A row of a table has the values of a line that its columns can have. The others are named."""

from __future__ import annotations

import json

import pytest

from cdxmill.formats.lines.table_row import COLUMNS, read_row


def cell(column: str, timestamp: str = "20200101000000", **fields: object) -> tuple[object, tuple[str, ...]]:
    """The value of a column, and what was lost."""
    line = f"com,a)/ {timestamp} {json.dumps(fields)}".encode()
    found = read_row(line)
    assert dict(zip(COLUMNS, found.row, strict=True))["cdx_line"] == (line if found.lost else None)
    return dict(zip(COLUMNS, found.row, strict=True))[column], found.lost


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20200101000000", 1_577_836_800),
        ("19691231235959", -1),
        ("-", None),
        ("2020", "lost"),
        ("202001010000001", "lost"),
        ("20200101000000x", "lost"),
        ("2020010100000x", "lost"),
        ("\uff12\uff10200101000000", "lost"),
        ("20201301000000", "lost"),
        ("20200101240000", "lost"),
    ],
)
def test_a_time_has_fourteen_digits_and_exists(text: str, seconds: object) -> None:
    expected = seconds * 1000 if isinstance(seconds, int) else None
    assert cell("fetch_time", text) == (expected, ("fetch_time",) if seconds == "lost" else ())


@pytest.mark.parametrize(
    ("value", "expected"),
    [("200", 200), (200, 200), ("", None), (None, None), ("-", None)]
    + [(one, "lost") for one in ("2xx", "-1", "+1", " 1", "20000", "\u0663", True, 2.0, [200])],
)
def test_a_status_has_up_to_four_digits(value: object, expected: object) -> None:
    assert cell("fetch_status", status=value) == (
        (None, ("fetch_status",)) if expected == "lost" else (expected, ())
    )
