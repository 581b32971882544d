"""Conditions are tested in the order that takes the least time, by a clock that only they move."""

from __future__ import annotations

from typing import Any

import pytest

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
