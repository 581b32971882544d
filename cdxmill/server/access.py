"""Which captures may be seen: pywb's access rules (.aclj), and an embargo for all.

    org,example)/private - {"access": "exclude"}          the prefix of a urlkey; the longest one decides
    org,example)/a### - {"access": "block"}               one urlkey
    *, - {"access": "exclude"}                            all others

`block` hides a capture, too: a server of index lines has no page of which it could say that it is blocked. Rules for a `user`
do not count, because the server knows no users.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from calendar import monthrange
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.capture_fields import timestamp_of_line
from cdxmill.formats.lines.lookup_query import KeyRange, Passes
from cdxmill.regex import regex
from cdxmill.storage.location import Location

_EXACT, _ALL = b"###", b"*,"
_ACCESS = ("allow", "allow_ignore_embargo", "block", "exclude")
_UNITS = {"years": 12, "months": 1, "weeks": 0, "days": 0}
_PERIOD = regex(r"(newer|older):(?:(\d{1,4})y)?(?:(\d{1,4})m)?(?:(\d{1,4})w)?(?:(\d{1,5})d)?", re.ASCII)
_MOMENT = regex(r"(before|after):(\d{4,14})", re.ASCII)

Now = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


class Times(NamedTuple):
    """Captures `before` or `after` a timestamp, or `newer` or `older` than a period, in months and days."""

    kind: str
    moment: bytes = b""
    months: int = 0
    days: int = 0

    def contain(self, timestamp: bytes, now: datetime) -> bool:
        """Whether a capture is one of them. Timestamps are compared as text, as they are sorted."""
        limit = self.moment or _earlier(now, self.months, self.days)
        return timestamp < limit if self.kind in ("before", "older") else timestamp > limit

    @property
    def is_relative(self) -> bool:
        """Whether the answer changes with the time of day."""
        return not self.moment


def _earlier(now: datetime, months: int, days: int) -> bytes:
    """The timestamp so long ago. The day is cut to the length of the month."""
    year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
    if year < 1:
        return b"00010101000000"
    day = min(now.day, monthrange(year, month + 1)[1])
    moment = now.replace(year=year, month=month + 1, day=day)
    try:
        moment -= timedelta(days=days)
    except OverflowError:
        return b"00010101000000"
    return b"%04d" % moment.year + moment.strftime("%m%d%H%M%S").encode()


def parse_embargo(text: str) -> Times:
    """An embargo such as `newer:1y6m`, `older:30d`, `before:2014` or `after:20240101`. Raises UsageError."""
    if found := _MOMENT.fullmatch(text):
        return Times(found[1], found[2].encode())
    if (found := _PERIOD.fullmatch(text)) and any(found.groups()[1:]):
        years, months, weeks, days = (int(part or 0) for part in found.groups()[1:])
        return Times(found[1], months=12 * years + months, days=7 * weeks + days)
    raise UsageError(
        f"invalid embargo {text!r}: expected newer:PERIOD, older:PERIOD (such as 1y6m, 2w or 30d), before:TIME or after:TIME"
    )


class AccessRule(NamedTuple):
    """What a line of the list says about urlkeys. `times` None: at all times."""

    access: str
    times: Times | None


class Access:
    """The rules, and an embargo. Without rules, everything else is allowed."""

    def __init__(self, rules: dict[bytes, AccessRule], embargo: Times | None = None, now: Now = _now) -> None:
        self._rules, self._embargo, self._now = rules, embargo, now
        self._keys = sorted(rules)

    def touches(self, keys: KeyRange) -> bool:
        """Whether something in a range of keys may be hidden."""
        start = bisect_right(self._keys, keys.low)
        inside = start < len(self._keys) and self._keys[start] < keys.high
        return inside or self._embargo is not None or self._rule_of(keys.low) is not None

    @property
    def is_fixed(self) -> bool:
        """Whether the same question has the same answer tomorrow."""
        times = [self._embargo, *(rule.times for rule in self._rules.values())]
        return not any(one is not None and one.is_relative for one in times)

    def visible(self) -> Passes:
        """A function from a line to whether it may be seen, for one answer."""
        now, rule = self._now(), None
        last: bytes | None = None  # a key may be empty

        def passes(line: bytes) -> bool:
            nonlocal last, rule
            key = line[: line.find(b" ")]
            if key != last:
                last, rule = key, self._rule_of(key)
            return self._allows(rule, timestamp_of_line(line), now)

        return passes

    def _allows(self, rule: AccessRule | None, timestamp: bytes, now: datetime) -> bool:
        holds = rule is not None and (rule.times is None or rule.times.contain(timestamp, now))
        access = rule.access if rule is not None and holds else "allow"
        if access == "allow" and self._embargo is not None:
            return not self._embargo.contain(timestamp, now)
        return access in ("allow", "allow_ignore_embargo")

    def _rule_of(self, key: bytes) -> AccessRule | None:
        """The rule of the longest key that a urlkey starts with."""
        if found := self._rules.get(key + _EXACT):
            return found
        prefix, end = key, len(self._keys)
        while prefix and (end := bisect_right(self._keys, prefix, 0, end)):
            nearest = self._keys[end - 1]
            if key.startswith(nearest):
                return self._rules[nearest]
            prefix = _common(prefix, nearest)
        return self._rules.get(_ALL)


def _common(one: bytes, other: bytes) -> bytes:
    """The start that two texts have in common."""
    size = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    return one[:size]


def read_rules(places: Iterable[Location]) -> dict[bytes, AccessRule]:
    """The rules of .aclj files; directories are read, too. Raises InputError for a line that is no rule: it would hide nothing."""
    found: dict[bytes, AccessRule] = {}
    for place in places:
        for number, line in enumerate(place.read_bytes().split(b"\n"), 1):
            if line.strip():
                try:
                    key, rule = _rule(line)
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    reason = f"line {number} is no access rule ({error})"
                    raise InputError(place.text, reason, "correct it: no rule is ignored") from None
                if rule is not None:
                    found.setdefault(key, rule)
    return found


def _rule(line: bytes) -> tuple[bytes, AccessRule | None]:
    key, _, rest = line.strip().partition(b" ")
    fields: dict[str, Any] = orjson.loads(rest[rest.index(b"{") :])
    access = fields["access"]
    if access not in _ACCESS:
        raise ValueError(f"unknown access {access!r}")
    return key, None if fields.get("user") else AccessRule(access, _times(fields))


def _times(fields: dict[str, Any]) -> Times | None:
    for kind in ("before", "after"):
        if value := fields.get(kind):
            return Times(kind, str(value).encode())
    for kind in ("newer", "older"):
        if value := fields.get(kind):
            if unknown := set(value) - set(_UNITS):
                raise ValueError(f"unknown unit {min(unknown)!r}: expected one of {', '.join(_UNITS)}")
            months = sum(int(value.get(unit, 0)) * size for unit, size in _UNITS.items())
            return Times(kind, months=months, days=int(value.get("days", 0)) + 7 * int(value.get("weeks", 0)))
    return None
