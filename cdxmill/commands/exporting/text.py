"""Lines as a CSV file for spreadsheets, or as a CDXJ file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from cdxmill.commands.exporting.lines import ExportedLines
from cdxmill.formats.lines.capture_fields import ALSO, line_format, parse_fields, text_to_bytes
from cdxmill.options.exports import Exporting
from cdxmill.options.option import text_list
from cdxmill.outputs.names import output_file, writing
from cdxmill.regex import regex
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.progress import Progress
from cdxmill.search.query import check_fields
from cdxmill.stages.lines.line_lists import text_of

FIELDS = (
    "urlkey",
    "timestamp",
    "url",
    "mime",
    "mime-detected",
    "status",
    "digest",
    "length",
    "offset",
    "filename",
)
"""The fields of a CSV file, without --fl."""
EXCEL_ROWS = 1_048_576
"""The rows of a sheet in Excel, with the header."""
_FORMULA = regex(r"[=+\-@\t\r\n|]")
_MARK = b"\xef\xbb\xbf"
"""Shows Excel that the file is UTF-8."""
_LEVEL, _HELD = 6, 1 << 20


def safe_cell(value: object) -> str:
    """The text of a cell. One that a spreadsheet would read as a formula gets an apostrophe in front.

    >>> safe_cell("=1+1"), safe_cell("-"), safe_cell(200)
    ("'=1+1", '-', '200')
    """
    text = str(value)
    return f"'{text}" if len(text) > 1 and _FORMULA.match(text) else text


def export_text(
    lines: ExportedLines, asked: Exporting, output: str, progress: Progress, failures: Failures
) -> None:
    """Write the file, and check that it has all lines. Raises UsageError if the output exists."""
    format_list = (
        _csv_lists(asked, lines, failures) if asked.format == "csv" else _cdxj_lists(lines, failures)
    )
    with _opened(output, asked.replace) as write:
        if asked.format == "csv":
            write(_MARK + _row(list(_fields(asked))))
        for found in lines.lists():
            write(format_list(found))
            progress.done = lines.count
            progress.tick()
        lines.check()
    if asked.format == "csv" and lines.count >= EXCEL_ROWS:
        failures.note(f"note: Excel shows the first {EXCEL_ROWS - 1} of {lines.count} captures")


def _fields(asked: Exporting) -> tuple[str, ...]:
    if asked.fields is None:
        return FIELDS
    given = (name.strip() for text in text_list(asked.fields) for name in text.split(","))
    return tuple(ALSO.get(name, name) for name in given)


def check_csv_fields(asked: Exporting) -> None:
    """Raise UsageError for a field that no line has."""
    check_fields(_fields(asked), (), "a line of an index")


Formatted = Callable[[list[bytes]], bytes]


def _csv_lists(asked: Exporting, exported: ExportedLines, failures: Failures) -> Formatted:
    names = _fields(asked)

    def made(lines: list[bytes]) -> bytes:
        return b"".join(_csv_row(line, names, exported.cluster, failures) for line in lines)

    return made


def _csv_row(line: bytes, names: tuple[str, ...], cluster: str, failures: Failures) -> bytes:
    """The row of a line. One that cannot be parsed is reported, and is a row with the line alone."""
    try:
        fields = parse_fields(line)
    except (ValueError, RecursionError) as error:
        _report(cluster, error, "its row has the whole line in the first cell", failures)
        return _row([safe_cell(line.decode("utf-8", "replace"))])
    return _row([safe_cell(fields.get(name, "")) for name in names])


def _report(cluster: str, error: Exception, done: str, failures: Failures) -> None:
    """Report an invalid line, and what was done with it: any number of lines may be invalid."""
    failures.report_one_listed(Failure(cluster, None, str(error), done))


def _row(cells: list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text_to_bytes(text.getvalue())


def _cdxj_lists(exported: ExportedLines, failures: Failures) -> Formatted:
    form = line_format("cdxj", None)
    assert form is not None

    def made(lines: list[bytes]) -> bytes:
        found = []
        for line in lines:
            try:
                found.append(form(line))
            except (ValueError, RecursionError) as error:
                _report(exported.cluster, error, "the line is written as it is", failures)
                found.append(line)
        return text_of(found)

    return made


@contextmanager
def _opened(output: str, replace: bool) -> Iterator[Callable[[bytes], object]]:
    """What writes to the output. A file gets its name at the end."""
    if output == "-":
        import sys

        yield sys.stdout.buffer.write
        return
    with writing(output_file(output, replace=replace), replace=replace) as file:
        if not output.endswith(".gz"):
            yield file.write
            return
        packed = _Packed(file)
        yield packed.write
        packed.flush()


class _Packed:
    """Compresses in members of some megabytes."""

    def __init__(self, file: IO[bytes]) -> None:
        from cdxmill.stages.records.pack_contents import GzipPacker  # slow to import

        self._file, self._packer, self._held = file, GzipPacker(_LEVEL), bytearray()
        self._is_empty = True

    def write(self, data: bytes) -> None:
        """Write when there is enough for a member."""
        self._held += data
        if len(self._held) >= _HELD:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        if self._held or self._is_empty:
            self._file.write(self._packer.pack(bytes(self._held)))
        self._held.clear()
        self._is_empty = False
