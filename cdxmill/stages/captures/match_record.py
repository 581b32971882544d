"""A record, compared with the index line that led to it."""

from __future__ import annotations

import re

from cdxmill.capture import Capture, Record
from cdxmill.formats.lines.record_location import RecordLocation
from cdxmill.formats.lines.surt import surt
from cdxmill.formats.lines.timestamp import timestamp_of
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.make_captures import make_captures

_SHA1 = re.compile(r"[A-Z2-7]{32}")


def mismatch(record: Record, location: RecordLocation) -> str | None:
    """How the record differs from its index line: another URL, timestamp or SHA-1. None if it matches."""
    return difference(capture_of_record(record), location)


def capture_of_record(record: Record) -> Capture | None:
    """The capture of a record of any type; None if it has no URL."""
    captures = list(make_captures(iter((record,)), b"", CaptureOptions(records=None)))
    capture = captures[-1] if captures else None
    return capture if isinstance(capture, Capture) else None


def difference(capture: Capture | None, location: RecordLocation) -> str | None:
    """As `mismatch`, for the capture of a record."""
    if capture is None:
        return f"the record has no URL, the index line has {location.url}"
    url, timestamp = capture.url.decode("utf-8", "replace"), capture.timestamp.decode()
    if timestamp != location.timestamp and timestamp != _moment(location.timestamp):
        return f"the record is from {timestamp}, the index line is from {location.timestamp} ({location.url})"
    if location.url and not _same_url(capture.url, location.url):
        return f"the record is of {url}, the index line is of {location.url}"
    digest = (capture.digest or b"").decode("utf-8", "replace")
    wanted = location.digest.removeprefix("sha1:")
    if digest != wanted and _SHA1.fullmatch(digest) and _SHA1.fullmatch(wanted):
        return f"the record has the digest {digest}, the index line has {wanted} ({location.url})"
    return None


def _moment(timestamp: str) -> str:
    """The timestamp of a line as cdxmill writes it. Some indexers copy the date of an ARC record as it is."""
    found = timestamp_of(timestamp[:14].encode("utf-8", "replace"))
    return timestamp if found is None else found.decode()


def _same_url(recorded: bytes, named: str) -> bool:
    """Whether the URLs or their keys are equal. Indexers escape URLs differently."""
    try:
        other = named.encode("utf-8", "surrogateescape")
        return recorded == other or surt(recorded) == surt(other)
    except ValueError:
        return False
