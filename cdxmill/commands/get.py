"""get: a capture of a cluster, or a place in an archive -> the record itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from cdxmill.capture import Headers
from cdxmill.commands.lookup import lookup
from cdxmill.errors import InputError
from cdxmill.formats.record_location import RecordLocation, record_location
from cdxmill.formats.timestamp import timestamp_of
from cdxmill.inputs.archive_store import Archives
from cdxmill.search.question import Question
from cdxmill.stages.captures.match_record import mismatch
from cdxmill.stages.records.decode_payload import PayloadError, decode_payload
from cdxmill.stages.records.fetch_record import FetchedRecord, NoRecord
from cdxmill.stages.records.record_parts import record_parts

FORMS = ("record", "headers", "payload")
_REVISIT = "warc/revisit"


@dataclass(frozen=True, kw_only=True)
class GetOptions:
    """Where archives are, and what of a record is wanted: one of FORMS, the payload `decode`d or as it was sent."""

    archives: str | None = None
    form: str = "record"
    decode: bool = False


class Wanted(NamedTuple):
    """An archive's name, and the byte range of a record there; without a length the record that begins there."""

    filename: str
    offset: int
    length: int | None


def get_record(wanted: Wanted, options: GetOptions) -> Iterator[bytes]:
    """The record at a place in an archive, in pieces. Raises InputError where it is not there or is damaged."""
    with closing(Archives(options.archives)) as archives:
        fetched = archives.fetch(*wanted)
        if options.form == "payload" and (why := _without_payload(fetched.record.headers)):
            raise InputError(f"{wanted.filename}@{wanted.offset}", why, "look it up in a cluster that has it")
        yield from _told(wanted, fetched, options)


def get_capture(cluster: str, url: str, timestamp: str | None, options: GetOptions) -> Iterator[bytes]:
    """The record of the capture of `url` nearest to a timestamp; without one, of the newest.

    The payload of a revisit is that of the record that it repeats. Raises InputError where there is none,
    it cannot be read, or another record is where the line says, UsageError as `lookup` does.
    """
    question = Question(match_type="exact", sort="newest", limit=1)
    if timestamp is not None:
        question = Question(match_type="exact", sort="closest", closest=timestamp, limit=1)
    line = next(iter(lookup(cluster, url, question)), None)
    if line is None:
        raise InputError(cluster, f"has no capture of {url}")
    place = _place(cluster, line)
    with closing(Archives(options.archives)) as archives:
        fetched = _fetch(archives, place)
        headers = fetched.record.headers
        if options.form == "payload" and (why := _without_payload(headers)):
            original = _original(cluster, place, headers)
            if original is None:
                raise InputError(f"{place.filename}@{place.offset}", f"{why}; {cluster} has no line of it")
            place = original
            fetched = _fetch(archives, place)
        yield from _told(Wanted(*place[:3]), fetched, options)


def _fetch(archives: Archives, place: RecordLocation) -> FetchedRecord:
    """The record of a line. Raises InputError where another one is there."""
    fetched = archives.fetch(*place[:3])
    wrong = mismatch(fetched.record, place)
    if wrong is not None:
        hint = "index the archive again, or name the archives that were indexed"
        raise InputError(f"{place.filename}@{place.offset}", wrong, hint)
    return fetched


def _place(cluster: str, line: bytes) -> RecordLocation:
    try:
        return record_location(line)
    except ValueError as error:
        raise InputError(cluster, str(error)) from None


def _without_payload(headers: Headers) -> str:
    """Why a record has no payload of its own; "" where it has."""
    if headers.get(b"warc-type", b"").lower() != b"revisit":
        return ""
    names = (b"warc-refers-to-target-uri", b"warc-refers-to-date")
    of = b" ".join(headers[name] for name in names if name in headers).decode("utf-8", "replace")
    return f"is a revisit: the payload is in the record that it repeats{of and f' ({of})'}"


def _original(cluster: str, place: RecordLocation, headers: Headers) -> RecordLocation | None:
    """The capture that a revisit repeats: the same digest, at the URL and nearest to the time that it names."""
    url = headers.get(b"warc-refers-to-target-uri", b"").decode("utf-8", "replace") or place.url
    date = timestamp_of(headers.get(b"warc-refers-to-date", b"")) or place.timestamp.encode()
    question = Question(match_type="exact", sort="closest", closest=date[:14].decode())
    for line in lookup(cluster, url, question):
        found = _place(cluster, line)
        if found.mime != _REVISIT and found.digest == place.digest:
            return found
    return None


def _told(wanted: Wanted, fetched: FetchedRecord, options: GetOptions) -> Iterator[bytes]:
    """What of the record is wanted."""
    try:
        if options.form == "record":
            yield from fetched.content()
            return
        parts = record_parts(fetched.record, fetched.content())
        if options.form == "headers":
            yield parts.header
            yield parts.http_head
        elif options.decode:
            yield from decode_payload(parts.http_head, parts.payload)
        else:
            yield from parts.payload
    except (NoRecord, PayloadError) as error:
        raise InputError(f"{wanted.filename}@{wanted.offset}", str(error)) from None
