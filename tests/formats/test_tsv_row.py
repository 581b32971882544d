"""Rows of failures.tsv: every field is read back, and none controls a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from cdxmill.formats.own_records import format_row, parse_row
from cdxmill.messages import printable

PIECES = some.sampled_from(
    ["%", "%2", "5", "%C2", "%85", "%E2%80", "%AE", "\u202e", "\x85", "\t", "\n", "\r", "\x1b", "0", "A", "é", "%0A", "%20", "\udcff"]
)  # fmt: skip


@given(
    some.lists(
        some.one_of(some.lists(PIECES).map("".join), some.text(some.characters(exclude_categories=["Cs"]))),
        min_size=1,
    )
)
def test_fields_are_read_back(fields: list[str]) -> None:
    row = format_row(fields)
    assert parse_row(row) == fields
    assert row.count(b"\n") == 1


def test_a_row_does_not_control_a_terminal() -> None:
    hostile = "".join(chr(number) for number in [*range(32), *range(0x7F, 0xA0), 0x61C, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF])  # fmt: skip
    shown = format_row([hostile]).decode()[:-1]
    assert printable(shown) == shown


def test_a_url_is_as_it_was() -> None:
    url = "https://example.com/a%20b%2Fc%C3%BC.warc.gz?x=1%262"
    assert format_row([url]) == url.encode() + b"\n"
