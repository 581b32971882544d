"""Found lines -> the lines to print, in the order that was asked for.

The steps and their order are those of pywb's CDX server: revisits, filters, time range, collapse, then the order and
the limit. Lines flow in lists, one list per block.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, compress
from typing import NamedTuple, TypeVar

from cdxmill.formats.lines.capture_fields import (
    ORIGINAL,
    REVISIT,
    Fields,
    field_reader,
    parse_fields,
    text_to_bytes,
    timestamp_of_line,
)
from cdxmill.formats.lines.lookup_query import Passes, TimeRange
from cdxmill.formats.lines.timestamp import timestamp_of

Lists = Iterable[list[bytes]]
Invalid = Callable[[bytes, Exception], None]
"""Takes a line that cannot be parsed, and why. It returns if the line is to be skipped, or raises."""

_BATCH = 1000
_T = TypeVar("_T")


def each(function: Callable[[bytes], _T], lines: list[bytes], invalid: Invalid) -> list[_T | None]:
    """The results of `function`; None for a line that `invalid` has taken."""
    try:
        return list(map(function, lines))
    except (ValueError, RecursionError):
        return [_result(function, line, invalid) for line in lines]


def _result(function: Callable[[bytes], _T], line: bytes, invalid: Invalid) -> _T | None:
    try:
        return function(line)
    except (ValueError, RecursionError) as error:
        invalid(line, error)
        return None


def resolve_revisits(lists: Lists, invalid: Invalid) -> Iterator[list[bytes]]:
    """All lines as CDXJ with the fields of `ORIGINAL`. A revisit gets mime and status of its original.

    The original is the first capture with the same digest before the revisit. Without one, the fields are `-`.
    """
    originals: dict[str, Fields] = {}
    for lines in lists:
        parsed = each(parse_fields, lines, invalid)
        yield [_resolved(fields, originals) for fields in parsed if fields is not None]


def _resolved(fields: Fields, originals: dict[str, Fields]) -> bytes:
    import json

    is_revisit = fields.get("mime") == REVISIT or fields.get("filename") == "-"
    digest = str(fields.get("digest") or "")
    original = originals.get(digest)  # no line without a digest is one
    if digest and original is None and not is_revisit:
        originals[digest] = fields
    if not is_revisit:
        original = None
    if original is not None:
        for name in ("mime", "status"):
            if name in fields:
                fields[name] = original.get(name, "")
    for name in ORIGINAL:
        fields[name] = original.get(name.removeprefix("orig."), "-") if original is not None else "-"
    start = f"{fields['urlkey']} {fields['timestamp']} "
    rest = json.dumps({name: value for name, value in fields.items() if name not in ("urlkey", "timestamp")})
    return text_to_bytes(start + rest)


def keep_passing(lists: Lists, filters: Sequence[Passes], invalid: Invalid) -> Iterator[list[bytes]]:
    """The lines that pass all filters."""
    for lines in lists:
        for passes in filters:
            try:
                lines = [line for line in lines if passes(line)]
            except (ValueError, RecursionError):
                lines = list(compress(lines, each(passes, lines, invalid)))
        yield lines


def keep_within(lists: Lists, times: TimeRange) -> Iterator[list[bytes]]:
    """The lines whose timestamps are within `times`, compared as text, as in pywb."""
    first, last = times.first, times.last or b"\xff"
    for lines in lists:
        yield [line for line in lines if first <= timestamp_of_line(line) <= last]


def collapse(lists: Lists, tokens: Callable[[bytes], object], invalid: Invalid) -> Iterator[list[bytes]]:
    """The first of consecutive lines with the same token."""
    last: object = None
    for lines in lists:
        kept = []
        for line, token in zip(lines, each(tokens, lines, invalid), strict=True):
            if token is not None and token != last:
                last = token
                kept.append(line)
        yield kept


class Collapse(NamedTuple):
    """Lines with equal tokens are collapsed. `field` is the field of the tokens; None for timestamp and status.

    A token is never None.
    """

    field: str | None
    token: Callable[[bytes], object]


def parse_collapse(text: str) -> Collapse:
    """What is collapsed. Raises ValueError.

    N           the first N digits of the timestamp, and the status, as pywb's collapseTime
    FIELD       the field
    FIELD:N     the first N characters of the field

    >>> parse_collapse("4").token(b'com,a)/ 2020 {"status": "200"}')
    (b'2020', '200')
    """
    if text.isascii() and text.isdigit():
        digits, status = _digits(text), field_reader("status")
        return Collapse(None, lambda line: (timestamp_of_line(line)[:digits], status(line)))
    name, colon, size = text.partition(":")
    if not name or (colon and not (size.isascii() and size.isdigit())):
        raise ValueError(f"invalid collapse {text!r}: expected N (digits of the timestamp), FIELD or FIELD:N")
    read = field_reader(name)
    most = _digits(size) if colon else None
    return Collapse(name, lambda line: read(line)[:most])


def _digits(text: str) -> int:
    """The number, or a smaller one that is larger than any field."""
    return int(text[:18])


def take_first(lists: Lists, limit: int) -> Iterator[list[bytes]]:
    """The first `limit` lines. Reading stops there."""
    left = limit
    for lines in lists:
        yield lines[:left]
        left -= len(lines)
        if left <= 0:
            return


def reverse_lines(lists: Lists, limit: int | None) -> Iterator[list[bytes]]:
    """The last `limit` lines, or all lines, in reverse order. Empty lists are given as by `sort_closest`."""
    kept: deque[bytes] = deque(maxlen=limit)
    for lines in lists:
        kept.extend(lines)
        yield []
    kept.reverse()
    yield from _in_lists(list(kept))


def sort_closest(lists: Lists, moment: str, limit: int | None) -> Iterator[list[bytes]]:
    """The `limit` lines nearest to the timestamp `moment`, or all lines, the nearest first. Ties keep their order.

    A line whose timestamp is not a date, such as `-`, is farther away than any other. While lines are read, empty lists are given, so
    that a server can let others have their turn.
    """
    wanted = seconds(moment)
    found: list[bytes] = []
    distances: list[float] = []
    for lines in lists:
        found += lines
        distances += [
            math.inf if (at := _seconds(timestamp_of_line(line))) is None else abs(wanted - at)
            for line in lines
        ]
        if limit is not None and len(found) > 2 * limit + _BATCH:
            near = _order(distances)[:limit]
            found, distances = [found[at] for at in near], [distances[at] for at in near]
        yield []
    yield from _in_lists([found[at] for at in _order(distances)[:limit]])


def _order(distances: list[float]) -> list[int]:
    """The positions of the distances, the shortest first."""
    return sorted(range(len(distances)), key=distances.__getitem__)


def _in_lists(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Lists of a size that a server sends at once; one list for no lines."""
    for start in range(0, max(len(lines), 1), _BATCH):
        yield lines[start : start + _BATCH]


