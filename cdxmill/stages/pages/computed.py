"""An attribute that is computed when it is first asked for, as functools.cached_property, but without its lock.

The lock of Python 3.11 takes a microsecond for each attribute of each record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class computed(Generic[Value]):  # noqa: N801 - used as a decorator
    """Decorates a method without arguments. Its result replaces it in the object."""

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> computed[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> computed[Value] | Value:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value
