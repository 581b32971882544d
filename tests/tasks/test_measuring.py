"""What whole archives would take, as far as the records of a sample tell."""

from __future__ import annotations

import pytest

from cdxmill.tasks.measuring import MeasuredRecord, Promise, Savings, promise_of

PAGE = MeasuredRecord("page", 100, Savings(900, 100, 60, 40))
IMAGE = MeasuredRecord("image", 200, Savings(300, 200, 180, 190))


@pytest.mark.parametrize(
    ("records", "archives", "frame", "promise"),
    [
        ([], [{"page": 10}], 0, None),
        ([PAGE], [], 0, None),
        ([PAGE], [{"page": 0}], 0, None),
        ([PAGE], [{"page": 1000}], 100, Promise(0.5, 0)),
        ([PAGE, PAGE], [{"page": 1000}, {"page": 1000}], 100, Promise(0.5, 0)),
        ([PAGE], [{"page": 100}], 21, Promise(0.6, 0)),
        ([PAGE, IMAGE], [{"page": 100, "image": 100}], 10, Promise((40 + 95 + 10) / 200, 0)),
        ([PAGE, IMAGE], [{"page": 100, "image": 100}], 20, Promise((60 + 90) / 200, 0)),
        ([PAGE], [{"page": 100, "video": 300}], 0, Promise((40 + 300) / 400, 0.75)),
    ],
)
def test_each_archive_gets_the_dictionary_if_that_pays(
    records: list[MeasuredRecord], archives: list[dict[str, int]], frame: int, promise: Promise | None
) -> None:
    assert promise_of(records, archives, frame) == (
        None if promise is None else pytest.approx(tuple(promise))
    )
