"""The record at the end of a new archive that says from which archive it was written, and how: `recompress --describe`."""

from __future__ import annotations

from collections.abc import Iterable

from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.records.write_record import END, record_id, warc_date

_START = b"WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Recompressed-From: %b\r\n"


def description(old_name: str, timestamp: str, fields: Iterable[tuple[str, object]]) -> Content:
    """A metadata record without a URL, which gets no index line. `timestamp` has 14 digits."""
    block = b"".join(f"{name}: {value}\r\n".encode("utf-8", "replace") for name, value in fields)
    head = (
        b"WARC-Record-ID: " + record_id("recompressed", old_name, timestamp, block),
        b"WARC-Date: " + warc_date(timestamp.encode()),
        b"Content-Type: application/warc-fields",
        b"Content-Length: %d" % len(block),
    )
    data = _start(old_name) + b"".join(b"%b\r\n" % field for field in head) + b"\r\n" + block + END
    return Content(0, 0, len(data), data, records=0)


def is_description(content: Content, old_name: str) -> bool:
    """Whether a content says that its archive was written from the archive of this name."""
    return next(content.pieces(), b"").startswith(_start(old_name))


def _start(old_name: str) -> bytes:
    return _START % old_name.encode("utf-8", "replace").replace(b"\r", b"").replace(b"\n", b"")
