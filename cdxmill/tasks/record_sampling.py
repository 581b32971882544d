"""Archives -> a uniform sample of their records, with a limit on its bytes.

Each record gets a random priority. The sample is the records of lowest priority, as many as the limit allows. So the
chance of a record depends neither on its archive nor on its size, and memory does not grow with the inputs.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import NamedTuple, TypeVar

from cdxmill.capture import Damage, Record
from cdxmill.errors import InputError
from cdxmill.formats.archives.http_head import parse_http_head
from cdxmill.inputs.named import Input
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import counted, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.records.fetch_record import Archive, FetchedRecord, NoRecord
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.record_parts import first_bytes, is_http, sha1
from cdxmill.stages.window import chunk_of
from cdxmill.storage.location import locate, total_size

MAX_SAMPLE = 128 << 10
"""Bytes of a record that are used. zstd's trainer uses no more of a sample."""
_LONGEST_KIND = 60
_MARKS = (b"warc-type", b"warc-record-id", b"warc-date", b"warc-target-uri", b"warc-payload-digest")
"""Fields that tell records apart."""
_HELD_OUT = 8
"""One part in this number of the sample is kept for measuring."""


class Candidate(NamedTuple):
    """A record that may be in the sample. `archive` is the number of its archive, `size` the bytes that would be used."""

    priority: float
    archive: int
    offset: int
    length: int
    size: int
    kind: str


