"""Each way to read a parameter, with its exact limits, and how plans tell the URL from the other parameters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cdxmill.server.answers import RequestError
from cdxmill.server.parameters import Parameters, Plans, required

KNOWN = ("url", "filter", "limit", "n", "flag")


def given(query: bytes) -> Parameters:
    return Parameters(query, KNOWN)


def refused(ask: Callable[[], object]) -> str:
    with pytest.raises(RequestError) as caught:
        ask()
    assert caught.value.code == 400
    return str(caught.value)


def test_a_parameter_that_is_not_known_or_comes_twice_is_refused() -> None:
    told = "unknown parameter 'x'; known are url, filter, limit, n, flag"
    assert refused(lambda: given(b"url=a&x=1")) == told
    assert refused(lambda: given(b"url=a&x=")) == told
    assert refused(lambda: given(b"n=1&n=1&n=2")) == "the parameter n was given 3 times"
    assert refused(lambda: given(b"n=&n=")) == "the parameter n was given 2 times"
    assert given(b"filter=a&n=1&filter=b").all("filter") == ("a", "b")
    assert (
        refused(lambda: Parameters(b"filter=a&filter=b", KNOWN, ()))
        == "the parameter filter was given 2 times"
    )
    assert Parameters(b"n=1&n=2", KNOWN, ("n",)).all("n") == ("1", "2")
    assert given(b"").all("n") == ()


@pytest.mark.parametrize("number", [199, 200, 201])
def test_there_are_at_most_two_hundred_parameters(number: int) -> None:
    query = b"&".join([b"filter=a"] * number)
    if number <= 200:
        assert len(given(query).all("filter")) == number
    else:
        assert refused(lambda: given(query)) == "there are more than 200 parameters"


@pytest.mark.parametrize(
    ("query", "names", "expected"),
    [
        (b"", ("n",), None),
        (b"n=", ("n",), None),
        (b"n", ("n",), None),
        (b"n=1", ("n",), "1"),
        (b"n=1&limit=2", ("n", "limit"), "1"),
        (b"n=1&limit=2", ("limit", "n"), "2"),
        (b"n=&limit=2", ("n", "limit"), "2"),
        (b"limit=2", ("n", "limit"), "2"),
        (b"filter=a&filter=b", ("filter",), "b"),
        (b"n=a+b%26c", ("n",), "a b&c"),
        (b"n=%FF", ("n",), "\udcff"),
        (b"n=\xff", ("n",), "\udcff"),
        (b"n=%C3%A9", ("n",), "é"),
    ],
)
def test_the_text_of_a_parameter(query: bytes, names: tuple[str, ...], expected: str | None) -> None:
    found = given(query)
    assert found.text(*names) == expected
    assert all((name in found) == (name.encode() in query) for name in names)
    if expected is not None:
        assert required("n", found.text(*names)) == expected


def test_a_parameter_that_is_needed_is_named_if_it_is_missing() -> None:
    assert refused(lambda: given(b"n=").required("n")) == "the parameter n is missing"
    assert refused(lambda: required("url", None)) == "the parameter url is missing"
    assert given(b"n=0").required("n") == "0"
    assert required("n", "") == ""


def test_a_parameter_may_have_few_values() -> None:
    assert given(b"n=b").one_of("n", ("a", "b")) == "b"
    assert given(b"n=").one_of("n", ("a", "b")) is None
    assert given(b"").one_of("n", ("a", "b")) is None
    told = f"n={'c' * 80} is not supported; expected one of a, b"
    assert refused(lambda: given(b"n=" + b"c" * 99).one_of("n", ("a", "b"))) == told


@pytest.mark.parametrize(
    ("text", "least", "expected"),
    [
        (b"0", 0, 0),
        (b"7", 0, 7),
        (b"007", 0, 7),
        (b"", 0, None),
        (b"-1", 0, "refused"),
        (b"-0", 0, 0),
        (b"0", 1, "refused"),
        (b"1", 1, 1),
        (b"-5", -5, -5),
        (b"-6", -5, "refused"),
        (b"-100000", -100_000, -100_000),
        (b"-100001", -100_000, "refused"),
        (b"999999999", 0, 999_999_999),
        (b"1234567899", 0, 123_456_789),
        (b"9" * 99, 0, 999_999_999),
        (b"-123456789", -1_000_000_000, -123_456_789),
        (b"-", 0, "refused"),
        (b"--1", 0, "refused"),
        (b"+1", 0, "refused"),
        (b"1.0", 0, "refused"),
        (b"x", 0, "refused"),
        ("٣".encode(), 0, "refused"),
        ("²".encode(), 0, "refused"),
    ],
)
def test_a_number_is_whole_and_not_below_its_least(
    text: bytes, least: int, expected: int | str | None
) -> None:
    found = given(b"n=" + text.replace(b"+", b"%2B"))
    if expected == "refused":
        told = f"n={text.decode()}: expected a whole number, at least {least}"
        assert refused(lambda: found.number("n", least)) == told
    else:
        assert found.number("n", least) == expected


@pytest.mark.parametrize("text", ["1", "true", "True", "YES", "on"])
def test_a_flag_is_set(text: str) -> None:
    assert given(f"flag={text}".encode()).flag("flag") is True


@pytest.mark.parametrize("text", ["", "0", "false", "FALSE", "no", "Off"])
def test_a_flag_is_not_set(text: str) -> None:
    assert given(f"flag={text}".encode()).flag("flag") is False
    assert given(b"").flag("flag") is False


def test_a_flag_with_another_value_is_refused() -> None:
    assert (
        refused(lambda: given(b"flag=" + b"m" * 99).flag("flag"))
        == f"flag={'m' * 80}: expected true or false"
    )
    assert refused(lambda: given(b"flag=2").flag("flag")) == "flag=2: expected true or false"


@pytest.mark.parametrize(
    ("query", "url"),
    [
        (b"url=a.com", "a.com"),
        (b"url=a.com&n=1", "a.com"),
        (b"n=1&url=a.com", "a.com"),
        (b"n=1&url=a.com&limit=2", "a.com"),
        (b"url=a+b%2Bc%FF", "a b+c\udcff"),
        (b"url=http://a.com/?x=y;z", "http://a.com/?x=y;z"),
        (b"url=%C3%A9", "é"),
        (b"url=\xc3\xa9", "é"),
        (b"url=", None),
        (b"n=1", None),
        (b"", None),
        (b"n=url=a", None),
    ],
)
def test_a_plan_is_made_without_the_url(query: bytes, url: str | None) -> None:
    seen: list[str | None] = []

    def make(given: Parameters) -> Parameters:
        seen.append(given.text("url"))
        return given

    plans = Plans(KNOWN, make)
    for _ in range(2):
        found, plan = plans.of(query)
        assert found == url
        assert plan.text("n") == ("1" if b"n=1" in query else "url=a" if b"n=url" in query else None)
        assert plan.text("limit") == ("2" if b"limit" in query else None)
    is_kept = url is not None and query.isascii()
    assert len(seen) == (1 if is_kept else 2)
    assert seen[0] == (None if is_kept else url)


@pytest.mark.parametrize(
    "query", [b"url=a&url=b", b"url=a&x=1", b"x=1&url=a", b"url=a&n=1&n=2", b"url=\xff&x=1", b"x=1"]
)
def test_a_wrong_query_has_no_plan(query: bytes) -> None:
    plans = Plans(KNOWN, lambda given: given)
    for _ in range(2):
        assert refused(lambda: plans.of(query))


@pytest.mark.parametrize("more", [0, 1])
def test_plans_of_short_queries_are_kept(more: int) -> None:
    plans = Plans(KNOWN, lambda given: object())
    query = b"url=a.example&n=" + b"x" * (200 - len(b"url=&n=") + more)
    assert (plans.of(query)[1] is plans.of(query.replace(b"a.example", b"b"))[1]) == (not more)


def test_a_hundred_plans_are_kept() -> None:
    made: list[str | None] = []

    def make(given: Parameters) -> Parameters:
        made.append(given.text("n"))
        return given

    plans = Plans(KNOWN, make)
    for number in range(100):
        plans.of(b"url=a&n=%d" % number)
    for number in range(100):
        plans.of(b"url=a&n=%d" % number)
    assert len(made) == 100
    plans.of(b"url=a&n=new")
    plans.of(b"url=a&n=new")
    assert len(made) == 101
    plans.of(b"url=a&n=0")
    assert len(made) == 102, "all are forgotten when there are too many"
