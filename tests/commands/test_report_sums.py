"""The sums of a report: what several parts add up to, whether it is exact, and the limits of its tables."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.commands.reporting import sums
from cdxmill.commands.reporting.parts import PartSums, ReportPart, _Reader
from cdxmill.commands.reporting.sums import NO_SAMPLES, Sums
from cdxmill.stages.report.capture_sums import Totals, pack_samples

IMAGE, REVISIT = "image/png", "warc/revisit"


def line(number: int, length: int | None = 1, time: str = "20200101000000", **fields: object) -> bytes:
    known = {"url": f"http://a.com/{number}", **fields, **({} if length is None else {"length": length})}
    values = ", ".join(f'"{name}": "{value}"' for name, value in known.items())
    return f"com,a)/{number} {time} {{{values}}}".encode()


def part(*lines: bytes, path: str = "a.cdxj", is_packed: bool = False, with_urls: bool = True) -> PartSums:
    """A CDX file with these lines, read here or by another process."""
    reader = _Reader(ReportPart(path, None, with_urls))
    reader._take(b"".join(one + b"\n" for one in lines), None)
    found = reader.report()
    assert not isinstance(found.samples, tuple)
    return found._replace(samples=pack_samples(found.samples)) if is_packed else found


def report(*parts: PartSums, is_one: bool = True) -> dict[str, Any]:
    whole = Sums(is_one=is_one)
    return whole.report([whole.take(one) for one in parts])


ROWS = [[1, 1, 2], [2, 3], [4, 4]]


@pytest.mark.parametrize("is_packed", [(False, False, False), (True, True, True), (False, True, False)])
@pytest.mark.parametrize(
    ("rows", "is_one", "urls", "is_exact"),
    [
        (ROWS, True, 4, True),
        (ROWS, False, 4, False),
        ([[1, 1, 2], [4, 3], [5]], True, 5, False),
        ([[3, 4], [1, 2], [5]], True, 5, False),
        ([[1, 2], [], [2, 2]], True, 2, True),
        ([[], [1], []], True, 1, True),
    ],
    ids=["in order", "several", "unsorted part", "parts not in order", "empty part", "one line"],
)
def test_urls_are_exact_in_one_sorted_sequence(
    rows: list[list[int]], is_one: bool, urls: int, is_exact: bool, is_packed: tuple[bool, ...]
) -> None:
    """Else they are estimated, here from all of them."""
    found = report(
        *(part(*map(line, some), is_packed=packed) for some, packed in zip(rows, is_packed, strict=True)),
        is_one=is_one,
    )
    assert (found["totals"]["urls"], found["totals"]["urls_error"]) == (urls, 0)
    (host,) = found["by"]["host"]["rows"]
    captures = sum(map(len, rows))
    assert (host["name"], host["captures"]) == ("a.com", captures)
    assert (host["urls"] is None) == (not is_exact)
    assert [row["urls"] is None for row in found["by"]["mime"]["rows"]] == [not is_exact]


def test_the_totals_are_the_sums_of_all_parts() -> None:
    found = report(
        part(line(1, 10, "20200202000000", mime=REVISIT), line(2, None, "2020")),
        part(line(3, 5, "-"), path="b.cdxj"),
        part(b"odd", line(4, 7, "20190101000000"), line(5, 2, "20210101000000", mime=REVISIT), b"x y"),
    )
    totals = found["totals"]
    assert {name: totals[name] for name in list(totals)[:11]} == {
        "captures": 5,
        "urls": 5,
        "urls_error": 0,
        "bytes": 24,
        "first": "20190101000000",
        "last": "20210101000000",
        "without_date": 2,
        "without_length": 1,
        "invalid_lines": 2,
        "revisits": 2,
        "revisit_bytes": 12,
    }
    assert found["shards"][:2] == [
        {"path": "a.cdxj", "captures": 2, "bytes": 0, "blocks": 0},
        {"path": "b.cdxj", "captures": 1, "bytes": 0, "blocks": 0},
    ]
    assert found["blocks"] is None
    undated = report(part(line(1, 1, "-")))["totals"]
    assert (undated["first"], undated["last"], undated["without_date"]) == ("", "", 1)


@pytest.mark.parametrize("is_packed", [False, True])
def test_duplicates_are_those_of_all_parts(is_packed: bool) -> None:
    one = part(line(1, 10, digest="A"), line(2, 10, digest="B"), is_packed=is_packed)
    other = part(line(3, 10, digest="A"), line(4, 10, digest="A"), line(5, 9), is_packed=is_packed)
    totals = report(one, other)["totals"]
    names = ("digests", "duplicates", "duplicate_bytes", "digests_error")
    assert tuple(totals[name] for name in names) == (2, 2, 20, 0)


@pytest.mark.parametrize(
    ("level", "urls", "digests", "captures", "expected"),
    [
        (0, 4, (5, 6, 70), 9, (4, 0, 5, 6, 70, 0)),
        (1, 4, (4, 6, 70), 9, (8, 0.5, 8, 12, 140, 0.5)),
        (2, 4, (1, 0, 0), 9, (9, 0.5, 4, 0, 0, 1.0)),
        (3, 0, (9, 1, 1), 9, (0, 1.0, 9, 8, 8, 0.33333)),
    ],
)
def test_what_is_estimated_from_a_sample(
    level: int, urls: int, digests: tuple[int, int, int], captures: int, expected: tuple[float, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A sample of level N has one value of 2 ** N. There are not more than captures."""
    samples = {"urls": (level, urls, 0, 0), "digests": (level, *digests)}
    monkeypatch.setattr(Sums, "_own_samples", lambda _: SimpleNamespace(sampled=samples.get))
    whole = Sums(is_one=False)
    given: Any = SimpleNamespace(
        path="a", totals=Totals(captures=captures), first_key=b"", block_bytes=[], block_lines=[], invalid=0
    )
    totals = whole.report([given])["totals"]
    names = ("urls", "urls_error", "digests", "duplicates", "duplicate_bytes", "digests_error")
    assert tuple(totals[name] for name in names) == expected


