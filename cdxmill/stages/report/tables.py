"""ReportTables of groups, in bounded memory: exact up to MOST names, then sketches of the library datasketches.

A sketch of frequent items has all names with more than N / 2**16 of the N captures, and says how wrong its numbers can be at most. An HLL sketch
estimates how many names there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest
from typing import Any, NamedTuple

from cdxmill.formats.lines.public_suffixes import PublicSuffixes
from cdxmill.stages.report.capture_sums import NONE, Group

MOST = 200_000
"""Names that a table counts exactly: about 60 MB of hosts."""
_SKETCH = 16
"""log2 of the places of a sketch. It is right to N / 2**14: 0.006 % of the captures."""
_HLL = 14
"""log2 of the registers of a sketch of different names: 16 KiB."""
HLL_ERROR = 0.0065
"""The relative standard error of a sketch of 2**14 registers of 4 bits."""

KINDS = {
    b"h": "host",
    b"d": "tld",
    b"m": "mime",
    b"s": "status",
    b"l": "language",
    b"a": "archive",
    b"y": "year",
    b"t": "month",
    b"x": "mime_by_month",
}
"""The tables, by the kind of their groups."""
DERIVED = "domain"
"""The table that is computed from hosts."""

Row = tuple[bytes, int, int | None, int]
"""A name, its captures, URLs (None: unknown) and bytes. Hosts and domains are reversed, as in keys."""


class PackedTable(NamedTuple):
    """A table, for another process: its rows, or its sketches of captures, bytes and names."""

    rows: dict[bytes, Group]
    sketches: tuple[bytes, bytes, bytes] | None


class Table:
    """Groups of one kind by name."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._rows: dict[bytes, Group] = {}
        self._sketches: _Sketches | None = None

    def add(self, groups: Iterable[Group]) -> None:
        """Add to groups."""
        if self._sketches is None:
            known = self._rows
            for group in groups:
                name = group[0]
                if name in known:
                    old = known[name]
                    group = (name, old[1] + group[1], old[2] + group[2], old[3] + group[3])
                known[name] = group
            if len(known) > self._most:
                self._to_sketches()
        else:
            self._sketches.add(groups)

    def _to_sketches(self) -> None:
        self._sketches = _Sketches()
        self._sketches.add(self._rows.values())
        self._rows = {}

    def pack(self) -> PackedTable:
        """Return all of it for `absorb`."""
        return PackedTable(self._rows, None if self._sketches is None else self._sketches.pack())

    def absorb(self, other: PackedTable) -> None:
        """Add another table."""
        if other.sketches is not None:
            if self._sketches is None:
                self._to_sketches()
            assert self._sketches is not None
            self._sketches.absorb(other.sketches)
        if not self._rows and self._sketches is None:
            self._rows = dict(other.rows)  # as for a collection of one part: ten times as fast
            return
        self.add(other.rows.values())

    @property
    def is_exact(self) -> bool:
        """Whether all names were counted."""
        return self._sketches is None

    def distinct(self) -> int:
        """The number of names, an estimate unless the table is exact. A missing value is none."""
        if self._sketches is not None:
            return self._sketches.distinct()
        return len(self._rows) - (NONE in self._rows)

    def captures_error(self) -> int:
        """By how much the captures of a row can be wrong at most."""
        return 0 if self._sketches is None else self._sketches.error()

    def top(self, number: int) -> list[Row]:
        """The rows with the most captures."""
        rows: Iterable[Row] = self._rows.values() if self._sketches is None else self._sketches.rows()
        return nlargest(number, rows, key=lambda row: (row[1], row[3], row[0]))


class _Sketches:
    """Names are text there: latin-1 keeps all bytes."""

    def __init__(self) -> None:
        import datasketches

        self._library: Any = datasketches
        self._captures = datasketches.frequent_strings_sketch(_SKETCH)
        self._bytes = datasketches.frequent_strings_sketch(_SKETCH)
        self._names = datasketches.hll_sketch(_HLL, datasketches.tgt_hll_type.HLL_8)

    def add(self, groups: Iterable[Group]) -> None:
        count, measure, note = self._captures.update, self._bytes.update, self._names.update
        for name, captures, _, size in groups:
            text = name.decode("latin-1")
            count(text, captures)
            measure(text, size)
            note(text)

    def pack(self) -> tuple[bytes, bytes, bytes]:
        return self._captures.serialize(), self._bytes.serialize(), self._names.serialize_compact()

    def absorb(self, packed: tuple[bytes, bytes, bytes]) -> None:
        frequent = self._library.frequent_strings_sketch.deserialize
        self._captures.merge(frequent(packed[0]))
        self._bytes.merge(frequent(packed[1]))
        both = self._library.hll_union(_HLL)
        both.update(self._names)
        both.update(self._library.hll_sketch.deserialize(packed[2]))
        self._names = both.get_result(self._library.tgt_hll_type.HLL_8)

    def distinct(self) -> int:
        return int(self._names.get_estimate())

    def error(self) -> int:
        return int(self._captures.get_epsilon_for_lg_size(_SKETCH) * self._captures.total_weight) + 1

    def rows(self) -> list[Row]:
        kind = self._library.frequent_items_error_type.NO_FALSE_NEGATIVES
        found = self._captures.get_frequent_items(kind)
        return [(one[0].encode("latin-1"), one[1], None, self._bytes.get_estimate(one[0])) for one in found]


def domain_of(host: bytes, suffixes: PublicSuffixes) -> bytes:
    """The registered domain of a host, both reversed as in keys; the host itself if it has none, as an IP address.

    >>> domain_of(b"com,example,www", PublicSuffixes(["com"]))
    b'com,example'
    """
    return (
        host
        if host[:1].isdigit() and host.partition(b",")[0].isdigit()
        else suffixes.registered(host) or host
    )


def name_of_host(host: bytes) -> bytes:
    """A host as people write it.

    >>> name_of_host(b"com,example,www")
    b'www.example.com'
    """
    return b".".join(host.split(b",")[::-1])


class ReportTables:
    """All tables of a report."""

    def __init__(self, suffixes: PublicSuffixes, most: int = MOST) -> None:
        self._suffixes = suffixes
        self.tables = {name: Table(most) for name in (*KINDS.values(), DERIVED)}

    def take(self, kinds: dict[bytes, list[Group]]) -> None:
        """Add groups as `CaptureSums.groups` returns them."""
        tables, suffixes = self.tables, self._suffixes
        for kind, groups in kinds.items():
            tables[KINDS[kind]].add(groups)
        tables[DERIVED].add((domain_of(group[0], suffixes), *group[1:]) for group in kinds.get(b"h", ()))

    def pack(self) -> dict[str, PackedTable]:
        """Return all of them for `absorb`."""
        return {name: table.pack() for name, table in self.tables.items()}

    def absorb(self, packed: dict[str, PackedTable]) -> None:
        """Add the tables of another process."""
        for name, table in packed.items():
            self.tables[name].absorb(table)
