"""The types of columns. Each column of a scan has one before the first row is made."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from enum import StrEnum
from math import isfinite
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1


class Type(StrEnum):
    """A type. In Parquet, `INT` has 64 bits, `LIST` is a list of texts, and `JSON` a text with JSON."""

    TEXT = "text"
    INT = "int"
    DOUBLE = "double"
    BOOL = "bool"
    LIST = "list"
    JSON = "json"


_OF_PYTHON: Mapping[Any, Type] = {
    str: Type.TEXT,
    int: Type.INT,
    float: Type.DOUBLE,
    bool: Type.BOOL,
    list[str]: Type.LIST,
}
_UNIONS = (Union, types.UnionType)
Columns = Mapping[str, Type]


def type_named(name: str) -> Type:
    """The type of a name that a user gave. Raises ValueError."""
    try:
        return Type(name)
    except ValueError:
        raise ValueError(f"{name!r} is no type; expected {', '.join(Type)}") from None


def returned(function: Callable[..., object]) -> Any:
    """What a function's annotation says that it returns; None if there is no annotation that can be read."""
    try:
        return get_type_hints(function).get("return")
    except Exception:  # an annotation is any code of the user
        return None


def type_of(hint: Any) -> Type:
    """The type for an annotation, also for one with `| None`. JSON if it is another one.

    >>> type_of(float), type_of(int | None), type_of(dict[str, int])
    (<Type.DOUBLE: 'double'>, <Type.INT: 'int'>, <Type.JSON: 'json'>)
    """
    if get_origin(hint) in _UNIONS:
        others = [one for one in get_args(hint) if one is not type(None)]
        hint = others[0] if len(others) == 1 else None
    try:
        return _OF_PYTHON.get(hint, Type.JSON)
    except TypeError:  # it has no hash
        return Type.JSON


def columns_of(function: Callable[..., object]) -> dict[str, Type]:
    """The columns of a function that is annotated with a TypedDict; none for all others."""
    hint = returned(function)
    if get_origin(hint) in _UNIONS:  # `Words | None`, `Words | bool`
        hint = next((one for one in get_args(hint) if is_typeddict(one)), None)
    return {name: type_of(one) for name, one in get_type_hints(hint).items()} if is_typeddict(hint) else {}


def fitted(kind: Type, value: Any) -> Any:
    """A value of a function, as its type has it. Raises ValueError if it would have to be changed.

    NaN and infinity become None, because JSON has no such numbers.
    """
    if value is None or kind is Type.JSON:
        return value
    if isinstance(value, float) and not isfinite(value):  # as JSON lines have it
        return None
    if kind is Type.DOUBLE and type(value) is int and _is_double(value):
        return float(value)
    is_fit = {
        Type.TEXT: isinstance(value, str),
        Type.INT: type(value) is int and _SMALLEST <= value <= _LARGEST,
        Type.DOUBLE: isinstance(value, float),
        Type.BOOL: isinstance(value, bool),
        Type.LIST: isinstance(value, list) and all(isinstance(one, str) for one in value),
    }[kind]
    if not is_fit:
        raise ValueError(f"{value!r:.60} is no {kind}")
    return value


def _is_double(value: int) -> bool:
    """Whether a double has the same value."""
    try:
        return int(float(value)) == value
    except OverflowError:
        return False
