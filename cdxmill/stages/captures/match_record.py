"""A record, held against the index line that has led to it."""

from __future__ import annotations

import re

from cdxmill.capture import Capture, Record
from cdxmill.formats.record_location import RecordLocation
from cdxmill.formats.surt import surt
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.make_captures import make_captures

_SHA1 = re.compile(r"[A-Z2-7]{32}")


def mismatch(record: Record, place: RecordLocation) -> str | None:
    """What shows that a record is not the one of the line: another URL, time, or SHA-1; None where nothing does."""
    captures = list(make_captures(iter((record,)), b"", CaptureOptions(None)))
    capture = captures[-1] if captures else None
    if not isinstance(capture, Capture):
        return f"the record there has no URL, the line has {place.url}"
    url, timestamp = capture.url.decode("utf-8", "replace"), capture.timestamp.decode()
    if timestamp != place.timestamp[:14]:
        return f"the record there is of {timestamp}, the line of {place.timestamp} ({place.url})"
    if not _same_url(url, place.url):
        return f"the record there is of {url}, the line of {place.url}"
    digest = (capture.digest or b"").decode("utf-8", "replace")
    wanted = place.digest.removeprefix("sha1:")
    if digest != wanted and _SHA1.fullmatch(digest) and _SHA1.fullmatch(wanted):
        return f"the record there has the digest {digest}, the line {wanted} ({place.url})"
    return None


def _same_url(one: str, other: str) -> bool:
    """Indexers escape differently, so the keys count, too."""
    if one == other:
        return True
    try:
        return surt(one.encode()) == surt(other.encode("utf-8", "surrogateescape"))
    except ValueError:
        return False