def nearest(before: Lists, after: Lists, moment: str, limit: int) -> Iterator[list[bytes]]:
    """As `sort_closest`, for the lines of one URL: those `before` the moment, the latest first, and those `after`.

    No more lines are read than are needed.
    """
    earlier: list[bytes] = []
    for lines in before:
        for line in lines:
            if len(earlier) >= limit and timestamp_of_line(line) != timestamp_of_line(earlier[-1]):
                break
            earlier.append(line)
        else:
            yield []
            continue
        break
    yield from sort_closest(chain(_in_lists(earlier[::-1]), take_first(after, limit)), moment, limit)


def seconds(timestamp: str) -> float:
    """A timestamp as seconds since 1970. Missing parts get their greatest value; others are clamped. Raises ValueError.

    >>> seconds("20131226095010"), seconds("2014")
    (1388051410.0, 1420070399.0)
    """
    found = _seconds(timestamp.encode("utf-8", "surrogateescape"))
    if found is None:
        raise ValueError(f"invalid timestamp {timestamp!r}: expected 4 to 14 digits, YYYYMMDDhhmmss")
    return found


def _seconds(timestamp: bytes) -> float | None:
    """As `seconds`; None if the timestamp is not a date."""
    digits = timestamp[:14]
    if not _USUAL_TIME(digits):  # nearly all are usual, and are read five times as fast so
        found = timestamp_of(digits)
        if found is None:
            return None
        digits = found
    return _day(digits[:8]) + 3600.0 * int(digits[8:10]) + 60 * int(digits[10:12]) + int(digits[12:])


_USUAL_TIME = re.compile(
    rb"[12]\d{3}(?:0[1-9]|1[0-2])(?:0[1-9]|1\d|2[0-8])(?:[01]\d|2[0-3])[0-5]\d[0-5]\d"
).fullmatch


@lru_cache(1 << 12)
def _day(digits: bytes) -> float:
    """The start of a day, YYYYMMDD, in seconds since 1970."""
    return datetime.strptime(digits.decode(), "%Y%m%d").replace(tzinfo=UTC).timestamp()
