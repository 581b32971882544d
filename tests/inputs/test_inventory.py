"""The inventory of the inputs: what is known about them before they are read."""

from __future__ import annotations

from cdxmill.inputs.cdx_files import CdxSource, Inventory
from cdxmill.storage.location import Location

KNOWN, EMPTY, UNKNOWN = (
    CdxSource(Location("a"), 10, 0),
    CdxSource(Location("b"), 0, 0, None, is_empty=True),
    CdxSource(Location("c"), 0, 0),
)


def test_the_total_is_unknown_if_one_size_is_unknown() -> None:
    assert Inventory([KNOWN, EMPTY, KNOWN]).total == 20
    assert Inventory([KNOWN, EMPTY, UNKNOWN]).total == 0
    assert Inventory([KNOWN, EMPTY, UNKNOWN]).size == 10
    assert Inventory([]).total == 0
