"""Tables of groups: exact up to a number of names, joined with those of other processes, and estimated beyond."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest

from cdxmill.formats.lines.public_suffixes import PublicSuffixes
from cdxmill.stages.report.capture_sums import NONE, Group
from cdxmill.stages.report.tables import KINDS, ReportTables, Table, domain_of


def table_of(groups: Iterable[Group], most: int = 1000) -> Table:
    table = Table(most)
    table.add(groups)
    return table


def groups_of(names: Iterable[int]) -> list[Group]:
    return [(b"n%d\xff" % number, number + 1, 1, 10 * number) for number in names]


def test_a_table_adds_up_and_has_the_largest_rows_first() -> None:
    table = table_of([(b"a", 1, 2, 3), (b"b", 7, 1, 1), (NONE, 7, 1, 9)])
    table.add([(b"a", 10, 20, 30), (b"c", 7, 1, 1)])
    rows = [(b"a", 11, 22, 33), (NONE, 7, 1, 9), (b"c", 7, 1, 1), (b"b", 7, 1, 1)]
    assert table.top(9) == rows
    assert table.top(2) == rows[:2]
    assert (table.is_exact, table.distinct(), table.captures_error()) == (True, 3, 0)


def test_a_table_is_exact_up_to_its_limit() -> None:
    table = table_of(groups_of(range(10)), 10)
    table.add(groups_of(range(10)))
    assert (table.is_exact, table.distinct()) == (True, 10)
    table.add(groups_of([10]))
    assert (table.is_exact, table.distinct()) == (False, 11)
    assert table.captures_error() > 0
    assert table.top(2) == [(b"n9\xff", 20, None, 180), (b"n8\xff", 18, None, 160)]
    table.add(groups_of([9]))
    assert table.top(1) == [(b"n9\xff", 30, None, 270)]


@pytest.mark.parametrize(("first", "second"), [*product([0, 5, 30], repeat=2)])
def test_tables_of_two_processes_are_joined(first: int, second: int) -> None:
    """Of 30 names, a table of 10 is an estimate."""
    one, other = (table_of(groups_of(range(count)), 10) for count in (first, second))
    packed = other.pack()
    one.absorb(packed)
    assert one.distinct() == max(first, second)
    assert one.is_exact == (max(first, second) < 10)
    number = min(first, second)
    if number:
        rows = {name: (captures, size) for name, captures, _, size in one.top(99)}
        assert rows[b"n%d\xff" % (number - 1)] == (2 * number, 20 * (number - 1))
        assert len(rows) == max(first, second)
    one.absorb(packed)
    one.add(groups_of([0]))
    assert packed == other.pack() or not other.is_exact
    assert one.distinct() == max(first, second, 1)


SUFFIXES = PublicSuffixes(["com", "uk", "co.uk", "4you"])


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        (b"com,example,www", b"com,example"),
        (b"uk,co,bbc,news", b"uk,co,bbc"),
        (b"com", b"com"),
        (b"1,2,3,4", b"1,2,3,4"),
        (b"1.2.3.4", b"1.2.3.4"),
        (b"4chan", b"4chan"),
        (b"4you,example,www", b"4you,example"),
        (NONE, NONE),
    ],
)
def test_the_domain_of_a_host(host: bytes, domain: bytes) -> None:
    assert domain_of(host, SUFFIXES) == domain


def test_every_kind_has_a_table_and_domains_are_those_of_hosts() -> None:
    hosts: list[Group] = [(b"com,a,x", 1, 1, 5), (b"com,a,y", 2, 1, 6), (b"com,b", 4, 1, 7)]
    kinds = {kind: [(b"n" + kind, 1, 1, 1)] for kind in KINDS if kind != b"h"}
    tables = ReportTables(SUFFIXES, 2)
    tables.take({b"h": hosts, **kinds})
    tables.take({b"m": [(b"more", 2, 1, 1)]})
    other = ReportTables(SUFFIXES, 2)
    other.absorb(tables.pack())
    for found in (tables.tables, other.tables):
        assert found["domain"].top(9) == [(b"com,b", 4, 1, 7), (b"com,a", 3, 2, 11)]
        assert not found["host"].is_exact
        for kind, name in KINDS.items():
            assert kind == b"h" or found[name].top(9)[-1] == (b"n" + kind, 1, 1, 1)
    assert other.tables["mime"].distinct() == 2


def test_estimates_of_two_processes_with_other_names_are_added() -> None:
    one, other = table_of(groups_of(range(30)), 10), table_of(groups_of(range(100, 130)), 10)
    one.absorb(other.pack())
    assert 57 <= one.distinct() <= 63
    assert {row[0] for row in one.top(60)} == {
        group[0] for group in groups_of([*range(30), *range(100, 130)])
    }


def test_the_error_of_an_estimate_grows_with_the_captures() -> None:
    few, many = table_of(groups_of(range(11)), 10), table_of([(b"a", 10**9, 1, 1), *groups_of(range(11))], 10)
    assert few.captures_error() == 1
    assert 1000 < many.captures_error() < 10**8
