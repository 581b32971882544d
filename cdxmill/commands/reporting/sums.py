"""The sums of all parts -> the report."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from cdxmill.commands.reporting.parts import LARGEST, PartSums, public_suffixes
from cdxmill.formats.lines.capture_fields import stored_fields
from cdxmill.stages.report.capture_sums import (
    NONE,
    CaptureSums,
    Large,
    PackedSamples,
    Totals,
    absorb_samples,
    name_text,
    new_sums,
    pack_samples,
)
from cdxmill.stages.report.tables import DERIVED, HLL_ERROR, KINDS, ReportTables, Table, name_of_host

ROWS = 1000
"""Rows of a table in the report, those with the most captures. Of months, all."""
NO_SAMPLES = PackedSamples(b"", b"")
_ALL = ("month", "year", "mime_by_month", "status")
_MOST_ROWS = 20_000


class Sums:
    """Adds up parts. `is_one`: the parts are one sorted sequence of lines, if each of them is sorted."""

    def __init__(self, *, is_one: bool) -> None:
        self._is_one = is_one
        self._tables = ReportTables(public_suffixes())
        self._samples: CaptureSums | None = None
        self._largest: list[Large] = []

    def take(self, part: PartSums) -> PartSums:
        """Add a part. Returns what the report needs to know of it later."""
        self._tables.absorb(part.tables)
        self._absorb(part.samples)
        self._largest = heapq.nlargest(LARGEST, [*self._largest, *part.largest])
        return part._replace(tables={}, samples=NO_SAMPLES, largest=[])

    def _absorb(self, samples: CaptureSums | PackedSamples) -> None:
        """Add samples. The first are taken as they are, unless another process packed them: most reports here have one part."""
        if isinstance(samples, PackedSamples):
            absorb_samples(self._own_samples(), samples)
        elif self._samples is None:
            self._samples = samples
        else:
            absorb_samples(self._samples, pack_samples(samples))

    def _own_samples(self) -> CaptureSums:
        if self._samples is None:
            self._samples = new_sums(True)
        return self._samples

    def report(self, parts: Sequence[PartSums]) -> dict[str, Any]:
        """The report of all parts, which are in the order of their lines."""
        is_sorted = self._is_one and all(part.totals.is_sorted for part in parts) and _in_order(parts)
        tables = self._tables.tables
        return {
            "totals": self._totals(parts, is_sorted),
            "by": {name: _table(name, tables[name], is_sorted) for name in (*KINDS.values(), DERIVED)},
            "largest": [_record(line) for _, line in self._largest],
            "shards": [
                {
                    "path": part.path,
                    "captures": part.totals.captures,
                    "bytes": sum(part.block_bytes),
                    "blocks": len(part.block_bytes),
                }
                for part in parts[:_MOST_ROWS]
            ],
            "blocks": _blocks(parts),
        }

    def _totals(self, parts: Sequence[PartSums], is_sorted: bool) -> dict[str, Any]:
        totals = [part.totals for part in parts]
        whole = {name: sum(getattr(one, name) for one in totals) for name in Totals._fields[:7]}
        level, urls, _, _ = self._own_samples().sampled("urls")
        exact_urls = whole["urls"] - _shared_urls(parts)
        return {
            "captures": whole["captures"],
            "urls": exact_urls if is_sorted else min(urls << level, whole["captures"]),
            "urls_error": 0 if is_sorted else _error(level, urls),
            "bytes": whole["size"],
            "first": min((one.first for one in totals if one.first), default=b"").decode(),
            "last": max((one.last for one in totals), default=b"").decode(),
            "without_date": whole["undated"],
            "without_length": whole["unsized"],
            "invalid_lines": sum(part.invalid for part in parts),
            "revisits": whole["revisits"],
            "revisit_bytes": whole["revisit_bytes"],
            **self._duplicates(whole["captures"]),
        }

    def _duplicates(self, captures: int) -> dict[str, Any]:
        level, digests, repeated, saved = self._own_samples().sampled("digests")
        return {
            "digests": min(digests << level, captures),
            "duplicates": repeated << level,
            "duplicate_bytes": saved << level,
            "digests_error": _error(level, digests),
        }


def _error(level: int, sampled: int) -> float:
    """The relative standard error of a number that was estimated from a sample."""
    return round((1 / max(sampled, 1)) ** 0.5, 5) if level else 0


def _in_order(parts: Sequence[PartSums]) -> bool:
    full = [part for part in parts if part.totals.captures]
    return all(one.totals.key <= other.first_key for one, other in pairwise(full))


def _shared_urls(parts: Sequence[PartSums]) -> int:
    """The URLs whose captures end one part and begin the next."""
    full = [part for part in parts if part.totals.captures]
    return sum(one.totals.key == other.first_key for one, other in pairwise(full))


def _table(name: str, table: Table, is_sorted: bool) -> dict[str, Any]:
    distinct, is_host = table.distinct(), name in ("host", "domain")
    rows = table.top(_MOST_ROWS if name in _ALL else ROWS)
    if name in ("month", "year", "mime_by_month"):
        rows.sort()
    return {
        "distinct": distinct,
        "distinct_error": 0 if table.is_exact else HLL_ERROR,
        "captures_error": table.captures_error(),
        "complete": table.is_exact and len(rows) - (NONE in {row[0] for row in rows}) >= distinct,
        "rows": [
            {
                "name": name_text(name_of_host(row[0]) if is_host else row[0]),
                "captures": row[1],
                "urls": row[2] if is_sorted else None,
                "bytes": row[3],
            }
            for row in rows
        ],
    }


def _record(line: bytes) -> dict[str, Any]:
    """One of the largest records."""
    fields = stored_fields(line)
    names = ("url", "timestamp", "mime", "status", "length", "filename", "offset")
    return {
        name: name_text(str(fields.get(name, "")).encode("utf-8", "backslashreplace"), 2000) for name in names
    }


def _blocks(parts: Sequence[PartSums]) -> dict[str, Any] | None:
    """The sizes of all blocks; None if there are none."""
    sizes, lines = array("Q"), array("Q")
    for part in parts:
        sizes.extend(part.block_bytes)
        lines.extend(part.block_lines)
    if not sizes:
        return None
    return {
        "number": len(sizes),
        "bytes": sum(sizes),
        "least_bytes": min(sizes),
        "median_bytes": _median(sizes),
        "most_bytes": max(sizes),
        "least_lines": min(lines),
        "median_lines": _median(lines),
        "most_lines": max(lines),
    }


def _median(numbers: Sequence[int]) -> int:
    """Half of all numbers are at least as large. The module statistics takes as long to import as 10,000 lines to read."""
    ordered = sorted(numbers)
    return (ordered[len(ordered) // 2] + ordered[(len(ordered) - 1) // 2]) // 2
