"""Functions about archives: `index` writes their indexes, `captures` reads their captures, `records` all of them."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from cdxmill.api.calls import takes
from cdxmill.api.results import IndexResult
from cdxmill.commands.per_archive.index import capture_options, index_options, index_to_directory
from cdxmill.errors import InputError
from cdxmill.formats.lines.capture_fields import parse_fields
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.named import Input, without_host
from cdxmill.options.archives import ArchiveInputs, Indexing, Recording
from cdxmill.options.option import AnyPath, Options
from cdxmill.outputs.existing import rule_of
from cdxmill.outputs.names import output_names
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import Findings, index_archive
from cdxmill.stages.pages.full_record import FullRecord, full_records
from cdxmill.stages.window import chunk_of
from cdxmill.storage.location import locate
from cdxmill.storage.reading import open_unchanged
from cdxmill.storage.scratch import Scratch, temporary_directory
from cdxmill.storage.wacz import is_wacz

OnFailure = Callable[[Failure], None] | None
Report = Callable[[Failure], None]
"""Takes a failure, or raises it."""
Item = TypeVar("Item")


@takes(Indexing)
def index(asked: Indexing) -> IndexResult:
    """Write one sorted .cdx.gz file per archive to the directory `output`, also an s3 or hdfs URL.

    `inputs` are archives, directories, globs or URLs. `line_format` is "cdxj", "cdx11" or "cdx9". `processes` 0 means
    one per core. Outputs that are up to date are kept. With `update` so are other outputs of these archives that
    are newer than they are; with `replace` all are written again. Failures are in the result, and in
    `output`/failures.tsv. Raises UsageError for invalid arguments, and for an output that exists and may not be replaced;
    StoppedError if the output cannot be written.
    """
    failures = Failures(printed=False)
    options = index_options(asked, rule_of(asked))
    names = output_names(find_archives(asked, failures))
    done = index_to_directory(names, os.fspath(asked.output), options, failures)
    return IndexResult(
        archives=done.files,
        skipped=done.kept,
        captures=done.captures,
        bytes=done.bytes,
        failures=failures.items,
    )


class CapturesCall(Recording):
    """The parameters of `captures`."""

    archive: AnyPath = field(kw_only=False)
    _: KW_ONLY = field(kw_only=False)
    on_failure: OnFailure = None


@takes(CapturesCall)
def captures(asked: CapturesCall) -> Iterator[dict[str, str]]:
    """Yield the captures of one archive or WACZ as dictionaries, in the order of their records. Nothing is written.

    A dictionary has the fields of the capture's CDXJ line as text: urlkey, timestamp, url, status, offset, length and
    so on. If the archive is corrupt, InputError is raised after its last valid capture; with `on_failure` that function
    is called for each failure instead.
    """
    read = partial(_captures_of, options=capture_options(asked))
    return _each_archive(os.fspath(asked.archive), asked.on_failure, read)


def _captures_of(
    path: str, filename: str, report: Report, options: CaptureOptions
) -> Iterator[dict[str, str]]:
    with open_unchanged(path) as read_at:
        indexer = index_archive(read_at, os.fsencode(filename), options)
        for lines in indexer:
            yield from map(capture_fields, lines)
    for damage in indexer.findings.damage:
        report(Failure(path, damage.offset, damage.reason, damage.hint))


class RecordsCall(Options):
    """The parameters of `records`."""

    archive: AnyPath = field(kw_only=False)
    on_failure: OnFailure = None


@takes(RecordsCall)
def records(asked: RecordsCall) -> Iterator[FullRecord]:
    """Yield every record of one archive or WACZ, in order. A part of a record is read and decoded when you ask for it.

    A record of more than 8 MiB has to be asked for its block before the next one. If the archive is corrupt, the records
    that are whole are yielded, and then InputError is raised; with `on_failure` that function is called for each failure
    instead.
    """
    return _each_archive(os.fspath(asked.archive), asked.on_failure, _records_of)


def _records_of(path: str, filename: str, report: Report) -> Iterator[FullRecord]:
    findings = Findings()
    with open_unchanged(path) as read_at, temporary_directory() as scratch:
        chunk = chunk_of(locate(path).is_remote)
        for record in full_records(read_at, Scratch(Path(scratch)), chunk):
            if isinstance(record, FullRecord):
                yield record
            else:
                findings.add(record)
    for damage in findings.damage:
        report(Failure(path, damage.offset, damage.reason, damage.hint))


def _each_archive(
    path: str, on_failure: OnFailure, read: Callable[[str, str, Report], Iterator[Item]]
) -> Iterator[Item]:
    """What `read` gives for an archive and its name, or for each archive in a WACZ."""
    report = partial(_report, on_failure)
    if not is_wacz(path):
        yield from read(path, posixpath.basename(without_host(path)), report)
        return
    failures, archives = Failures(printed=False), list[Input]()
    try:
        archives = find_archives(ArchiveInputs(path), failures)
    except InputError as error:
        failures.report(Failure.from_error(error))
    for failure in failures.items:
        report(failure)
    for archive in archives:
        try:
            yield from read(archive.path, archive.filename, report)
        except InputError as error:
            if on_failure is None:
                raise
            on_failure(Failure.from_error(error))


def _report(on_failure: OnFailure, failure: Failure) -> None:
    if on_failure is None:
        where = failure.path if failure.offset is None else f"{failure.path}@{failure.offset}"
        raise InputError(where, failure.reason, failure.hint)
    on_failure(failure)


def capture_fields(line: bytes) -> dict[str, str]:
    """The fields of a CDX or CDXJ line as text."""
    return {name: str(value) for name, value in parse_fields(line).items()}
