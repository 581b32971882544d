"""Conditions are tested in the order that takes the least time, by a clock that only they move."""

from __future__ import annotations

from typing import Any

import pytest

from cdxmill.stages.scan import plan as plan_module
from cdxmill.stages.scan.fields import Field
from cdxmill.stages.scan.plan import Plan

COSTS = {"b": 2.0, "c": 5.0}
HOLDS = {"a": lambda n: n & 1, "b": lambda n: n & 6 == 6, "c": lambda n: n & 24}
"""Which of 256 records pass: a half, a quarter and three quarters of them, in all combinations."""


class Clock:
    """A clock, and fields that take time to be read. `a` takes `cost`."""

    def __init__(self, cost: float) -> None:
        self.now, self._costs = 0.0, {**COSTS, "a": cost}
        self.fields = {name: Field(0, self._reader(name)) for name in HOLDS}  # type: ignore[arg-type]

    def _reader(self, name: str) -> Any:
        def read(number: int) -> str:
            self.now += self._costs[name]
            return "y" if HOLDS[name](number) else "n"

        return read


@pytest.mark.parametrize(
    ("text", "cost", "order"),
    [
        # Of conditions that must all hold, the least cost / (1 - pass rate) comes first.
        ("c=y and b=y and a=y", 1, "abc"),
        ("c=y and b=y and a=y", 1.3, "abc"),
        ("c=y and b=y and a=y", 1.4, "bac"),
        ("c=y and b=y and a=y", 11, "bca"),
        # Of alternatives, the least cost / pass rate.
        ("b=y or c=y or a=y", 3.3, "acb"),
        ("b=y or c=y or a=y", 3.4, "cab"),
        ("b=y or c=y or a=y", 4.1, "cba"),
        # b or c takes 5 + 2 / 4, and 13 of 16 pass.
        ("(b=y or c=y) and a=y", 14.5, "acb"),
        ("(b=y or c=y) and a=y", 15, "cba"),
        # b and c take 2 + 5 / 4, and 3 of 16 pass.
        ("(c=y and b=y) or a=y", 8.5, "abc"),
        ("(c=y and b=y) or a=y", 9, "bca"),
        ("not (b=y or c=y) and a=y", 3.3, "acb"),
        ("not (b=y or c=y) and a=y", 3.5, "cba"),
    ],
)
def test_the_order_takes_the_least_time(
    text: str, cost: float, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(cost)
    monkeypatch.setattr("cdxmill.stages.scan.plan.perf_counter", lambda: clock.now)
    plan = Plan([text], dict[str, list[bytes]]().__getitem__, clock.fields)
    for number in range(256):
        plan.passes(number)  # type: ignore[arg-type]
    assert "".join(one.text.removeprefix("not ")[0] for one in plan.measured()) == order


@pytest.mark.parametrize("number", [31, 32])
def test_the_order_changes_with_the_records(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the later records, some are measured."""
    clock = Clock(1)
    monkeypatch.setattr(plan_module, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(plan_module, "_AT_FIRST", 4)
    monkeypatch.setattr(plan_module, "_REORDERED", 32)
    plan = Plan(["a=y and b=y"], dict[str, list[bytes]]().__getitem__, clock.fields)
    for _ in range(number):
        plan.passes(0)  # type: ignore[arg-type]
    # Of the first four, `a` rejects all, so nothing is known of `b`, which is tried next.
    assert [(one.text[0], one.tested) for one in plan.measured()] == (
        [("a", 4), ("b", 1)] if number == 32 else [("b", 0), ("a", 4)]
    )


@pytest.mark.parametrize("is_measured", [True, False])
@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("a=y and b=y", {7}),
        ("a=y or b=y", {1, 3, 5, 6, 7}),
        ("not a=y", {0, 2, 4, 6}),
        ("not (a=y or b=y)", {0, 2, 4}),
        ("not (a=y and b=y)", {0, 1, 2, 3, 4, 5, 6}),
        ("a=y and (b=y or a=y)", {1, 3, 5, 7}),
        ("a!=y and b=n", {0, 2, 4}),
    ],
)
def test_what_is_measured_and_what_is_not_is_decided_alike(
    text: str, holds: set[int], is_measured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "_AT_FIRST", 99 if is_measured else 0)
    clock = Clock(1)
    plan = Plan([text], dict[str, list[bytes]]().__getitem__, clock.fields)
    assert {one for one in range(8) if plan.passes(one)} == holds  # type: ignore[arg-type]
    assert (sum(one.tested for one in plan.measured()) > 0) == is_measured
    assert not plan.refuses_content(b"anything")
    assert not plan.can_refuse_content
