"""Archives that differ are compared record by record, with few records in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.capture import Damage
from cdxmill.stages.records import compare_contents
from cdxmill.stages.records.compare_contents import OtherRecords, RecordSum, differences, parts_of
from cdxmill.stages.records.read_contents import Content

RECORDS = st.lists(st.integers(0, 5), max_size=12)


def sums(contents: list[int]) -> Iterator[RecordSum]:
    return (RecordSum(number, 9 * number, one + 1, b"%d" % one) for number, one in enumerate(contents, 1))


@given(RECORDS, RECORDS)
def test_all_records_are_in_the_answer_in_their_order(old: list[int], new: list[int]) -> None:
    before, after = list(sums(old)), list(sums(new))
    for item in differences(sums(old), sums(new)):
        if isinstance(item, OtherRecords):
            assert item.old or item.new
            assert {one.key for one in item.old}.isdisjoint(one.key for one in item.new)
            assert (before[: len(item.old)], after[: len(item.new)]) == (item.old, item.new)
            del before[: len(item.old)], after[: len(item.new)]
        else:
            assert before.pop(0).key == after.pop(0).key
    assert before == after == []


def test_of_other_archives_few_records_are_held() -> None:
    taken = 0

    def counted(first: int) -> Iterator[RecordSum]:
        nonlocal taken
        for one in sums(list(range(first, first + 5000))):
            taken += 1
            yield one

    found = differences(counted(0), counted(10_000))
    assert isinstance(next(found), OtherRecords)
    assert taken == 2000
    assert isinstance(next(found), OtherRecords)
    assert taken == 4000


@given(st.lists(st.integers(0, 9), max_size=40), st.lists(st.integers(0, 9), max_size=40))
def test_after_a_difference_no_more_records_are_held_than_before(old: list[int], new: list[int]) -> None:
    taken = [0, 0]

    def counted(which: int, contents: list[int]) -> Iterator[RecordSum]:
        for one in sums(contents):
            taken[which] += 1
            yield one

    answered = [0, 0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare_contents, "_AHEAD", 4)
        for item in differences(counted(0, old), counted(1, new)):
            sizes = (len(item.old), len(item.new)) if isinstance(item, OtherRecords) else (1, 1)
            answered = [answered[0] + sizes[0], answered[1] + sizes[1]]
            assert all(0 <= held - given <= 4 for held, given in zip(taken, answered, strict=True))
    assert answered == [len(old), len(new)]


def test_the_next_equal_record_is_the_nearest() -> None:
    found = [
        one for one in differences(sums([1, 2, 3]), sums([9, 3, 8, 7, 1, 2, 3])) if not isinstance(one, int)
    ]
    assert [(len(one.old), len(one.new)) for one in found] == [(2, 1), (0, 5)]


def content(data: bytes, offset: int, records: int = 1, *, is_held: bool = True) -> Content:
    return Content(
        offset, len(data), len(data), data if is_held else None, lambda: iter((data[:2], data[2:])), records
    )


def test_a_record_has_the_blank_lines_after_it() -> None:
    bad = Damage(20, "corrupt")
    items: list[Content | Damage] = [
        content(b"\r\n", 0, 0),
        content(b"one", 2),
        content(b"\r\n", 5, 0),
        bad,
        content(b"two", 30, is_held=False),
    ]
    damage: list[Damage] = []
    seen: list[Content] = []
    found = list(parts_of(items, damage.append, lambda content, _: seen.append(content)))
    expected = [(1, 0, b"\r\n"), (2, 2, b"one\r\n"), (3, 30, b"two")]
    assert [(one.number, one.offset, one.size, one.sha256) for one in found] == [
        (number, offset, len(data), hashlib.sha256(data).digest()) for number, offset, data in expected
    ]
    assert (damage, seen) == ([bad], [one for one in items if isinstance(one, Content)])
    assert list(parts_of([bad], damage.append)) == list(parts_of([], damage.append)) == []
