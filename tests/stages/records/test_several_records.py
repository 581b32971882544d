"""How many records a content has: all of them are counted, or those of its first 16 MiB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdxmill.stages.records import several_records
from cdxmill.stages.records.several_records import Inside, look_inside

from .test_changing_files import record

ONE = record(1, 50)
LONG = record(2, 900)
NO_LENGTH = ONE.replace(b"Content-Length", b"X-Length")


def pieces_of(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize("size", [7, 1 << 20])
@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", None),
        (b"\r\n" * 9, None),
        (ONE, None),
        (NO_LENGTH, None),
        (ONE + b"\r\n", None),
        (ONE * 2, "2"),
        (ONE * 9, "9"),
        (NO_LENGTH + ONE, "1, and 1 damaged (missing Content-Length, at byte 0)"),
        (ONE + NO_LENGTH, f"1, and 1 damaged (missing Content-Length, at byte {len(ONE)})"),
        (
            ONE * 2 + NO_LENGTH + ONE + NO_LENGTH + ONE,
            f"4, and 2 damaged (missing Content-Length, at byte {2 * len(ONE)})",
        ),
    ],
)
def test_records_and_damaged_ones_are_counted(data: bytes, told: str | None, size: int) -> None:
    inside = look_inside(pieces_of(data, size))
    assert (None if inside is None else str(inside)) == told


@pytest.mark.parametrize(
    ("data", "least", "found"),
    [
        (ONE * 4, 4 * len(ONE), (4, 0, True)),
        (ONE * 4, 4 * len(ONE) - 5, (3, 0, False)),
        (ONE * 4, 3 * len(ONE) + 9, (3, 0, False)),
        (ONE * 4, 1, (0, 0, False)),
        (NO_LENGTH + ONE * 3, 3 * len(ONE) - 20, (1, 1, False)),
        (ONE + NO_LENGTH + ONE * 3, 4 * len(ONE) - 20, (2, 1, False)),
        (ONE * 2 + NO_LENGTH * 2, 3 * len(ONE) - 1, (2, 0, False)),
        (ONE * 3, 2 * len(ONE), (2, 0, False)),
        (ONE + NO_LENGTH + LONG + ONE, len(ONE + NO_LENGTH + LONG), (2, 1, False)),
    ],
    ids=[
        "all",
        "nearly all",
        "a part",
        "a piece",
        "damage first",
        "damage within",
        "damage at the end",
        "whole ones",
        "damage before the last",
    ],
)
def test_of_a_large_content_the_start_is_looked_at(
    data: bytes, least: int, found: tuple[int, int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record that the end of what is looked at cuts is not damaged."""
    monkeypatch.setattr(several_records, "_LOOKED_AT", least)
    pieces = pieces_of(data, 1)
    inside = look_inside(pieces)
    assert inside is not None
    assert (inside.records, inside.damaged, inside.is_all) == found
    assert next(pieces, None) is None, "it is read to its end, where its checksum is"


def test_the_text_tells_how_much_was_looked_at() -> None:
    assert str(Inside(3, 0, None, is_all=True)) == "3"
    assert str(Inside(3, 0, None, is_all=False)) == "3 in the first 16 MiB of its content"
