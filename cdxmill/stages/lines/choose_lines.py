"""Lines that were found -> those that are asked for, in the order that is asked for.

The steps and their order are those of pywb's CDX server: revisits, filters, time, collapse, then closest,
newest or the first ones. Lines flow in lists, a list a block.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from cdxmill.formats.capture_fields import ORIGINAL, Fields, field_reader, parse_fields, timestamp_of_line
from cdxmill.formats.line_filter import Passes
from cdxmill.formats.lookup_query import TimeRange

Lists = Iterable[list[bytes]]


def resolve_revisits(lists: Lists) -> Iterator[list[bytes]]:
    """Lines as CDXJ, a revisit's with mime and status of its original; all with the fields of `ORIGINAL`, `-` where none."""
    originals: dict[object, Fields] = {}
    for lines in lists:
        yield [_resolved(parse_fields(line), originals) for line in lines]


def _resolved(fields: Fields, originals: dict[object, Fields]) -> bytes:
    is_revisit = fields.get("mime") == "warc/revisit" or fields.get("filename") == "-"
    digest = fields.get("digest")
    original = originals.get(digest) if digest else None
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
    return (start + rest).encode("utf-8", "surrogateescape")


def keep_passing(lists: Lists, filters: Sequence[Passes]) -> Iterator[list[bytes]]:
    """The lines that pass all filters."""
    for lines in lists:
        for passes in filters:
            lines = [line for line in lines if passes(line)]
        yield lines


def keep_within(lists: Lists, times: TimeRange) -> Iterator[list[bytes]]:
    """The lines whose timestamps are within `times`, compared as text, as pywb does."""
    first, last = times.first, times.last or b"\xff"
    for lines in lists:
        yield [line for line in lines if first <= timestamp_of_line(line) <= last]


def collapse(lists: Lists, tokens: Callable[[bytes], object]) -> Iterator[list[bytes]]:
    """Of neighbours with the same token the first."""
    last: object = None
    for lines in lists:
        kept = []
        for line in lines:
            token = tokens(line)
            if token != last:
                last = token
                kept.append(line)
        yield kept


def collapse_token(text: str) -> Callable[[bytes], object]:
    """What neighbours must differ in: `N`: the first N digits of the time, or the status, as pywb's collapseTime;
    `FIELD` or `FIELD:N`: the field, or its first N characters. Raises ValueError.

    >>> collapse_token("4")(b'com,a)/ 2020 {"status": "200"}')
    (b'2020', '200')
    """
    if text.isascii() and text.isdigit():
        digits, status = int(text), field_reader("status")
        return lambda line: (timestamp_of_line(line)[:digits], status(line))
    name, colon, size = text.partition(":")
    if not name or (colon and not (size.isascii() and size.isdigit())):
        raise ValueError(
            f"collapse {text!r} is none: write a number of digits of the time, FIELD, or FIELD:N"
        )
    read = field_reader(name)
    most = int(size) if colon else None
    return lambda line: read(line)[:most]


def take_first(lists: Lists, limit: int) -> Iterator[list[bytes]]:
    """The first `limit` lines; nothing is read behind them."""
    left = limit
    for lines in lists:
        yield lines[:left]
        left -= len(lines)
        if left <= 0:
            return


def turn_round(lists: Lists, limit: int | None) -> Iterator[list[bytes]]:
    """The last `limit` lines, or all, the last first."""
    kept: deque[bytes] = deque(maxlen=limit)
    for lines in lists:
        kept.extend(lines)
    kept.reverse()
    yield list(kept)


def sort_closest(lists: Lists, moment: str, limit: int | None) -> Iterator[list[bytes]]:
    """The lines by how far their times are from `moment`, `limit` of them at most; of equal ones the first first."""
    wanted = seconds(moment)
    distances: list[float] = []
    kept: list[bytes] = []
    for lines in lists:
        for line in lines:
            distance = abs(wanted - seconds(timestamp_of_line(line).decode("ascii", "replace")))
            place = bisect_right(distances, distance)
            if limit is None or place < limit:
                distances.insert(place, distance)
                kept.insert(place, line)
                if limit is not None:
                    del distances[limit:], kept[limit:]
    yield kept


def seconds(timestamp: str) -> float:
    """Seconds since 1970 of a timestamp; missing parts are at their greatest, odd ones clamped. Raises ValueError.

    >>> seconds("20131226095010"), seconds("2014")
    (1388051410.0, 1420070399.0)
    """
    from cdxmill.formats.timestamp import timestamp_of

    digits = timestamp_of(timestamp[:14].encode())
    if digits is None:
        raise ValueError(f"not a timestamp: {timestamp!r}")
    return datetime.strptime(digits.decode(), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
