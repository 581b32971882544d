"""A value of a user's function fits the type of its column, or is refused: it is never changed into another one."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from cdxmill.stages.scan.columns import Type, fitted

KEPT: list[tuple[Type, Any]] = [
    (Type.TEXT, ""),
    (Type.INT, 0),
    (Type.INT, 2**63 - 1),
    (Type.INT, -(2**63)),
    (Type.DOUBLE, 1.5),
    (Type.BOOL, False),
    (Type.LIST, []),
    (Type.LIST, ["a", "b"]),
    (Type.JSON, {"a": [1]}),
]
REFUSED: list[tuple[Type, Any]] = [
    (Type.TEXT, b"a"),
    (Type.TEXT, 1),
    (Type.INT, True),
    (Type.INT, 1.0),
    (Type.INT, 2**63),
    (Type.INT, -(2**63) - 1),
    (Type.DOUBLE, True),
    (Type.DOUBLE, "1"),
    (Type.DOUBLE, 2**53 + 1),
    (Type.DOUBLE, 10**400),
    (Type.BOOL, 1),
    (Type.LIST, "a"),
    (Type.LIST, ("a",)),
    (Type.LIST, ["a", 1]),
]


@pytest.mark.parametrize(("kind", "value"), KEPT)
def test_a_value_of_its_type_is_kept(kind: Type, value: object) -> None:
    assert fitted(kind, value) is value
    assert fitted(kind, None) is None


@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_another_value_is_refused(kind: Type, value: object) -> None:
    with pytest.raises(ValueError, match=f" is no {kind}$"):
        fitted(kind, value)


def test_a_whole_number_is_a_double_and_what_json_cannot_write_is_none() -> None:
    assert repr(fitted(Type.DOUBLE, 2**53)) == "9007199254740992.0"
    assert [fitted(Type.DOUBLE, one) for one in (nan, inf, -inf)] == [None] * 3
