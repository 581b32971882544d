"""cat: a table of the records of an archive, so that each can be printed by its offset."""

from __future__ import annotations

from collections.abc import Iterator

from cdxmill.capture import Damage, Record
from cdxmill.formats.own_records import format_row
from cdxmill.inputs.archive_store import check_one_archive
from cdxmill.messages import count
from cdxmill.outputs.names import check_inputs_stay, output_file
from cdxmill.running.failures import Failures
from cdxmill.stages.records.read_records import read_records
from cdxmill.storage.location import locate
from cdxmill.storage.reading import open_unchanged

COLUMNS = ["url", "kind", "offset", "length"]


def write_table(archive: str, output: str, failures: Failures, *, replace: bool) -> str:
    """Write a row for each whole record of the archive at a path or URL, tab-separated, after a row of COLUMNS.

    Returns the closing line. Damage is reported. Raises InputError if the archive cannot be read, UsageError if it is a
    WACZ, if `output` is the archive, or exists and may not be replaced.
    """
    rows = 0
    check_one_archive(locate(archive))
    check_inputs_stay([locate(output)], [locate(archive)])
    with output_file(output, replace=replace).write_atomic() as file:
        file.write(format_row(COLUMNS))
        for row in _rows(archive, failures):
            file.write(row)
            rows += 1
    return f"{output}: {count(rows, 'record')}"


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
