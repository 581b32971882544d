"""What a user's own counter may return, and what is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages.counting.own_counter import BadFunction, OwnCounter
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.records.read_contents import Content

DATA = b"WARC/1.0\r\nWARC-Type: response\r\nX-Own: y\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n"


@pytest.fixture
def record() -> FullRecord:
    return FullRecord(Content(0, len(DATA), len(DATA), DATA), 0, HeaderShapes())


def pairs(found: Any, record: FullRecord) -> list[tuple[bytes, int]]:
    return OwnCounter(lambda _: found).pairs(record)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, []),
        ([], []),
        ("", []),
        (b"whole", [(b"whole", 1)]),
        ("whole", [(b"whole", 1)]),
        (["\u00e9\n", b" b", "b", ""], [(b"\xc3\xa9", 1), (b"b", 1), (b"b", 1)]),
        (("a", 3), [(b"a", 3)]),
        (("a", "b"), [(b"a", 1), (b"b", 1)]),
        ([("a", 3), "b", (b"c", 0)], [(b"a", 3), (b"b", 1)]),
        ({"a": 3, b"b": True}, [(b"a", 3), (b"b", 1)]),
        (Counter("aab"), [(b"a", 2), (b"b", 1)]),
        (iter([("a", 2**63 - 1)]), [(b"a", 2**63 - 1)]),
    ],
)
def test_a_function_may_return_items_and_pairs(
    found: Any, expected: list[tuple[bytes, int]], record: FullRecord
) -> None:
    assert pairs(found, record) == expected


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([b"a", 1], "an item is bytes or text, not int"),
        (7, "TypeError: 'int' object is not iterable"),
        ([("a", 1.5)], "an integer from 0 to 2..63, not 1.5"),
        ([("a", -1)], "an integer from 0 to 2..63, not -1"),
        ([("a", 2**70)], "an integer from 0 to 2..63, not 1180591620717411303424"),
        ([("word", (3, 1))], "an integer from 0 to 2..63, not .3, 1."),
        ([("a", 1, 2)], "too many values"),
    ],
)
def test_what_cannot_be_counted_is_refused_whole(found: Any, reason: str, record: FullRecord) -> None:
    with pytest.raises(BadFunction, match=reason) as raised:
        pairs(found, record)
    assert raised.value.hint == "correct the function"


def test_what_a_function_raises_belongs_to_the_record_unless_the_machine_is_to_blame(
    record: FullRecord,
) -> None:
    assert OwnCounter(lambda one: one.headers[b"x-own"] + one.block).pairs(record) == [(b"yabc", 1)]
    with pytest.raises(BadFunction, match="KeyError: b'x'"):
        OwnCounter(lambda one: ["a", one.headers[b"x"]]).pairs(record)

    def fail(error: Exception) -> Any:
        raise error

    errors: tuple[Exception, ...] = (UsageError("u"), OSError(2, "no\nsuch file"))
    for error in errors:
        with pytest.raises(BadFunction):
            OwnCounter(lambda _, error=error: fail(error)).pairs(record)  # type: ignore[misc]
    errors = (InputError("a", "b"), MemoryError())
    for error in errors:
        with pytest.raises(type(error)):
            OwnCounter(lambda _, error=error: fail(error)).pairs(record)  # type: ignore[misc]
