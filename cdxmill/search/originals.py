"""The capture that a revisit refers to: that with the same digest, at its URL, nearest to its date."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cdxmill.capture import Headers
from cdxmill.formats.lines.capture_fields import REVISIT, RecordLocation, record_location
from cdxmill.formats.lines.timestamp import warc_timestamp_of
from cdxmill.options.queries import Query

_FIELDS = (b"warc-refers-to-target-uri", b"warc-refers-to-date")


class Reference(NamedTuple):
    """What the header of a revisit says of its original: the URL and the date, "" if they are missing."""

    url: str
    date: str


class Original(NamedTuple):
    """The index line of an original, and where its record is."""

    line: bytes
    location: RecordLocation


def reference_in(headers: Headers) -> Reference:
    """The reference in the header of a revisit."""
    return Reference(*(headers.get(name, b"").decode("utf-8", "replace") for name in _FIELDS))


def query_for(reference: Reference, timestamp: str) -> Query:
    """The query whose first answers are nearest to the original of a revisit with this timestamp in its index line."""
    date = warc_timestamp_of(reference.date.encode("utf-8", "replace")) or timestamp.encode()
    return Query(match_type="exact", sort="closest", closest=date[:14].decode("latin-1"))


def first_original(lines: Iterable[bytes], digest: str) -> Original | None:
    """The first line with this digest that is no revisit. Lines without a record are skipped."""
    for line in lines:
        try:
            found = record_location(line)
        except ValueError:
            continue
        if found.mime != REVISIT and found.digest == digest:
            return Original(line, found)
    return None
