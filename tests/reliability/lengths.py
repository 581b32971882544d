"""Wrong values for Content-Length, and for the length in an ARC header line."""

from __future__ import annotations

import re
from typing import NamedTuple

_FIELD = re.compile(rb"\r\nContent-Length: *(\d+)(?=\r\n)")


class Length(NamedTuple):
    """How a length is changed: by a difference, or to a text."""

    difference: int = 0
    text: bytes | None = None

    def of(self, true: int) -> bytes:
        """The length that replaces the correct one."""
        return self.text if self.text is not None else str(true + self.difference).encode()

    def in_warc(self, record: bytes) -> bytes:
        """The WARC record with this length; without the field if the text is empty."""
        match = _FIELD.search(record)
        assert match is not None
        length = self.of(int(match[1]))
        field = b"\r\nContent-Length: " + length if length else b""
        return record[: match.start()] + field + record[match.end() :]

    def in_arc(self, record: bytes) -> bytes:
        """The ARC record with this length in its header line; without the field if the text is empty."""
        line, end, block = record.partition(b"\n")
        fields, _, true = line.rpartition(b" ")
        length = self.of(int(true))
        return fields + (b" " + length if length else b"") + end + block


LENGTHS = {
    "short": Length(-100),
    "long": Length(+300),
    "endless": Length(text=b"9" * 17),
    "huge": Length(text=b"1" + b"0" * 5000),
    "missing": Length(text=b""),
    "negative": Length(text=b"-5"),
    "no-number": Length(text=b"4_6"),
}
