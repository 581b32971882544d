"""What `copy` fetches together: the captures of a request, the requests of a unit, and the sizes that --dry-run shows."""

from __future__ import annotations

import io

import pytest

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.commands.copying.check import QuerySize
from cdxmill.commands.copying.plan import Asked, PlanSize, Unit, read_rows, runs_of, units_of, write_plan
from cdxmill.inputs.joined_ranges import GAP, JOINED
from cdxmill.options.queries import Query
from cdxmill.search.sources import Source

UNKNOWN = 1 << 20
"""Bytes that are assumed for a record without a length."""
FAR = 1 << 30
Record = tuple[str, int, int | None]


def rows_of(records: list[Record]) -> list[bytes]:
    """The rows of index lines of these archives, offsets and lengths."""
    asked, found = Asked([Source("a.cdx", ArchivePlaces(None))], ["*"], Query()), list[bytes | None]()
    for name, offset, length in records:
        place = f"{'-' if length is None else length} {offset} {name}"
        line = f"com,a)/ 20200101000000 http://a.com/ text/html 200 - - - {place}".encode()
        found.append(asked.row_of(line, 0, 0, lambda error: pytest.fail(str(error))))
    return [row for row in found if row is not None]


def plan_of(records: list[Record]) -> tuple[PlanSize, bytes, bytes]:
    """The size of a plan, its rows and its runs."""
    file, runs = io.BytesIO(), io.BytesIO()
    size = write_plan(read_rows(rows_of(records)), file, runs)
    return size, file.getvalue(), runs.getvalue()


@pytest.mark.parametrize(
    ("records", "size", "requests", "archives"),
    [
        ([], 0, 0, 0),
        ([("a", 0, 100), ("a", 100 + GAP, 100)], 200, 1, 1),
        ([("a", 0, 100), ("a", 101 + GAP, 100)], 200, 2, 1),
        ([("a", 0, 100), ("b", 100, 100)], 200, 2, 2),
        ([("a", 0, JOINED - 100), ("a", JOINED - 100, 100)], JOINED, 1, 1),
        ([("a", 7, JOINED - 100), ("a", JOINED - 93, 101)], JOINED + 1, 2, 1),
        ([("a", 0, 9), ("a", 9, 9), ("a", 18, JOINED - 28), ("a", JOINED - 10, 10)], JOINED, 1, 1),
        ([("a", 0, 9), ("a", 9, 9), ("a", 18, JOINED - 28), ("a", JOINED - 10, 11)], JOINED + 1, 2, 1),
        ([("a", 0, None), ("a", UNKNOWN + GAP, 10)], 10, 1, 1),
        ([("a", 0, None), ("a", UNKNOWN + GAP + 1, 10)], 10, 2, 1),
        ([("a", 0, 10), ("a", 0, 10), ("a", 10, None)], 10, 1, 1),
        ([("a", 0, 9), ("a", FAR, 9), ("b", 0, 9), ("b", 9, 9), ("c", 9, None)], 36, 4, 3),
    ],
)  # fmt: skip
def test_neighbors_in_an_archive_are_one_request(
    records: list[Record], size: int, requests: int, archives: int
) -> None:
    """No request has more than JOINED bytes, unless one record has, or reads along more than GAP bytes for nothing."""
    found, rows, _ = plan_of(records)
    planned = [one for _, one in read_rows(rows.splitlines())]
    lengths = [one.location.length for one in planned]
    assert found == PlanSize(len(set(records)), size, requests)
    assert [(one.location.filename, one.location.offset, one.location.length) for one in planned] == [
        *dict.fromkeys(records)
    ]
    runs = list(runs_of(planned))
    assert (len(runs), [one for run in runs for one in run]) == (requests, planned)
    shown = QuerySize("*")
    for one in planned:
        shown.add(one)
    assert shown.captures == len(planned)
    assert (shown.archives, shown.bytes, shown.requests) == (archives, size, requests)
    assert shown.unknown == lengths.count(None)


@pytest.mark.parametrize(
    ("requests", "length", "sizes"),
    [
        (1, 9, [1]),
        (5, 9, [1] * 5),
        (95, 9, [1] * 95),
        (97, 9, [2] * 48 + [1]),
        (48 * 50, 9, [48] * 50),
        (48 * 48, JOINED // 48, [48] * 48),
        (96, JOINED // 2, [2] * 48),
        (96, JOINED // 2 + 1, [1] * 96),
        (2, JOINED * 2, [1, 1]),
    ],
)
def test_a_unit_has_few_requests_and_bytes(requests: int, length: int, sizes: list[int]) -> None:
    """So a small copy is divided among all processes, and little of a large one is lost by a kill."""
    size, rows, runs = plan_of([("a", number * FAR, length) for number in range(requests)])
    units = list(units_of(io.BytesIO(runs), len(rows), size, 7))
    texts = [rows[unit.start : unit.start + unit.size] for unit in units]
    assert [text.count(b"\n") for text in texts] == sizes
    assert b"".join(texts) == rows
    assert sum(unit.size for unit in units) == len(rows)
    assert all(text.endswith(b"\n") for text in texts)
    assert [unit.number for unit in units] == list(range(7, 7 + len(sizes)))


def test_the_bytes_of_a_request_are_those_of_its_range_and_all_requests_of_a_unit_count() -> None:
    """A record inside a larger one adds none, and a gap that is read along counts."""
    pair: list[Record] = [("a", 0, 5 << 20), ("a", 9, 9), ("b", 0, 9), ("b", 9 + GAP, (3 << 20) - 9 - GAP)]
    more: list[Record] = [("c", number * FAR, 1) for number in range(94)]
    size, rows, runs = plan_of([*pair, *more])
    first, *_ = units_of(io.BytesIO(runs), len(rows), size, 0)
    assert first == Unit(0, 0, len(b"".join(row + b"\n" for row in rows_of(pair))))
    size, rows, runs = plan_of([*pair[:3], ("b", 9 + GAP, (3 << 20) - 8 - GAP), *more])
    first, *_ = units_of(io.BytesIO(runs), len(rows), size, 0)
    assert first == Unit(0, 0, len(b"".join(row + b"\n" for row in rows_of(pair[:2]))))