@pytest.mark.parametrize(
    ("level", "sampled", "error"), [(0, 0, 0), (0, 9, 0), (1, 0, 1.0), (1, 1, 1.0), (1, 4, 0.5), (5, 3, 0.57735)]
)  # fmt: skip
def test_the_error_of_an_estimate(level: int, sampled: int, error: float) -> None:
    assert sums._error(level, sampled) == error


def test_what_was_added_is_not_kept() -> None:
    whole, given = Sums(is_one=True), part(line(1, 3), line(2, 4))
    kept = whole.take(given)
    assert (kept.tables, kept.samples, kept.largest) == ({}, NO_SAMPLES, [])
    assert kept._replace(tables=given.tables, samples=given.samples, largest=given.largest) == given


def test_the_largest_records_are_those_of_all_parts() -> None:
    first = [line(row, row + 1, mime=IMAGE, status="200", filename="a.gz", offset=row) for row in range(15)]
    found = report(part(*first), part(*(line(row, 100 - row) for row in range(15))))["largest"]
    assert [int(one["length"]) for one in found] == [*range(100, 85, -1), *range(15, 10, -1)]
    assert found[-1] == {
        "url": "http://a.com/10",
        "timestamp": "20200101000000",
        "mime": IMAGE,
        "status": "200",
        "length": "11",
        "filename": "a.gz",
        "offset": "10",
    }
    assert (found[0]["mime"], found[0]["filename"]) == ("", "")


def test_a_record_of_the_list_is_text() -> None:
    long = line(1, 1, mime="\\ud800", url="h" * 3000)
    found = sums._record(long)
    assert (found["mime"], found["url"]) == ("\\ud800", "h" * 2000)


def full(first: bytes, last: bytes, captures: int = 1) -> Any:
    return SimpleNamespace(first_key=first, totals=Totals(captures=captures, key=last))


@pytest.mark.parametrize(
    ("given", "in_order", "shared"),
    [
        ([], True, 0),
        ([full(b"a", b"b")], True, 0),
        ([full(b"a", b"b"), full(b"c", b"d")], True, 0),
        ([full(b"a", b"b"), full(b"b", b"b"), full(b"b", b"c")], True, 2),
        ([full(b"a", b"c"), full(b"b", b"d")], False, 0),
        ([full(b"a", b"b"), full(b"z", b"", 0), full(b"b", b"d")], True, 1),
        ([full(b"a", b"b"), full(b"b", b"c"), full(b"a", b"d")], False, 1),
    ],
)
def test_the_border_of_two_parts(given: list[Any], in_order: bool, shared: int) -> None:
    assert (sums._in_order(given), sums._shared_urls(given)) == (in_order, shared)


def table(rows: list[tuple[Any, ...]], distinct: int, is_exact: bool = True) -> Any:
    asked: list[int] = []

    def top(number: int) -> list[tuple[Any, ...]]:
        asked.append(number)
        return rows[:number]

    return SimpleNamespace(
        distinct=lambda: distinct, top=top, is_exact=is_exact, captures_error=lambda: 5, asked=asked
    )


