"""Which lines of an answer the Wayback dialect gives, and the key for those that follow."""

from __future__ import annotations

import pytest

from cdxmill.server.answers import RequestError
from cdxmill.server.dialects import wayback
from cdxmill.server.parameters import Parameters

Lists = list[list[bytes]]


def line(key: str, time: int, number: int = 0) -> bytes:
    return b"%b %d {%d}" % (key.encode(), time, number)


LINES = [line("a", 1), line("a", 2), line("a", 2, 1), line("a", 2, 2), line("b", 1), line("c", 1)]


def paging(query: str) -> wayback._Paging:
    return wayback._Paging(Parameters(query.encode(), wayback.KNOWN))


def lists_of(size: int) -> Lists:
    return [LINES[at : at + size] for at in range(0, len(LINES), size)]


@pytest.mark.parametrize("size", [1, 4, 6])
@pytest.mark.parametrize(
    ("query", "given", "key"),
    [
        ("", range(6), None),
        ("limit=0", range(6), None),
        ("offset=0", range(6), None),
        ("limit=2", range(2), None),
        ("limit=6", range(6), None),
        ("limit=9", range(6), None),
        ("offset=2", range(2, 6), None),
        ("offset=6", range(0), None),
        ("offset=9", range(0), None),
        ("limit=2&offset=1", range(1, 3), None),
        ("limit=2&offset=5", range(5, 6), None),
        ("showResumeKey=true", range(6), None),
        ("limit=1&showResumeKey=true", range(1), b"a+1+1"),
        ("limit=2&showResumeKey=true", range(2), b"a+2+1"),
        ("limit=3&showResumeKey=true", range(3), b"a+2+2"),
        ("limit=4&showResumeKey=true", range(4), b"a+2+3"),
        ("limit=5&showResumeKey=true", range(5), b"b+1+1"),
        ("limit=6&showResumeKey=true", range(6), None),
        ("limit=7&showResumeKey=true", range(6), None),
        ("limit=1&showResumeKey=true&resumeKey=a+2+1", range(2, 3), b"a+2+2"),
        ("limit=2&showResumeKey=true&resumeKey=a+2+1", range(2, 4), b"a+2+3"),
        ("limit=3&showResumeKey=true&resumeKey=a+2+1", range(2, 5), b"b+1+1"),
        ("limit=4&showResumeKey=true&resumeKey=a+2+1", range(2, 6), None),
        ("limit=1&resumeKey=a+2+1", range(2, 3), None),
        ("resumeKey=a+1+1", range(1, 6), None),
        ("resumeKey=a+2+3", range(4, 6), None),
        ("resumeKey=a+2+9", range(4, 6), None),
        ("resumeKey=a+2+0", range(1, 6), None),
        ("resumeKey=aa+1+1", range(4, 6), None),
        ("resumeKey=c+1+1", range(0), None),
        ("resumeKey=z+1+1", range(0), None),
        ("limit=1&showResumeKey=true&resumeKey=z+1+1", range(0), None),
    ],
)
def test_lines_are_given_from_a_place_on_up_to_a_limit(
    query: str, given: range, key: bytes | None, size: int
) -> None:
    asked = paging(query)
    found = [one for some in asked.lists(iter(lists_of(size))) for one in some]
    assert found == [LINES[number] for number in given]
    assert asked.key == key


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("limit=-1", [0]),
        ("limit=-2", [1, 0]),
        ("limit=-2&offset=1", [2, 1]),
        ("limit=-3&offset=0", [2, 1, 0]),
        ("limit=-2&offset=9", []),
        ("limit=-9", [5, 4, 3, 2, 1, 0]),
    ],
)
def test_the_last_lines_come_from_a_reversed_answer_and_are_turned_again(
    query: str, given: list[int]
) -> None:
    """The query gives `bound` lines, the newest first."""
    asked = paging(query)
    assert asked.bound is not None
    some = LINES[: asked.bound]
    found = list(asked.lists(iter([some[:1], some[1:]])))
    assert found == [[LINES[number] for number in given]]


@pytest.mark.parametrize(
    ("query", "bound"),
    [
        ("", None),
        ("limit=0", None),
        ("offset=3", None),
        ("limit=5", 5),
        ("limit=5&offset=3", 8),
        ("limit=-5", 5),
        ("limit=-5&offset=3", 8),
        ("limit=5&showResumeKey=true", None),
        ("limit=5&showResumeKey=false", 5),
        ("limit=5&resumeKey=a+1+1", None),
    ],
)
def test_how_many_lines_have_to_be_found(query: str, bound: int | None) -> None:
    assert paging(query).bound == bound


@pytest.mark.parametrize("key", ["showResumeKey=true", "resumeKey=a+1+1"])
@pytest.mark.parametrize("more", ["limit=-1", "page=0", "resolveRevisits=false", "offset=0", "closest=2020"])
def test_resume_keys_go_with_few_other_parameters(key: str, more: str) -> None:
    told = "resume keys do not go with a negative limit, nor with page, resolveRevisits, offset, closest"
    with pytest.raises(RequestError, match=told):
        paging(f"{key}&{more}")
    assert paging(more) is not None
    assert paging(key) is not None
    assert paging(f"showResumeKey=false&{more}") is not None
    assert paging(f"{key}&limit=0&collapse=digest&filter=a:b") is not None


@pytest.mark.parametrize(
    ("query", "is_collapsed"),
    [("", False), ("collapse=digest", True), ("collapseTime=4", True), ("collapse=", True), ("fl=a", False)],
)
def test_whether_an_answer_is_collapsed(query: str, is_collapsed: bool) -> None:
    assert paging(query).is_collapsed == is_collapsed


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("com,a)/ 2020 1", (b"com,a)/ 2020", 1)),
        ("com,a)/+2020+1", (b"com,a)/ 2020", 1)),
        ("com%2Ca%29%2F+2020+12", (b"com,a)/ 2020", 12)),
        ("com,a)/%2B 2020 1", (b"com,a)/%2B 2020", 1)),
        ("com,a)/x y 2020 1", (b"com,a)/x y 2020", 1)),
        ("com,\udcff 2020 1", (b"com,\xff 2020", 1)),
        ("a 1 999999999", (b"a 1", 999_999_999)),
        ("a 1 0", (b"a 1", 0)),
        ("a 1 1000000000", None),
        ("a 1", None),
        ("a+1", None),
        ("a 1 ", None),
        ("a 1 x", None),
        ("a 1 -1", None),
        ("a", None),
        ("1 1", None),
    ],
)
def test_a_resume_key_is_a_line_and_a_number(text: str, place: tuple[bytes, int] | None) -> None:
    if place is not None:
        assert wayback._parse_key(text) == place
        return
    with pytest.raises(RequestError) as caught:
        wayback._parse_key(text)
    assert str(caught.value) == f"invalid resumeKey {text!r}: give the last line of the answer before"
