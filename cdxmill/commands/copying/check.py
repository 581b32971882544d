"""The size of a copy: captures, archives and bytes of each query, from the index alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cdxmill.commands.copying.plan import Asked, Planned, find_rows, is_near, read_rows
from cdxmill.messages import count
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.scratch import Scratch, temporary_directory

_TOTAL = "total"


@dataclass
class QuerySize:
    """Captures of a query, the archives that have them, and their bytes. `requests` fetch them all."""

    query: str
    captures: int = 0
    archives: int = 0
    bytes: int = 0
    requests: int = 0
    unknown: int = 0
    """Captures whose index line has no length."""
    _run: tuple[Planned, Planned] | None = None
    """The first and the last capture of the request so far."""

    def add(self, one: Planned) -> None:
        """Count a capture. They come in the order of the plan."""
        run = self._run
        self.captures += 1
        self.bytes += one.location.length or 0
        self.unknown += one.location.length is None
        self.archives += run is None or run[1].location.filename != one.location.filename
        if run is None or not is_near(*run, one):
            self.requests, run = self.requests + 1, (one, one)
        self._run = run[0], one


def check(asked: Asked, failures: Failures) -> list[QuerySize]:
    """The size of each query, and last the total, in which a capture of several queries counts once.

    Invalid index lines are reported. Raises UsageError, InputError.
    """
    sizes = [QuerySize(url) for url in asked.urls]
    total = QuerySize(_TOTAL)
    last, seen = None, set[int]()
    with temporary_directory() as directory:
        scratch = Scratch(Path(directory))
        for row in find_rows(
            asked, scratch, lambda error: failures.report_one_listed(Failure.from_error(error))
        ):
            ((_, one),) = read_rows([row])
            if one.identity != last:
                total.add(one)
                last, seen = one.identity, set()
            if one.query not in seen:
                seen.add(one.query)
                sizes[one.query].add(one)
    if total.unknown:
        what = f"{count(total.unknown, 'capture')} {'has' if total.unknown == 1 else 'have'} no length in the index"
        failures.note(f"note: {what}; bytes is less than will be copied")
    return [*sizes, total]


def as_json(sizes: Sequence[QuerySize]) -> str:
    """`{"queries": [{"query": ..., "captures": ..., "archives": ..., "bytes": ..., ...}], "total": {...}}`."""
    rows = [{key: value for key, value in vars(one).items() if key[0] != "_"} for one in sizes]
    total = {key: value for key, value in rows[-1].items() if key != "query"}
    return json.dumps({"queries": rows[:-1], "total": total}, indent=2) + "\n"


def as_table(sizes: Sequence[QuerySize]) -> str:
    """One row per query and one for the total, with columns that are as wide as their longest value."""
    head = ["query", "captures", "archives", "bytes", "requests"]
    rows = [[one.query, *map(str, (one.captures, one.archives, one.bytes, one.requests))] for one in sizes]
    first, *widths = (max(map(len, column)) for column in zip(head, *rows, strict=True))
    lines = []
    for name, *rest in (head, *rows):
        values = (value.rjust(width) for value, width in zip(rest, widths, strict=True))
        lines.append("  ".join([name.ljust(first), *values]) + "\n")
    return "".join(lines)
