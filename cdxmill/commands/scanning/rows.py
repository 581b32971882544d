"""The writers of a scan's output: lines of JSON, Parquet, or an archive with the records that match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha1
from importlib import import_module
from itertools import chain
from typing import IO, Any

from cdxmill.errors import StoppedError, UsageError
from cdxmill.outputs.time import output_time
from cdxmill.stages.pages.decode_text import detect_language
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.pages.language_codes import THREE_LETTERS
from cdxmill.stages.records.pack_contents import GzipPacker, Packer, ZstPacker, write_contents
from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.records.record_parts import base32, digest_of
from cdxmill.stages.records.write_record import (
    END,
    conversion_header,
    record_id,
    warc_date,
    warc_header_of_arc,
    warcinfo,
)
from cdxmill.stages.scan.columns import Columns, Type
from cdxmill.stages.scan.fields import CallError, Row, json_line
from cdxmill.version import install_extra

WARC, WET = ("warc.gz", "warc.zst"), ("wet.gz", "wet.zst")
"""Formats of records as they are, and of their texts."""
_LEVEL = 6
_ZST_LEVEL = 3
_HELD = 1 << 20
_BATCH, _BATCH_SIZE = 1000, 64 << 20
"""Rows, and bytes of JSON, that are added to a table at once."""


def _packer(compression: str) -> Packer:
    return GzipPacker(_LEVEL) if compression == "gz" else ZstPacker(_ZST_LEVEL)


class _Lines:
    """Lines of JSON, compressed in pieces of some megabytes: one gzip member or zstd frame for each."""

    def __init__(self, file: IO[bytes], compression: str) -> None:
        self._file, self._lines, self._size, self._is_empty = file, list[bytes](), 0, True
        self._packer = _packer(compression) if compression else None

    def write(self, row: Row) -> None:
        line = json_line(row)
        self._lines.append(line)
        self._size += len(line)
        if self._size >= _HELD:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._lines)
        self._file.write(data if self._packer is None else self._packer.pack(data))
        self._lines.clear()
        self._size, self._is_empty = 0, False

    def close(self) -> None:
        if self._size or self._is_empty:
            self._flush()


class _Sink:
    """What pyarrow needs of a file."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write

    def flush(self) -> None:
        """The file is flushed by its owner."""

    close = flush


class _Parquet:
    """A Parquet table with these columns, also if it has no rows. A missing value is null."""

    def __init__(self, file: IO[bytes], columns: Columns) -> None:
        import pyarrow
        import pyarrow.parquet

        self._arrow, self._rows, self._size = pyarrow, list[Row](), 0
        text = pyarrow.string()
        kinds = {
            Type.INT: pyarrow.int64(),
            Type.DOUBLE: pyarrow.float64(),
            Type.BOOL: pyarrow.bool_(),
            Type.LIST: pyarrow.list_(text),
        }
        self._columns = columns
        self._schema = pyarrow.schema([(name, kinds.get(kind, text)) for name, kind in columns.items()])
        self._writer = pyarrow.parquet.ParquetWriter(pyarrow.PythonFile(_Sink(file), mode="w"), self._schema)

    def write(self, row: Row) -> None:
        self._size += len(json_line(row))  # what JSON cannot have is not written to a table, either
        self._rows.append({name: _cell(self._columns[name], value) for name, value in row.items()})
        if len(self._rows) >= _BATCH or self._size >= _BATCH_SIZE:
            self._flush()

    def _flush(self) -> None:
        with self._stopping():
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._size = [], 0

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """No rows may be missing in a table: if some cannot be written, there is none."""
        try:
            yield
        except (self._arrow.ArrowException, MemoryError) as error:
            reason = " ".join(str(error).split()) or "not enough memory"
            raise StoppedError(
                f"cannot write Parquet ({reason}); use fewer processes, or --to jsonl.gz"
            ) from None

    def close(self) -> None:
        if self._rows:
            self._flush()
        with self._stopping():
            self._writer.close()


def _cell(kind: Type, value: Any) -> Any:
    """A value for a table."""
    return value if value is None or kind is not Type.JSON else json_line({"": value})[4:-2].decode()


def write_warc(file: IO[bytes], to: str, name: str, contents: Iterable[Content]) -> None:
    """Write an archive in the format `to`: a warcinfo record with its `name`, and records as they are.

    Each is in a member or frame of its own.
    """
    head = warcinfo(name, output_time().encode(), [])
    first = Content(0, 0, len(head), head)
    for _ in write_contents(chain((first,), contents), _packer(to.partition(".")[2]), file.write):
        pass


def as_warc(record: FullRecord, content: Content, name: str) -> Content:
    """The content of a record for a WARC file: as it is, or, if it is of an ARC file, with the header of a WARC record.

    `name` is that of the ARC file. Raises CallError if the record has no valid date.
    """
    if not record.is_arc:
        return content
    block = record.block
    is_http = block.startswith(b"HTTP/")
    payload = block[record.http.end :] if is_http else block
    named = record_id(name, record.offset, record.number)
    try:
        header = warc_header_of_arc(record.headers, is_http, len(block), named, base32(sha1(payload)))
    except ValueError as error:
        raise CallError(str(error)) from None
    data = header + block + END
    return Content(content.offset, content.length, len(data), data)


def as_text(record: FullRecord, content: Content, name: str, text: str) -> Content:
    """A WARC record with the `text` of a record, as in Common Crawl's WET files. `name` is that of the archive.

    A record that is a text of another one stays as it is. Raises CallError if the record has no valid date.
    """
    if record.kind == b"conversion":
        return content
    if not record.time:
        raise CallError("the record has no valid date, which a WARC record must have")
    block = text.encode("utf-8", "replace")
    of_arc = record_id(name, record.offset, record.number) if record.is_arc else b""  # that of as_warc
    language = THREE_LETTERS.get(detect_language(text).code, "").encode()
    fields = [
        (b"Target-URI", record.headers.get(b"warc-target-uri", b"").strip(b"<>")),
        (b"Date", warc_date(record.time.encode()) if record.is_arc else record.headers[b"warc-date"]),
        (b"Record-ID", record_id(name, record.offset, record.number, "text")),
        (b"Refers-To", of_arc or record.headers.get(b"warc-record-id", b"")),
        (b"Block-Digest", b"sha1:" + digest_of(block)),
        (b"Identified-Content-Language", record.header(b"warc-identified-content-language") or language),
    ]
    data = conversion_header([field for field in fields if field[1]], len(block)) + block + END
    return Content(content.offset, content.length, len(data), data)


def row_writer(to: str, file: IO[bytes], columns: Columns) -> _Lines | _Parquet:
    """The writer of a format, for rows with these columns. Its `write` raises CallError for a row that cannot be written; `close` leaves the file open."""
    return _Parquet(file, columns) if to == "parquet" else _Lines(file, to.partition(".")[2])


def check_format(to: str) -> None:
    """Raise UsageError if the library of a format is missing."""
    if to == "parquet":
        try:
            import_module("pyarrow")
        except ImportError:
            raise UsageError(f"pyarrow is not installed; {install_extra('parquet')}") from None
