"""Which of the found lines are printed, and in which order: over lists that are cut anywhere, and no further read than needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

import pytest

from cdxmill.formats.lines.lookup_query import TimeRange, parse_filter
from cdxmill.stages.lines.choose_lines import (
    collapse,
    each,
    keep_passing,
    keep_within,
    nearest,
    parse_collapse,
    resolve_revisits,
    reverse_lines,
    seconds,
    sort_closest,
    take_first,
)

GARBAGE = b"com,a)/ 2020 {garbage"


def line(time: int | str, status: object = 200, **fields: object) -> bytes:
    return f"com,a)/ {time} {json.dumps({'status': status, **fields})}".encode()


LINES = [line(year) for year in range(2000, 2010)]


class Read:
    """Lists of lines that are counted when they are read, and what was invalid in them."""

    def __init__(self, lines: list[bytes], size: int = 3) -> None:
        self.lists = [lines[start : start + size] for start in range(0, len(lines), size)]
        self.count = 0
        self.wrong: list[tuple[bytes, str]] = []

    def __iter__(self) -> Iterator[list[bytes]]:
        for one in self.lists:
            self.count += 1
            yield one

    def invalid(self, found: bytes, error: Exception) -> None:
        self.wrong.append((found, type(error).__name__))


def joined(lists: Iterator[list[bytes]]) -> list[bytes]:
    return list(chain.from_iterable(lists))


@pytest.mark.parametrize(("limit", "lists"), [(1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (7, 3), (99, 4)])
def test_not_more_lists_are_read_than_a_limit_needs(limit: int, lists: int) -> None:
    read = Read(LINES)
    assert joined(take_first(read, limit)) == LINES[:limit]
    assert read.count == lists


@pytest.mark.parametrize("limit", [None, 0, 1, 4, 10, 20])
def test_the_last_lines_come_first(limit: int | None) -> None:
    expected = LINES[::-1][:limit]
    assert joined(reverse_lines(Read(LINES), limit)) == expected
    assert joined(reverse_lines(Read([]), limit)) == []


def test_many_lines_are_given_in_lists_that_are_sent_at_once() -> None:
    many = [b"com,a)/ 2020 %d" % number for number in range(2500)]
    for given in (
        list(reverse_lines(Read(many, 2500), None)),
        list(sort_closest(Read(many, 2500), "2020", None)),
    ):
        assert list(map(len, given)) == [0, 1000, 1000, 500]
    assert list(reverse_lines(Read([]), None)) == [[]]


def test_lines_that_do_not_pass_or_cannot_be_read_are_left_out() -> None:
    lines = [line(1), line(2, "404"), GARBAGE, line(3, "404", mime="a"), line(4, mime="a")]
    filters = [parse_filter(text).passes for text in ("=status:404", "=mime:a")]
    read = Read(lines)
    assert joined(keep_passing(read, filters, read.invalid)) == [lines[3]]
    assert read.wrong == [(GARBAGE, "ValueError")]
    assert joined(keep_passing(Read(lines), [], read.invalid)) == lines


def test_a_line_that_cannot_be_read_has_no_result_and_others_have_theirs() -> None:
    read = Read([])
    assert each(int, [b"1", b"x", b"3"], read.invalid) == [1, None, 3]
    assert read.wrong == [(b"x", "ValueError")]

    def too_deep(found: bytes) -> bytes:
        if found == b"deep":
            raise RecursionError
        return found

    assert each(too_deep, [b"deep", b"a"], read.invalid) == [None, b"a"]
    assert read.wrong[1:] == [(b"deep", "RecursionError")]


@pytest.mark.parametrize(
    ("times", "years"),
    [
        (TimeRange(), range(2000, 2010)),
        (TimeRange(b"2003"), range(2003, 2010)),
        (TimeRange(b"", b"2003"), range(2000, 2004)),
        (TimeRange(b"2003", b"2003"), [2003]),
        (TimeRange(b"20030", b"20049"), [2004]),
    ],
)
def test_both_bounds_of_a_time_range_are_included(times: TimeRange, years: list[int]) -> None:
    assert joined(keep_within(Read(LINES), times)) == list(map(line, years))


def test_a_timestamp_that_is_no_number_is_within_an_open_range() -> None:
    assert joined(keep_within(Read([b"com,a)/ - {}", b"com,a)/ \xc3\xa9 {}"]), TimeRange())) != []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("4", [0, 2, 3, 5]),
        ("6", [0, 1, 2, 3, 5]),
        ("999999999999999999999", [0, 1, 2, 3, 5]),
        ("status", [0, 2, 3]),
        ("status:1", [0, 2, 3]),
        ("mime:1", [0, 5]),
        ("mime", [0, 1, 5]),
        ("mime:99999999999999999999", [0, 1, 5]),
        ("mime:0", [0]),
    ],
)
def test_the_first_of_consecutive_lines_with_one_value_is_kept(text: str, kept: list[int]) -> None:
    lines = [
        line("202001", mime="ab"),
        line("202002", mime="ac"),
        line("202002", 404, mime="ac"),
        line("202002", 200, mime="ac", n=1),
        GARBAGE,
        line("2021", 200, mime="b"),
        line("2021", 200, mime="b"),
    ]
    for size in (1, 2, 7):
        read = Read(lines, size)
        found = joined(collapse(read, parse_collapse(text).token, read.invalid))
        assert [lines.index(one) for one in found] == kept
        assert read.wrong == [(GARBAGE, "ValueError")]


@pytest.mark.parametrize("text", ["", ":", ":3", "status:", "status:x", "status:-1", "status:\u0663"])
def test_an_invalid_collapse_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid collapse"):
        parse_collapse(text)
    assert (parse_collapse("status:3").field, parse_collapse("12").field) == ("status", None)


def test_lines_that_cannot_be_read_have_no_revisits() -> None:
    read = Read([line(1, digest="A", mime="a/b"), GARBAGE, line(2, digest="A", mime="warc/revisit")])
    found = [json.loads(one.split(b" ", 2)[2]) for one in joined(resolve_revisits(read, read.invalid))]
    assert [one["mime"] for one in found] == ["a/b", "a/b"]
    assert read.wrong == [(GARBAGE, "ValueError")]


@pytest.mark.parametrize("limit", range(1, 8))
def test_the_nearest_lines_of_a_url_need_few_of_the_lists_on_both_sides(limit: int) -> None:
    lines = [line(f"2020010{day}120000") for day in range(1, 10)]
    moment = "20200105130000"
    before, after = Read(lines[4::-1], 1), Read(lines[5:], 1)
    expected = sorted(lines, key=lambda one: abs(seconds(one.split(b" ")[1].decode()) - seconds(moment)))
    assert joined(nearest(before, after, moment, limit)) == expected[:limit]
    assert before.count <= limit + 1
    assert after.count <= limit


def test_of_lines_with_one_timestamp_the_first_ones_are_the_nearest() -> None:
    """Those before the moment come from the last one on, so all of one timestamp are read."""
    same = [line(2020, number) for number in range(5)]
    before = Read([*same[::-1], line(2019), line(2018)], 2)
    assert joined(nearest(before, Read([]), "2021", 2)) == same[:2]
    assert before.count == 3


def test_a_moment_has_to_be_a_time() -> None:
    assert seconds("19700101000001") == 1
    assert seconds("20200229235959") - seconds("20200228") == 86400
    assert seconds("20201301") == seconds("20201201235959")
    for text in ("", "-", "soon", "202"):
        with pytest.raises(ValueError, match="invalid timestamp"):
            seconds(text)


def resolved(*lines: bytes) -> list[dict[str, object]]:
    """The fields of lines with their originals."""
    read = Read(list(lines), 2)
    found = [json.loads(one.split(b" ", 2)[2]) for one in joined(resolve_revisits(read, read.invalid))]
    assert read.wrong == []
    return found


NO_ORIGINAL = {"orig.length": "-", "orig.offset": "-", "orig.filename": "-"}


def test_lines_without_a_digest_have_no_original() -> None:
    for digest in ({}, {"digest": ""}, {"digest": None}):
        page, revisit = resolved(line(1, mime="a/b", **digest), line(2, mime="warc/revisit", **digest))
        assert page == {"status": 200, "mime": "a/b", **digest, **NO_ORIGINAL}
        assert revisit == {"status": 200, "mime": "warc/revisit", **digest, **NO_ORIGINAL}
    assert (
        resolved(line(1, mime="a/b", digest=5), line(2, mime="warc/revisit", digest="5"))[1]["mime"] == "a/b"
    )


def test_a_revisit_gets_the_fields_that_it_has_from_what_its_original_has() -> None:
    place = {"length": "7", "offset": "8", "filename": "a.warc.gz"}
    original = {"orig.length": "7", "orig.offset": "8", "orig.filename": "a.warc.gz"}
    page = line(1, 404, mime="a/b", digest="A", **place)
    for mime in ("warc/revisit", "a/b"):
        name = "-" if mime == "a/b" else "b.warc.gz"
        _, revisit = resolved(page, line(2, "-", mime=mime, digest="A", filename=name))
        assert revisit == {"status": 404, "mime": "a/b", "digest": "A", "filename": name, **original}
    bare = b'com,a)/ 2020 {"digest": "A", "filename": "-"}'
    assert resolved(page, bare)[1] == {"digest": "A", "filename": "-", **original}
    less = b'com,a)/ 2019 {"digest": "A", "offset": "8"}'
    assert resolved(less, line(2, 5, mime="warc/revisit", digest="A"))[1] == {
        "status": "",
        "mime": "",
        "digest": "A",
        **NO_ORIGINAL,
        "orig.offset": "8",
    }


def test_a_collapse_has_digits_of_ascii_however_many() -> None:
    assert parse_collapse("\u0663").field == "\u0663"
    lines = [line("202001"), line("202002"), line("202002", 404)]
    for text in ("9" * 5000, "status:" + "9" * 5000):
        tokens = [parse_collapse(text).token(one) for one in lines]
        assert len(set(tokens)) == (3 if text[0] == "9" else 2)


@pytest.mark.parametrize(
    ("timestamp", "wanted"),
    [
        ("20131226095010", 1388051410),
        ("20131226095010999", 1388051410),
        ("2013122609501099", 1388051410),
        ("201312260950", 1388051459),
        ("2013122609", 1388051999),
        ("20131226", 1388102399),
        ("201312", 1388534399),
        ("2014", 1420070399),
        ("20131231235959", 1388534399),
        ("20140101000000", 1388534400),
        ("20140228000000", 1393545600),
        ("20140229000000", 1393545600),
        ("20140331000000", 1396224000),
        ("20141301000000", 1417392000),
        ("20140101240000", 1388534400 + 23 * 3600),
        ("20140101006000", 1388534400 + 59 * 60),
        ("20140101000060", 1388534400 + 59),
    ],
)
def test_a_timestamp_is_the_last_second_that_it_can_mean(timestamp: str, wanted: int) -> None:
    assert seconds(timestamp) == wanted
