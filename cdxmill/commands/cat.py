"""cat: a table of the records of an archive, so that each can be printed by its offset."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO

from cdxmill.capture import Damage, Record
from cdxmill.commands.get import get_record
from cdxmill.errors import UsageError
from cdxmill.formats.own_records import format_row
from cdxmill.inputs.archive_store import check_one_archive
from cdxmill.inputs.dictionaries import use_dictionary
from cdxmill.options.records import Getting, Printing
from cdxmill.outputs.names import check_inputs_stay, output_file, writing
from cdxmill.running.failures import Failures
from cdxmill.stages.records.read_records import read_records
from cdxmill.storage.location import locate
from cdxmill.storage.reading import open_unchanged

COLUMNS = ["url", "kind", "offset", "length"]


def content_asked(asked: Printing) -> Iterator[bytes]:
    """The record at an offset, in pieces. Raises UsageError, InputError."""
    if asked.offset is None:
        raise UsageError("give either --offset N or --table FILE")
    return get_record(
        Getting(asked.archive, offset=asked.offset, length=asked.length, dictionary=asked.dictionary)
    )


def table_asked(asked: Printing, failures: Failures, out: IO[bytes] | None = None) -> int:
    """Write the table of all records, to `out` if it is given. Returns their number. Raises as `write_table`."""
    if asked.table is None or asked.offset is not None:
        raise UsageError("give either --offset N or --table FILE")
    use_dictionary(asked.dictionary)
    if out is not None:
        check_one_archive(locate(os.fspath(asked.archive)))
        return _write_rows(os.fspath(asked.archive), out, failures)
    return write_table(os.fspath(asked.archive), os.fspath(asked.table), failures, replace=asked.replace)


def write_table(archive: str, output: str, failures: Failures, *, replace: bool) -> int:
    """Write a row for each whole record of the archive at a path or URL, tab-separated, after a row of COLUMNS.

    Returns the number of records. Damage is reported. Raises InputError if the archive cannot be read, UsageError if it is a
    WACZ, if `output` is the archive, or exists and may not be replaced.
    """
    check_one_archive(locate(archive))
    check_inputs_stay([locate(output)], [locate(archive).stored_in])
    with writing(output_file(output, replace=replace), replace=replace) as file:
        return _write_rows(archive, file, failures)


def _write_rows(archive: str, file: IO[bytes], failures: Failures) -> int:
    rows = 0
    file.write(format_row(COLUMNS))
    for row in _rows(archive, failures):
        file.write(row)
        rows += 1
    return rows


def _rows(path: str, failures: Failures) -> Iterator[bytes]:
    with open_unchanged(path) as read_at:
        for item in read_records(read_at):
            if isinstance(item, Record):
                yield _row(item)
            elif isinstance(item, Damage):
                failures.add(path, item.offset, item.reason, item.hint)


def _row(record: Record) -> bytes:
    url = record.headers.get(b"warc-target-uri", b"").decode("utf-8", "surrogateescape")
    kind = record.headers.get(b"warc-type", b"").decode("utf-8", "surrogateescape")
    return format_row([url, kind, str(record.offset), str(record.length)])
