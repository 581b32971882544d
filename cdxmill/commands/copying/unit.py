"""Copy one unit of captures: fetch their ranges, check the records, and write them to scratch files.

run of neighbors -> one request -> records, each compared with its index line -> gzip members
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.commands.copying.output import Finished
from cdxmill.commands.copying.plan import Planned, Run, Unit, detailed, read_rows, runs_of
from cdxmill.commands.copying.unit_files import (
    ARC,
    OTHER_DIGEST,
    WARC,
    CopiedRecord,
    UnitFiles,
    UnitResult,
    unit_name,
)
from cdxmill.errors import InputError
from cdxmill.formats.lines.capture_fields import ABSENT
from cdxmill.formats.lines.cdx_lines import url_in
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.inputs.joined_ranges import JoinedRanges, OpenRanges
from cdxmill.options.records import Copying
from cdxmill.running.failures import Failure
from cdxmill.running.processes import count_bytes
from cdxmill.running.resume import WorkDirectory
from cdxmill.search.originals import reference_in
from cdxmill.stages.captures.match_record import (
    CommonChecks,
    capture_of_record,
    other_capture,
    other_digest,
    wrong_digest,
)
from cdxmill.stages.records.fetch_record import AROUND, NoRecord, Placed, records_after, records_before
from cdxmill.stages.records.write_record import Fields, stored_member, warc_member_of_arc
from cdxmill.storage.location import Location

PLAN = "plan.rows"
_OF_URLS = "!#$%&'()*+,/:;=@[]~"
"""Characters of a URL that are not escaped."""
_HAS_RELATED = (b"response", b"revisit", b"resource")
_ARCHIVES = 64
"""Archives whose places are kept."""
_MISMATCH = "index the archive again, or use --archives with the indexed archives"
AS_IT_IS = "was copied as it is"
_OTHER_DIGEST = "fetch the archive again, or copy the record as it is with --any-digest"


class _OtherDigest(NoRecord):
    """The record is that of the index line, but its digest is another one."""


def copied_as_it_is(record: CopiedRecord) -> Failure:
    """What is reported of a record with another digest that an earlier run has copied."""
    filename, offset, timestamp, url = record
    reason = f"the record does not have the digest of the index line, and {AS_IT_IS} ({url} {timestamp})"
    return Failure(filename, offset, reason)


def _told(first: InputError | None, error: InputError) -> InputError:
    """What is reported of a record that cannot be copied from two places: the first reason, but another digest says most."""
    return error if first is None or error.hint == _OTHER_DIGEST else first


def source_uri(place: Location, filename: str) -> bytes:
    """The URI of an archive: its URL without a query, or its name in the index. Local paths stay private.

    >>> from cdxmill.storage.location import locate
    >>> source_uri(locate("https://a.org/x.warc.gz?key=1"), "x.warc.gz"), source_uri(locate("/a/ b.warc"), "/a/ b.warc")
    (b'https://a.org/x.warc.gz', b'%20b.warc')
    """
    if place.is_remote:
        return quote(os.fsencode(place.text.partition("?")[0]), safe=_OF_URLS).encode()
    name = filename.rpartition("/")[2] if filename.startswith(("/", "file:")) else filename
    return quote(os.fsencode(name)).encode()


def revisit_of(one: Planned) -> list[Any]:
    """The first fields of a `Revisit`: those that its index line tells."""
    place = one.location
    return [one.source, place.url, place.timestamp, place.digest, place.filename, place.offset]


class UnitCopier:
    """Copies units. A process opens archives when it first needs them, and keeps some of them open.

    `places` are those of the archives of each source. The work directory has the rows in the file `plan`, and gets the
    results. Captures that are finished are skipped: an earlier run has copied them. `before` is called before each request.
    """

    def __init__(
        self,
        places: Sequence[ArchivePlaces],
        work: WorkDirectory,
        plan: str,
        finished: Finished,
        before: Callable[[], None],
        options: Copying,
    ) -> None:
        self._sources, self._work, self._finished, self._options = places, work, finished, options
        self._directory = work.scratch.directory
        self._read_plan = work.scratch.reader(plan)
        self._stores: dict[int, ArchiveStore] = {}
        self._open = OpenRanges(before, self._directory)
        self._locate = lru_cache(_ARCHIVES)(self._locations_of)
        self._common = CommonChecks(has_revisits=not options.originals)  # their headers are needed then
        self._takes_common = not (options.related or options.source_headers)

    def close(self) -> None:
        """Close the archives that this process has opened."""
        self._open.close()

    def __call__(self, unit: Unit) -> UnitResult:
        """Copy a unit and save its UnitResult, which is returned without parts and revisits.

        Raises StoppedError if the scratch files cannot be written.
        """
        rows = self._read_plan(unit.start, unit.size).split(b"\n")[:-1]
        with closing(UnitFiles(self._directory, unit.number, self._options.related)) as files:
            found = [(one, self._finished.copied(one)) for _, one in read_rows(rows)]
            records = filter(None, (record for _, record in found))
            files.result.failures += map(
                copied_as_it_is, filter(self._finished.other_digest.__contains__, records)
            )
            runs = list(runs_of(one for one, record in found if record is None))
            for run, following in zip_longest(runs, runs[1:]):
                self._copy_run(run, following, files)
        self._work.save(unit_name(unit.number), files.result.as_json())
        return replace(files.result, parts={}, revisits=[])

    def _copy_run(self, run: Run, following: Run | None, files: UnitFiles) -> None:
        """Copy the captures of a run. What cannot be read in one place of the archive is read in the next.

        While its records are checked, the range of the following run may be fetched.
        """
        reasons: dict[Planned, InputError] = {}
        try:
            places = self._places_of(run)
        except InputError as why:
            places, reasons = [], dict.fromkeys(run, why)
        for place in places:
            left = [one for one in run if one in reasons] or run
            found = self._copy_from(place, left, following, files)
            reasons = {one: _told(reasons.get(one), error) for one, error in found.items()}
            if not reasons:
                break
        if self._options.any_digest:
            self._copy_any_digest(places, reasons, files)
        for one, error in reasons.items():
            what = f"{error.reason} ({detailed(one).location.url} {one.location.timestamp})"
            failure = Failure.from_error(error)._replace(offset=one.location.offset, reason=what)
            files.result.failures.append(failure)
        files.result.captures += len(run)
        for one in run:
            count_bytes(one.location.length or 0)

    def _copy_any_digest(
        self, places: Sequence[Location], reasons: dict[Planned, InputError], files: UnitFiles
    ) -> None:
        """Copy the records of which only the digest is wrong. That they were copied is added to their reasons."""
        for place in places:
            path = place.text
            run = [one for one, why in reasons.items() if (why.path, why.hint) == (path, _OTHER_DIGEST)]
            failed = self._copy_from(place, run, None, files, any_digest=True) if run else {}
            for one in run:
                copied = InputError(path, f"{reasons[one].reason}, and {AS_IT_IS}")
                reasons[one] = failed.get(one, copied)

    def _places_of(self, run: Run) -> list[Location]:
        return self._locate(run[0].source, run[0].location.filename)

    def _locations_of(self, source: int, filename: str) -> list[Location]:
        if source not in self._stores:
            self._stores[source] = self._sources[source].open()
        return self._stores[source].locations(filename)

    def _begin(self, run: Run | None) -> None:
        """Begin to fetch the range of a run. If that fails, the run itself says why."""
        with suppress(InputError):
            if run is not None:
                self._open.begin(self._places_of(run)[0], *self._range_of(run))

    def _range_of(self, run: Run) -> tuple[int, int]:
        """The first offset that is fetched for a run, and the number of bytes."""
        around = AROUND if self._options.related else 0
        first = max(0, run[0].location.offset - around)
        return first, run[-1].end + around - first

    def _copy_from(
        self,
        place: Location,
        run: Run,
        following: Run | None,
        files: UnitFiles,
        any_digest: bool = False,
    ) -> dict[Planned, InputError]:
        """Copy captures from the archive at a place, in one request. Returns those that cannot be copied, and why."""
        try:
            archive = self._open.opened(place)
        except InputError as error:
            return dict.fromkeys(run, error)
        before = archive.requests, archive.bytes
        failed: dict[Planned, InputError] = {}
        try:
            archive.fetch(*self._range_of(run), self._directory)
        except InputError as error:
            failed = dict.fromkeys(run, error)
        else:
            self._begin(following)
            files.mark = OTHER_DIGEST if any_digest else ""
            for one in run:
                try:
                    self._copy_record(one, archive, files, any_digest)
                except NoRecord as error:
                    hint = _OTHER_DIGEST if isinstance(error, _OtherDigest) else _MISMATCH
                    failed[one] = InputError(place.text, str(error), hint)
                except InputError as error:
                    failed[one] = error
        files.result.requests += archive.requests - before[0]
        files.result.fetched += archive.bytes - before[1]
        return failed

    def _copy_record(self, one: Planned, archive: JoinedRanges, files: UnitFiles, any_digest: bool) -> None:
        """Check a record and write it. Raises NoRecord, with the reason, if it is not that of the index line."""
        if self._takes_common and self._copy_common(one, archive, files):
            return
        one = detailed(one)
        place = one.location
        fetched = archive.archive.record(place.offset, place.length)
        record = fetched.record
        capture = capture_of_record(record)
        if capture is None:
            raise NoRecord("the record has no URL")
        if reason := other_capture(capture.url, capture.timestamp, place):
            raise NoRecord(reason)
        if not place.url and capture.urlkey != one.key:  # lines of a prefix B-tree have no URL
            raise NoRecord(f"the record has the key {capture.urlkey!r}, the index line has {one.key!r}")
        reason = other_digest(capture, place) or wrong_digest(record, fetched.content(), place.digest)
        if reason is not None and not any_digest:
            raise _OtherDigest(reason)
        key = archive.place.text, place.offset
        if key in files.written:  # beside a response, or for a line with another key
            return
        if not record.headers.get(b"warc-payload-digest"):  # else its line would need the SHA-1 again
            fetched.record = record = record._replace(payload_digest=capture.digest)
        url = place.url or os.fsdecode(capture.url)
        timestamp = capture.timestamp.decode() if place.timestamp == ABSENT else place.timestamp
        row = [place.filename, place.offset, place.length, timestamp, url]
        if not record.is_arc:
            self._write_group(row, Placed(place.offset, fetched), archive, files)
        elif self._options.keep_arc:
            files.write(ARC, row, stored_member(fetched))
        else:
            try:
                named = place.filename, place.offset, timestamp
                fields = self._fields(archive.place, place.filename, place.offset, record.length)
                member = warc_member_of_arc(fetched, named, capture.digest or b"", fields)
            except ValueError as error:
                raise NoRecord(str(error)) from None
            files.write(WARC, row, member)
        files.written.add(key)
        if record.headers.get(b"warc-type") == b"revisit":
            files.result.revisits.append([*revisit_of(one), *reference_in(record.headers)])

    def _copy_common(self, one: Planned, archive: JoinedRanges, files: UnitFiles) -> bool:
        """Check and write a response of the common kind, the quick way; False if it is another record, or differs."""
        place = one.location
        member = archive.held(place.offset, place.length or 0)
        made = self._common.line_of(member, one.line)
        if made is None:
            return False
        row = [place.filename, place.offset, place.length, place.timestamp, url_in(made.start).decode()]
        key = archive.place.text, place.offset
        if key not in files.written:
            files.write_common(row, member, made)
            files.written.add(key)
        return True

    def _write_group(self, row: list[Any], response: Placed, archive: JoinedRanges, files: UnitFiles) -> None:
        """Write a record; if asked for, with the request and metadata records beside it."""
        before: list[Placed] = []
        after: list[Placed] = []
        if self._options.related and response.fetched.record.headers.get(b"warc-type") in _HAS_RELATED:
            inside, low, high = archive.inside()
            before = records_before(inside, archive.read_at, response, low)
            after = records_after(inside, response, high)
        filename, _, _, *capture = row
        for one in (*before, response, *after):
            key = archive.place.text, one.offset
            length = one.fetched.record.length
            member = stored_member(one.fetched, self._fields(archive.place, filename, one.offset, length))
            if one is response:
                files.write(WARC, row, member)
            elif key not in files.written:
                files.write(WARC, [filename, one.offset, length, *capture], member)
                files.written.add(key)

    def _fields(self, place: Location, filename: str, offset: int, length: int) -> Fields:
        """The header fields that say where a record is from, if they are asked for."""
        if not self._options.source_headers:
            return ()
        uri = source_uri(place, filename)
        return (b"WARC-Source-URI", uri), (
            b"WARC-Source-Range",
            b"bytes=%d-%d" % (offset, offset + length - 1),
        )