class Candidates:
    """The records of lowest priority whose sizes add up to at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._ceiling = 1.0
        self._heap: list[tuple[float, Candidate]] = []

    def wants(self, priority: float) -> bool:
        """Whether a record with this priority may be among them."""
        return priority < self._ceiling

    def add(self, candidate: Candidate) -> None:
        """Add a record that is wanted. Others are dropped if there are too many bytes."""
        heapq.heappush(self._heap, (-candidate.priority, candidate))
        self._left -= candidate.size
        while self._left < 0:
            _, dropped = heapq.heappop(self._heap)
            self._left += dropped.size
            self._ceiling = dropped.priority

    def sorted(self) -> list[Candidate]:
        """The records, lowest priority first."""
        return sorted(candidate for _, candidate in self._heap)


def _candidate(priority: float, archive: int, record: Record) -> Candidate:
    # the record's header is no part of `size`; it is short, and Record does not have its length
    size = min(record.size + sum(map(len, record.headers.values())), MAX_SAMPLE)
    return Candidate(priority, archive, record.offset, record.length, size, kind_of(record))


def kind_of(record: Record) -> str:
    """The type of a record and the media type of its payload: `response text/html`."""
    kind = record.headers.get(b"warc-type", b"arc")
    mime = record.headers.get(b"content-type")
    if kind != b"request" and is_http(kind, record.headers.get(b"warc-target-uri", b"")):
        mime = parse_http_head(record.block).content_type
    text = kind + b" " + ((mime or b"").partition(b";")[0].strip() or b"-")
    return text[:_LONGEST_KIND].decode("utf-8", "replace").lower()


class Sample(NamedTuple):
    """The records to train on, and those to measure with. `by_file` is whether no archive has records of both.

    `totals` has the bytes of the records of each archive by kind, as they lie; `same` pairs of archives with the same records.
    """

    training: list[Candidate]
    held_out: list[Candidate]
    by_file: bool
    totals: list[Counter[str]]
    same: list[tuple[int, int]]


class _SampleTask(NamedTuple):
    number: int
    path: str
    seed: str
    limit: int


class _SampleResult(NamedTuple):
    """`totals` are the bytes by kind, `fingerprint` is equal for archives with the same records, however they are compressed."""

    candidates: list[Candidate]
    failures: list[Failure]
    totals: Counter[str]
    fingerprint: bytes


def choose_records(
    archives: Sequence[Input], limit: int, seed: int, processes: int, quiet: bool, failures: Failures
) -> Sample:
    """A uniform sample of at most `limit` bytes of all records. Failures are reported. The same for any `processes`."""
    for archive in archives:
        archive.location.require()
    tasks = [
        _SampleTask(number, archive.path, f"{seed}:{number}", limit)
        for number, archive in enumerate(archives)
    ]
    chosen, results = Candidates(limit), dict[int, _SampleResult]()
    total = total_size(archive.location for archive in archives)
    with Progress("sampling", len(tasks), total, quiet) as progress:
        failures.show_on(progress)
        for number, result in run_tasks(_sample, tasks, processes, progress.tick):
            failures.report_listed(archives[number].label, result.failures)
            for candidate in result.candidates:
                if chosen.wants(candidate.priority):
                    chosen.add(candidate)
            results[number] = result._replace(candidates=[], failures=[])
            progress.advance()
    same = _same(results)
    again = {number for number, _ in same}
    training, held_out, by_file = _hold_out(
        [one for one in chosen.sorted() if one.archive not in again], seed
    )
    totals = [results[number].totals for number in sorted(results) if number not in again]
    return Sample(training, held_out, by_file, totals, same)


def _same(results: Mapping[int, _SampleResult]) -> list[tuple[int, int]]:
    """The archives that have the same records as one before, each with that one."""
    first: dict[bytes, int] = {}
    found = []
    for number in sorted(results):
        mark = results[number].fingerprint
        if mark and first.setdefault(mark, number) != number:
            found.append((number, first[mark]))
    return found


def _sample(task: _SampleTask) -> _SampleResult:
    """The candidates among all whole records of an archive."""
    draw, candidates, failures = Random(task.seed).random, Candidates(task.limit), []
    totals, mark = Counter[str](), sha1()
    place = locate(task.path)
    try:
        with place.open_ranges() as read_at:
            for item in read_records(counted(read_at), chunk=chunk_of(place.is_remote)):
                if isinstance(item, Damage):
                    failures.append(Failure(task.path, item.offset, item.reason, item.hint))
                elif isinstance(item, Record):
                    totals[kind_of(item)] += item.length
                    mark.update(repr((item.size, *map(item.headers.get, _MARKS))).encode())
                    priority = draw()
                    if candidates.wants(priority):
                        candidates.add(_candidate(priority, task.number, item))
    except InputError as error:
        return _SampleResult([], [Failure.from_error(error)], Counter(), b"")
    return _SampleResult(candidates.sorted(), failures, totals, mark.digest() if totals else b"")


def _hold_out(chosen: list[Candidate], seed: int) -> tuple[list[Candidate], list[Candidate], bool]:
    """Divide a sample. Whole archives are held out; if there is only one, records of it."""
    sizes: dict[int, int] = {}
    for one in chosen:
        sizes[one.archive] = sizes.get(one.archive, 0) + one.size
    if len(sizes) < 2:
        return chosen[len(chosen) // _HELD_OUT :], chosen[: len(chosen) // _HELD_OUT], False
    numbers = sorted(sizes, key=lambda number: (sizes[number], number))[:-1]  # never the largest one
    Random(f"{seed}:held out").shuffle(numbers)
    wanted, held = sum(sizes.values()) // _HELD_OUT, set()
    for number in numbers:
        if wanted > 0:
            held.add(number)
            wanted -= sizes[number]
    return (
        [one for one in chosen if one.archive not in held],
        [one for one in chosen if one.archive in held],
        True,
    )


Fetched = TypeVar("Fetched")


def read_chosen(
    archives: Sequence[Input],
    chosen: Sequence[Candidate],
    read: Callable[[Candidate, FetchedRecord], Fetched],
    failures: Failures,
) -> list[Fetched]:
    """What `read` makes of each record, by archive and offset. Archives that cannot be read now are reported."""
    by_place = sorted(chosen, key=lambda one: (one.archive, one.offset))
    found: list[Fetched] = []
    for number, group in groupby(by_place, key=attrgetter("archive")):
        try:
            found += _read(archives[number].path, group, read)
        except InputError as error:
            failures.report(Failure.from_error(error))
    return found


def start_of(one: Candidate, record: FetchedRecord) -> bytes:
    """The first bytes of a record, to train on."""
    return first_bytes(record.content(), MAX_SAMPLE)[:MAX_SAMPLE]


def _read(
    path: str, candidates: Iterator[Candidate], read: Callable[[Candidate, FetchedRecord], Fetched]
) -> Iterator[Fetched]:
    with locate(path).open_ranges() as read_at:
        archive = Archive(read_at)
        for one in candidates:
            try:
                yield read(one, archive.record(one.offset, one.length))
            except NoRecord as error:
                reason = f"changed while it was read ({error})"
                raise InputError(path, reason, "run it again when nothing writes to the file") from None
