"""ReportTables of groups, in bounded memory: exact up to MOST names, then sketches of the library datasketches.

A sketch of frequent items has all names with more than N / 2**16 of the N captures, and says how wrong its numbers can be at most. An HLL sketch
estimates how many names there are.
"""

from __future__ import annotations

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
    b"m": "mime",
    b"s": "status",
    b"l": "language",
    b"a": "archive",
    b"y": "year",
    b"t": "month",
    b"x": "mime_by_month",
}
"""The tables, by the kind of their groups."""
DERIVED = ("domain", "tld")
"""Those that are computed from hosts."""

Row = tuple[bytes, int, int | None, int]
"""A name, its captures, URLs (None: unknown) and bytes."""


class PackedTable(NamedTuple):
    """A table, for another process: its rows, or its sketches of captures, bytes and names."""

    rows: dict[bytes, tuple[int, int, int]]
    sketches: tuple[bytes, bytes, bytes] | None


class Table:
    """Groups of one kind by name."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._rows: dict[bytes, tuple[int, int, int]] = {}
        self._sketches: _Sketches | None = None

    def add(self, name: bytes, captures: int, urls: int, size: int) -> None:
        """Add to a group."""
        if self._sketches is not None:
            self._sketches.add(name, captures, size)
            return
        old = self._rows.get(name)
        self._rows[name] = (
            (captures, urls, size) if old is None else (old[0] + captures, old[1] + urls, old[2] + size)
        )
        if len(self._rows) > self._most:
            self._to_sketches()

    def _to_sketches(self) -> None:
        self._sketches = _Sketches()
        for name, (captures, _, size) in self._rows.items():
            self._sketches.add(name, captures, size)
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
        for name, row in other.rows.items():
            self.add(name, *row)

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
        rows: list[Row] = [(name, *row) for name, row in self._rows.items()]
        if self._sketches is not None:
            rows = self._sketches.rows()
        return nlargest(number, rows, key=lambda row: (row[1], row[3], row[0]))


class _Sketches:
    """Names are text there: latin-1 keeps all bytes."""

    def __init__(self) -> None:
        import datasketches

        self._library: Any = datasketches
        self._captures = datasketches.frequent_strings_sketch(_SKETCH)
        self._bytes = datasketches.frequent_strings_sketch(_SKETCH)
        self._names = datasketches.hll_sketch(_HLL, datasketches.tgt_hll_type.HLL_8)

    def add(self, name: bytes, captures: int, size: int) -> None:
        text = name.decode("latin-1")
        self._captures.update(text, captures)
        self._bytes.update(text, size)
        self._names.update(text)

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


def site_of(host: bytes, suffixes: PublicSuffixes) -> tuple[bytes, bytes]:
    """The registered domain and the top-level domain of a host, which is reversed as in a key. NONE for an IP address.

    >>> site_of(b"com,example,www", PublicSuffixes(["com"]))
    (b'example.com', b'com')
    """
    first, _, rest = host.partition(b",")
    if host == NONE or not rest or first.isdigit():
        return (host, NONE)
    return name_of_host(suffixes.registered(host) or host), first


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
        self.tables = {name: Table(most) for name in (*KINDS.values(), *DERIVED)}

    def take(self, groups: list[Group]) -> None:
        """Add groups as `CaptureSums.groups` returns them."""
        tables = self.tables
        for named, captures, urls, size in groups:
            kind, name = named[:1], named[1:]
            if kind == b"h":
                domain, tld = site_of(name, self._suffixes)
                tables["domain"].add(domain, captures, urls, size)
                tables["tld"].add(tld, captures, urls, size)
                name = name_of_host(name)
            tables[KINDS[kind]].add(name, captures, urls, size)

    def pack(self) -> dict[str, PackedTable]:
        """Return all of them for `absorb`."""
        return {name: table.pack() for name, table in self.tables.items()}

    def absorb(self, packed: dict[str, PackedTable]) -> None:
        """Add the tables of another process."""
        for name, table in packed.items():
            self.tables[name].absorb(table)