@pytest.mark.parametrize(
    ("rows", "distinct", "is_exact", "complete"),
    [
        ([], 0, True, True),
        ([(b"a", 1, 1, 1)], 1, True, True),
        ([(b"a", 1, 1, 1)], 1, False, False),
        ([(b"a", 1, 1, 1)], 2, True, False),
        ([(b"a", 1, 1, 1), (b"-", 1, 1, 1)], 1, True, True),
        ([(b"a", 1, 1, 1), (b"-", 1, 1, 1)], 2, True, False),
        ([(b"-", 1, 1, 1)], 0, True, True),
        ([(b"a", 1, 1, 1), (b"b", 1, 1, 1)], 1, True, True),
    ],
)
def test_a_table_is_complete_if_it_has_all_names(
    rows: list[Any], distinct: int, is_exact: bool, complete: bool
) -> None:
    found = sums._table("mime", table(rows, distinct, is_exact), True)
    assert (found["distinct"], found["complete"]) == (distinct, complete)
    assert (found["distinct_error"] == 0, found["captures_error"]) == (is_exact, 5)


@pytest.mark.parametrize(
    ("name", "most", "names"),
    [
        ("host", 1000, ["www.b.com", "org.a", "-"]),
        ("domain", 1000, ["www.b.com", "org.a", "-"]),
        ("tld", 1000, ["com,b,www", "a,org", "-"]),
        ("mime", 1000, ["com,b,www", "a,org", "-"]),
        ("language", 1000, ["com,b,www", "a,org", "-"]),
        ("archive", 1000, ["com,b,www", "a,org", "-"]),
        ("status", 20_000, ["com,b,www", "a,org", "-"]),
        ("month", 20_000, ["-", "a,org", "com,b,www"]),
        ("year", 20_000, ["-", "a,org", "com,b,www"]),
        ("mime_by_month", 20_000, ["-", "a,org", "com,b,www"]),
    ],
)
@pytest.mark.parametrize("is_sorted", [False, True])
def test_the_rows_of_a_table(name: str, most: int, names: list[str], is_sorted: bool) -> None:
    """Months are in their order, and all of them are listed."""
    rows = [(b"com,b,www", 9, 3, 7), (b"a,org", 8, 2, 6), (b"-", 7, 1, 5)]
    given = table(rows, 3)
    found = sums._table(name, given, is_sorted)
    assert given.asked == [most]
    assert [row["name"] for row in found["rows"]] == names
    by_captures = sorted(found["rows"], key=lambda row: -int(row["captures"]))
    assert [(row["captures"], row["urls"], row["bytes"]) for row in by_captures] == [
        (captures, urls if is_sorted else None, size) for _, captures, urls, size in rows
    ]


def test_there_is_a_table_of_each_kind() -> None:
    found = report(part(line(1, 2, mime="text/html", status="404", languages="deu,eng", filename="a.gz")))[
        "by"
    ]
    assert {name: [row["name"] for row in table["rows"]] for name, table in found.items()} == {
        "host": ["a.com"],
        "domain": ["a.com"],
        "tld": ["com"],
        "mime": ["text/html"],
        "status": ["404"],
        "language": ["deu"],
        "archive": ["a.gz"],
        "year": ["2020"],
        "month": ["202001"],
        "mime_by_month": ["202001text/html"],
    }


@pytest.mark.parametrize(
    ("numbers", "median"),
    [([3], 3), ([1, 4], 2), ([9, 1, 4], 4), ([9, 2, 4, 1], 3), ([5, 5, 5, 6], 5), ([1, 2, 3, 4, 100], 3)],
)
def test_the_median(numbers: list[int], median: int) -> None:
    assert sums._median(numbers) == median


def test_the_blocks_of_all_shards() -> None:
    one: Any = SimpleNamespace(block_bytes=array("Q", [10, 40]), block_lines=array("Q", [3, 9]))
    other: Any = SimpleNamespace(block_bytes=array("Q", [20]), block_lines=array("Q", [1]))
    none: Any = SimpleNamespace(block_bytes=array("Q"), block_lines=array("Q"))
    assert sums._blocks([none, none]) is None
    assert sums._blocks([one, none, other]) == {
        "number": 3,
        "bytes": 70,
        "least_bytes": 10,
        "median_bytes": 20,
        "most_bytes": 40,
        "least_lines": 1,
        "median_lines": 3,
        "most_lines": 9,
    }


def test_shards_are_listed_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "_MOST_ROWS", 2)
    parts = [
        part(line(row), path=str(row))._replace(
            block_bytes=array("Q", [7, 8][: row + 1]), block_lines=array("Q", [1, 1][: row + 1])
        )
        for row in range(3)
    ]
    assert report(*parts)["shards"] == [
        {"path": "0", "captures": 1, "bytes": 7, "blocks": 1},
        {"path": "1", "captures": 1, "bytes": 15, "blocks": 2},
    ]
