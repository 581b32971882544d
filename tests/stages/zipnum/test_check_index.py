"""The lines of an index against those that the shards give."""

from __future__ import annotations

import pytest

from cdxmill.stages.zipnum.check_index import MOST_FAULTS, ShardLines, WrongLine, scan_index, wrong_line

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


ROWS = [
    b"com,a)/ 2020\tcdx-00000.gz\t0\t90",
    b"com,b)/ 2020\tcdx-00000.gz\t90\t80",
    b"com,c)/ 2020\tcdx-00001.gz\t0\t70",
    b"com,c)/ 2020\tcdx-00001.gz\t70\t60",
]


def index_of(rows: list[bytes], first: int = 1) -> bytes:
    return b"".join(b"%b\t%d\n" % (row, number) for number, row in enumerate(rows, first))


@pytest.mark.parametrize("is_numbered", [True, False])
def test_a_valid_index_has_the_lines_of_each_shard_and_no_fault(is_numbered: bool) -> None:
    text = index_of(ROWS) if is_numbered else b"".join(row + b"\n" for row in ROWS)
    middle = text.index(ROWS[2])
    shards = {"cdx-00000.gz": ShardLines(0, middle, 1), "cdx-00001.gz": ShardLines(middle, len(text), 3)}
    for pieces in ([text], [text[:50], text[50:]], [bytes([byte]) for byte in text]):
        assert scan_index(pieces) == (shards, is_numbered, [])
    assert scan_index([]) == ({}, False, [])


def test_each_fault_of_an_index_is_reported_with_its_offset() -> None:
    text = index_of([ROWS[2], ROWS[0], b"garbage", ROWS[3], ROWS[1]], 1).replace(b"\t2\n", b"\t3\n")
    at = [text.index(line) for line in text.split(b"\n")[:-1]]
    report = scan_index([text[:-1]])
    assert report.numbered
    assert [fault.offset for fault in report.faults] == [at[1], at[2], at[3], at[4], at[4], None, at[1]]
    reasons = [fault.reason for fault in report.faults]
    words = ["line 2 is out of order", "line 3 is not an index line", "line 4: the lines of cdx-00001.gz are not consecutive"]  # fmt: skip
    words += ["line 5 is out of order", "line 5: the lines of cdx-00000.gz are not", "the last line is truncated", "line 2 has the wrong number"]  # fmt: skip
    assert [reason[: len(start)] for reason, start in zip(reasons, words, strict=True)] == words


@pytest.mark.parametrize(
    ("numbers", "faults"),
    [(b"1234", 0), (b"1239", 1), (b"1299", 0), (b"9999", 0), (b"----", 0), (b"-234", 1)],
)
def test_a_wrong_number_counts_if_most_lines_have_the_right_one(numbers: bytes, faults: int) -> None:
    lines = (
        row + (b"" if number == 45 else b"\t%c" % number) for row, number in zip(ROWS, numbers, strict=True)
    )
    report = scan_index([b"".join(line + b"\n" for line in lines)])
    assert report.numbered == (numbers in (b"1234", b"1239", b"-234"))
    assert len(report.faults) == faults


def test_not_more_faults_are_reported_than_somebody_reads() -> None:
    assert len(scan_index([b"garbage\n" * 50]).faults) == MOST_FAULTS
    wrong = index_of([ROWS[0]] * 100) + index_of([ROWS[0]] * 50)
    assert len(scan_index([wrong]).faults) == MOST_FAULTS


@pytest.mark.parametrize(
    "line", [b"com,a)/\t1\tcdx-00000.gz\t0\t90\t1", b"a\tb\t0\t1\t1\t1", b"a\tb\t0\t1\t1 "]
)
def test_a_line_with_other_columns_is_no_index_line(line: bytes) -> None:
    report = scan_index([line + b"\n"])
    assert (report.shards, [fault.offset for fault in report.faults]) == ({}, [0])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_length_in_a_line_without_a_number_is_not_its_number(number: int) -> None:
    assert scan_index([b"com,a)/\tcdx-00000.gz\t0\t%d\n" % number]).numbered is False
