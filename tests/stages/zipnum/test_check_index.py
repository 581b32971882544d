"""The lines of an index against those that the shards give."""

from __future__ import annotations

import pytest

from cdxmill.stages.zipnum.check_index import WrongLine, wrong_line

FIRST = b"com,a)/ 2020\tcdx-00000.gz\t0\t90\t1\n"
SECOND = b"com,b)/ 2020\tcdx-00000.gz\t90\t80\t2\n"
SPELLED = SECOND.replace(b"\t90\t", b"\t090\t")
"""The same block as SECOND."""
OTHER = SECOND.replace(b"\t90\t", b"\t91\t")
WANTED = FIRST + SECOND


@pytest.mark.parametrize(
    ("text", "strict", "number"),
    [
        (WANTED, True, None),
        (WANTED, False, None),
        (FIRST + SPELLED, True, 2),
        (FIRST + SPELLED, False, None),
        (FIRST + OTHER, True, 2),
        (FIRST + OTHER, False, 2),
        (FIRST, True, 2),
        (FIRST, False, 2),
        (WANTED + b"x\n", False, 3),
        (WANTED + b"\n", True, 0),
        (WANTED + b"\n", False, 0),
        (WANTED[:-1], True, 0),
        (WANTED[:-1], False, 0),
        (FIRST + b"x\n", False, 2),
        (b"", False, 1),
    ],
)
def test_the_first_line_that_names_another_block_is_found(
    text: bytes, strict: bool, number: int | None
) -> None:
    found = wrong_line(text, WANTED, strict)
    if number is None or number == 0:
        assert found == (None if number is None else WrongLine(0, b"", b""))
        return
    have, want = ([*one.split(b"\n"), b"", b""][number - 1] for one in (text, WANTED))
    assert found == WrongLine(number, have, want)
