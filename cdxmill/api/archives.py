"""Functions about archives: `index` writes their indexes, `captures` reads their captures."""

from __future__ import annotations

import dataclasses
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator
from typing import TypedDict, Unpack

from cdxmill.api.arguments import Path, Paths, check_names, optional_path, path_list, process_count, text_list
from cdxmill.api.results import IndexResult
from cdxmill.commands.per_archive.index import index_to_folder
from cdxmill.commands.per_archive.index_one import IndexOptions
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.capture_fields import parse_fields
from cdxmill.inputs.archives import Manifest as ArchiveList
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.named import Input, without_host
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.names import output_names
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.captures.capture_options import DEFAULT_RECORDS, CaptureOptions, parse_record_types
from cdxmill.stages.captures.index_archive import LINE_FORMATS, ArchiveIndexer
from cdxmill.storage.unchanged import open_unchanged
from cdxmill.storage.wacz import is_wacz


class Recording(TypedDict, total=False):
    """Which records get an index line, and how: the options of `cdxmill index` with these names."""

    records: str | Iterable[str]
    post_append: bool
    minimal: bool
    unsurt: bool
    keep_www: bool


class Manifest(TypedDict, total=False):
    """More input, and the names of archives in index lines: the options of `cdxmill index` with these names."""

    manifest: Path
    root: Path
    dir_root: Path


class IndexArguments(Recording, Manifest):
    """The keyword arguments of `index` that `build` takes too."""


def index(
    inputs: Paths = (),
    *,
    output: Path,
    line_format: str = "cdxj",
    update: bool = False,
    replace: bool = False,
    processes: int = 0,
    **options: Unpack[IndexArguments],
) -> IndexResult:
    """Write one sorted .cdx.gz file per archive to the directory `output`, also an s3 or hdfs URL.

    `inputs` are archives, directories, globs or URLs. `line_format` is "cdxj", "cdx11" or "cdx9". `processes` 0 means
    one per core. Outputs that are up to date are kept. With `update` so are other outputs of these archives that
    are newer than they are; with `replace` all are written again. Failures are in the result, and in
    `output`/failures.tsv. Raises UsageError for invalid arguments, and for an output that exists and may not be replaced;
    StoppedError if the output cannot be written.
    """
    check_names(options, IndexArguments)
    failures = Failures(printed=False)
    indexing = index_options(line_format, processes, options)
    archives = find_inputs(inputs, options, failures)
    if update and replace:
        raise UsageError("update and replace cannot be used together")
    rule = Rule.UPDATE if update else Rule.REPLACE if replace else Rule.REFUSE
    done = index_to_folder(
        output_names(archives), os.fspath(output), dataclasses.replace(indexing, existing=rule), failures
    )
    return IndexResult(
        archives=done.files,
        skipped=done.kept,
        captures=done.captures,
        bytes=done.bytes,
        failures=failures.items,
    )


def captures(
    archive: Path, *, on_failure: Callable[[Failure], None] | None = None, **options: Unpack[Recording]
) -> Iterator[dict[str, str]]:
    """Yield the captures of one archive or WACZ as dictionaries, in the order of their records. Nothing is written.

    A dictionary has the fields of the capture's CDXJ line as text: urlkey, timestamp, url, status, offset, length and
    so on. If the archive is corrupt, InputError is raised after its last valid capture; with `on_failure` that function
    is called for each failure instead.
    """
    check_names(options, Recording)
    return _captures(os.fspath(archive), capture_options(options), on_failure)


def _captures(
    path: str, options: CaptureOptions, on_failure: Callable[[Failure], None] | None
) -> Iterator[dict[str, str]]:
    if not is_wacz(path):
        yield from _captures_of(path, posixpath.basename(without_host(path)), options, on_failure)
        return
    failures, archives = Failures(printed=False), list[Input]()
    try:
        archives = find_archives([path], None, None, failures)
    except InputError as error:
        failures.report(Failure.from_error(error))
    for failure in failures.items:
        _report(failure, on_failure)
    for archive in archives:
        try:
            yield from _captures_of(archive.path, archive.filename, options, on_failure)
        except InputError as error:
            if on_failure is None:
                raise
            on_failure(Failure.from_error(error))


def _captures_of(
    path: str, filename: str, options: CaptureOptions, on_failure: Callable[[Failure], None] | None
) -> Iterator[dict[str, str]]:
    with open_unchanged(path) as read_at:
        indexer = ArchiveIndexer(read_at, os.fsencode(filename), options)
        for lines in indexer:
            yield from map(capture_fields, lines)
    for damage in indexer.findings.damage:
        _report(Failure(path, damage.offset, damage.reason, damage.hint), on_failure)


def _report(failure: Failure, on_failure: Callable[[Failure], None] | None) -> None:
    if on_failure is None:
        where = failure.path if failure.offset is None else f"{failure.path}@{failure.offset}"
        raise InputError(where, failure.reason, failure.hint)
    on_failure(failure)


def capture_fields(line: bytes) -> dict[str, str]:
    """The fields of a CDX or CDXJ line as text."""
    return {name: str(value) for name, value in parse_fields(line).items()}


def find_inputs(inputs: Paths, options: IndexArguments, failures: Failures) -> list[Input]:
    """The archives that the arguments stand for. Raises UsageError if there are none."""
    named = path_list(inputs)
    manifest, root = optional_path(options.get("manifest")), optional_path(options.get("root"))
    if not named and manifest is None:
        raise UsageError("no input; give archives, directories, or a manifest")
    if root is not None and manifest is None:
        raise UsageError("root needs a manifest")
    dir_root = optional_path(options.get("dir_root"))
    listed = None if manifest is None else ArchiveList(manifest, root or "")
    return find_archives(named, listed, dir_root, failures)


def index_options(line_format: str, processes: int, options: IndexArguments) -> IndexOptions:
    """How archives are indexed. Raises UsageError."""
    if line_format not in LINE_FORMATS:
        raise UsageError(f"invalid line_format {line_format!r}: expected {', '.join(LINE_FORMATS)}")
    return IndexOptions(
        captures=capture_options(options),
        line_format=line_format,
        processes=process_count(processes),
        quiet=True,
    )


def capture_options(options: Recording) -> CaptureOptions:
    """Which records get a line. Raises UsageError for an unknown type of record."""
    types = options.get("records")
    if options.get("minimal") and options.get("post_append"):
        raise UsageError("minimal and post_append cannot be used together")
    try:
        records = DEFAULT_RECORDS if types is None else parse_record_types(text_list(types))
    except ValueError as error:
        raise UsageError(str(error)) from None
    return CaptureOptions(
        records=records,
        post_append=options.get("post_append", False),
        minimal=options.get("minimal", False),
        unsurt=options.get("unsurt", False),
        keep_www=options.get("keep_www", False),
    )
