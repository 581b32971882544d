"""The writers of a scan's rows: lines of JSON, or Parquet. For archives see archives.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from cdxmill.errors import StoppedError, UsageError
from cdxmill.stages.scan.columns import Columns, Type
from cdxmill.stages.scan.fields import Row, json_line
from cdxmill.version import install_extra

if TYPE_CHECKING:
    from cdxmill.stages.records.pack_contents import Packer

WARC, WET = ("warc.gz", "warc.zst"), ("wet.gz", "wet.zst")
"""Formats of records as they are, and of their texts."""
_LEVEL = 6
_ZST_LEVEL = 3
_HELD = 1 << 20
_BATCH, _BATCH_SIZE = 1000, 64 << 20
"""Rows, and bytes of JSON, that are added to a table at once."""


def packer(compression: str) -> Packer:
    """What compresses as gzip (gz) or Zstandard."""
    from cdxmill.stages.records.pack_contents import GzipPacker, ZstPacker  # slow to import

    return GzipPacker(_LEVEL) if compression == "gz" else ZstPacker(_ZST_LEVEL)


class _Lines:
    """Lines of JSON, compressed in pieces of some megabytes: one gzip member or zstd frame for each."""

    def __init__(self, file: IO[bytes], compression: str) -> None:
        self._file, self._lines, self._size, self._is_empty = file, list[bytes](), 0, True
        self._packer = packer(compression) if compression else None

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
