"""The parameters of a request, checked: what a dialect does not know is refused, never ignored."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

from cdxmill.regex import regex
from cdxmill.server.answers import bad_request

_Plan = TypeVar("_Plan")
_URL = regex(rb"(?:^|&)url=([^&]+)")
_KEPT, _LONGEST = 100, 200
"""Plans that are kept, and the bytes of the longest query string that has one."""
_MOST = 200
"""Parameters of a request."""
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
_DIGITS = 9


class Parameters:
    """The parameters of a query string. Those of `repeated` may stand several times. Raises RequestError."""

    def __init__(self, query: bytes, known: Collection[str], repeated: Collection[str] = ("filter",)) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in _pairs(query):
            if name not in known:
                raise bad_request(f"unknown parameter {name!r}; known are {', '.join(known)}")
            self._values.setdefault(name, []).append(value)
        for name, values in self._values.items():
            if len(values) > 1 and name not in repeated:
                raise bad_request(f"the parameter {name} was given {len(values)} times")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def all(self, name: str) -> tuple[str, ...]:
        """All values of a parameter."""
        return tuple(self._values.get(name, ()))

    def text(self, *names: str) -> str | None:
        """The value of the first of `names` that has one; None without a value."""
        for name in names:
            if found := self._values.get(name, [""])[-1]:
                return found
        return None

    def required(self, name: str) -> str:
        """The value of a parameter that has to be given."""
        return required(name, self.text(name))

    def one_of(self, name: str, choices: Collection[str]) -> str | None:
        """The value of a parameter that has few values."""
        found = self.text(name)
        if found is not None and found not in choices:
            raise bad_request(f"{name}={found[:80]} is not supported; expected one of {', '.join(choices)}")
        return found

    def number(self, name: str, least: int = 0) -> int | None:
        """A whole number."""
        found = self.text(name)
        if found is None:
            return None
        digits = found.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or int(found[:_DIGITS]) < least:
            raise bad_request(f"{name}={found[:80]}: expected a whole number, at least {least}")
        return max(least, int(found[: _DIGITS + found.startswith("-")]))

    def flag(self, name: str) -> bool:
        """Whether a parameter is set."""
        found = self._values.get(name, [""])[-1].lower()
        if found not in (*_TRUE, *_FALSE):
            raise bad_request(f"{name}={found[:80]}: expected true or false")
        return found in _TRUE


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode("utf-8", "surrogateescape"),
            keep_blank_values=True,
            errors="surrogateescape",
            max_num_fields=_MOST,
        )
    except ValueError:
        raise bad_request(f"there are more than {_MOST} parameters") from None


class Plans(Generic[_Plan]):
    """What a dialect makes of all parameters but the URL. Most questions differ in their URL only, so plans are kept.

    Those with filters are not, because compiled patterns may take much memory.
    """

    def __init__(self, known: Collection[str], make: Callable[[Parameters], _Plan]) -> None:
        self._known, self._make = known, make
        self._kept: dict[bytes, _Plan] = {}

    def of(self, query: bytes) -> tuple[str | None, _Plan]:
        """The URL of a query string, None without one, and the plan. Raises RequestError."""
        found = _URL.search(query)
        if found is None or not query.isascii():
            given = Parameters(query, self._known)
            return given.text("url"), self._make(given)
        rest = query[: found.start(1)] + query[found.end(1) :]
        plan = self._kept.get(rest)
        if plan is None:
            given = Parameters(rest, self._known)
            plan = self._make(given)
            if len(rest) <= _LONGEST and "filter" not in given:
                if len(self._kept) >= _KEPT:
                    self._kept.clear()
                self._kept[rest] = plan
        url = unquote_to_bytes(found[1].replace(b"+", b" "))
        return url.decode("utf-8", "surrogateescape"), plan


def required(name: str, value: str | None) -> str:
    """The value of a parameter that has to be given. Raises RequestError."""
    if value is None:
        raise bad_request(f"the parameter {name} is missing")
    return value
