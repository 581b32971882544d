"""Plans of queries are kept for the next question with the same parameters, and not too many of them."""

from __future__ import annotations

import gc
import weakref

import pytest

from cdxmill.server.parameters import Parameters, Plans


class Plan:
    """What a query asks."""


@pytest.fixture
def made() -> list[weakref.ref[Plan]]:
    return []


@pytest.fixture
def plans(made: list[weakref.ref[Plan]]) -> Plans[Plan]:
    def make(given: Parameters) -> Plan:
        plan = Plan()
        made.append(weakref.ref(plan))
        return plan

    return Plans(("url", "limit", "filter", "fl"), make)


def kept(made: list[weakref.ref[Plan]]) -> int:
    gc.collect()
    return sum(plan() is not None for plan in made)


def test_the_same_parameters_have_one_plan_for_all_urls(
    plans: Plans[Plan], made: list[weakref.ref[Plan]]
) -> None:
    urls = [plans.of(b"limit=3&url=%b" % url)[0] for url in (b"a.com", b"http%3A%2F%2Fb.com%2F", b"c+d")]
    assert urls == ["a.com", "http://b.com/", "c d"]
    assert (len(made), kept(made)) == (1, 1)
    assert plans.of(b"limit=4&url=a.com")[1] is not plans.of(b"limit=3&url=a.com")[1]


def test_plans_of_many_clients_are_not_all_kept(plans: Plans[Plan], made: list[weakref.ref[Plan]]) -> None:
    for number in range(1000):
        plans.of(b"url=a.com&limit=%d" % number)
    assert 0 < kept(made) <= 100
    plans.of(b"url=a.com&limit=999")
    assert len(made) == 1000


@pytest.mark.parametrize("more", [b"filter=%d", b"fl=" + b"x" * 200 + b"%d"], ids=["filter", "long"])
def test_plans_of_unusual_queries_are_not_kept(
    more: bytes, plans: Plans[Plan], made: list[weakref.ref[Plan]]
) -> None:
    for number in range(9):
        plans.of(b"url=a.com&" + more % number)
    assert kept(made) == 0
