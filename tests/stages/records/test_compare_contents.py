"""Archives that differ are compared record by record, with few records in memory."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.records.compare_contents import OtherRecords, RecordSum, differences

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
