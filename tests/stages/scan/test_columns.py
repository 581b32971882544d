"""A value of a user's function fits the type of its column, or is refused: it is never changed into another one."""

from __future__ import annotations

from math import inf, nan
from typing import Any, Optional, TypedDict, Union

import pytest

from cdxmill.stages.scan.columns import Type, columns_of, fitted, returned, type_named, type_of

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


class Words(TypedDict):
    words: int
    names: list[str] | None


class Fewer(TypedDict, total=False):
    share: float


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (str, Type.TEXT),
        (int, Type.INT),
        (float, Type.DOUBLE),
        (bool, Type.BOOL),
        (list[str], Type.LIST),
        (str | None, Type.TEXT),
        (None | int, Type.INT),
        (Optional[float], Type.DOUBLE),  # noqa: UP045 - as users write it
        (Union[list[str], None], Type.LIST),  # noqa: UP007
        (int | str, Type.JSON),
        (int | str | None, Type.JSON),
        (list[int], Type.JSON),
        (list[str | None], Type.JSON),
        (dict[str, int], Type.JSON),
        (bytes, Type.JSON),
        (None, Type.JSON),
        (type(None), Type.JSON),
        (Any, Type.JSON),
        ([], Type.JSON),
        ({}, Type.JSON),
    ],
)
def test_the_type_of_an_annotation(hint: Any, kind: Type) -> None:
    assert type_of(hint) is kind


def test_the_columns_of_an_annotated_function() -> None:
    of_words = {"words": Type.INT, "names": Type.LIST}
    for hint, columns in (
        (Words, of_words),
        (Words | None, of_words),
        (None | Words, of_words),
        (Words | bool, of_words),
        (Optional[Words], of_words),  # noqa: UP045
        (Fewer, {"share": Type.DOUBLE}),
        (Fewer | Words, {"share": Type.DOUBLE}),
        (int, {}),
        (int | None, {}),
        (dict[str, int], {}),
        (None, {}),
    ):

        def function() -> None: ...

        function.__annotations__["return"] = hint
        assert columns_of(function) == columns
        assert returned(function) == (hint if hint is not None else type(None))


def test_an_annotation_that_cannot_be_read_is_none() -> None:
    def function() -> None: ...

    function.__annotations__["return"] = "1 / 0"
    assert (returned(function), columns_of(function)) == (None, {})
    assert (returned(lambda: 1), columns_of(lambda: 1)) == (None, {})


def test_a_type_has_a_name() -> None:
    assert [type_named(f"{one}") for one in Type] == list(Type)
    for name in ("", "TEXT", "string", "text "):
        with pytest.raises(ValueError, match=r"is no type; expected text, int, double, bool, list, json$"):
            type_named(name)


def test_a_message_shows_the_start_of_a_value() -> None:
    with pytest.raises(ValueError, match=f"^'{'x' * 59} is no int$"):
        fitted(Type.INT, "x" * 99)
