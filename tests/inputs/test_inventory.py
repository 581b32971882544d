"""The inventory of the inputs: what is known about them before they are read."""

from __future__ import annotations

from cdxmill.inputs.sources import Inventory, Source
from cdxmill.storage.location import Location

KNOWN, EMPTY, UNKNOWN = (
    Source(Location("a"), 10, 0),
    Source(Location("b"), 0, 0, None, is_empty=True),
    Source(Location("c"), 0, 0),
)


def test_the_total_is_unknown_if_one_size_is_unknown() -> None:
    assert Inventory([KNOWN, EMPTY, KNOWN]).total == 20
    assert Inventory([KNOWN, EMPTY, UNKNOWN]).total == 0
    assert Inventory([KNOWN, EMPTY, UNKNOWN]).size == 10
    assert Inventory([]).total == 0
