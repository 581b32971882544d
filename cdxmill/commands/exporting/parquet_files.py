"""A table as Parquet files, as Common Crawl publishes its columnar index: the files that one range of keys gives."""

from __future__ import annotations

import io
from contextlib import ExitStack, suppress
from typing import Any

from cdxmill.commands.exporting.arrow import COLUMNS, ArrowTable
from cdxmill.errors import UsageError
from cdxmill.options.exports import Exporting
from cdxmill.storage.location import Location

LEVEL = 3
"""zstd -9 takes 2 % fewer bytes and three times the time."""
_PARTITIONS = ("crawl", "subset")
_MOST_PARTITIONS = 100
_NONE = "__HIVE_DEFAULT_PARTITION__"
"""The name of a partition of rows without a value, in Hive and all that read its directories."""
_DISTINCT = (
    "url_surtkey",
    "url",
    "url_path",
    "content_digest",
    "warc_filename",
    "url_query",
    "fetch_redirect",
    "cdx_line",
)
"""Columns whose values are too many for a dictionary: it saves nothing there."""
_SORTED = dict.fromkeys(("url_surtkey", "url", "url_path"), "DELTA_BYTE_ARRAY")
"""Columns whose values start as those before them: 5 % fewer bytes."""
_MAGIC, _END = b"PAR1", 8
"""A file begins with the one. Its last bytes are the length of the footer, and this again."""


class _Files:
    """Writes the batches of one partition to files of at most `most` rows, one row group for each batch."""

    def __init__(self, directory: Location, number: int, columns: list[str], schema: Any, most: int) -> None:
        self._directory, self._number, self._columns, self._most = directory, number, columns, most
        self._schema = schema
        self._writer: Any = None
        self._open = ExitStack()
        self.written: list[Location] = []

    def write(self, batch: Any) -> None:
        if self._writer is not None and self._rows + batch.num_rows > self._most:
            self.close()
        if self._writer is None:
            self.open()
        self._writer.write_batch(batch.select(self._columns))
        self._rows += batch.num_rows

    def open(self) -> None:
        import pyarrow.parquet

        place = self._directory / f"part-{self._number:05d}.c{len(self.written):03d}.zstd.parquet"
        self.written.append(place)
        self._rows = 0
        self._writer = pyarrow.parquet.ParquetWriter(
            self._open.enter_context(place.write_atomic()),  # Arrow opens no path that is not UTF-8
            self._schema,
            compression="zstd",
            compression_level=LEVEL,
            use_dictionary=[name for name in self._columns if name not in _DISTINCT],
            column_encoding=_SORTED,
            store_schema=False,  # it would show dictionaries for the columns of hosts
        )

    def close(self) -> None:
        """Finish the file that is open."""
        if self._writer is not None:
            self._writer.add_key_value_metadata(self._schema.metadata)
            self._writer.close()
            self._writer = None
            self._open.close()

    def end(self, kind: type[BaseException] | None, *error: Any) -> None:
        """Finish the file that is open, or delete it if there was an error."""
        if kind is None:
            with self._open:  # if it cannot be finished, it is deleted
                self.close()
        with suppress(Exception):
            if self._writer is not None:
                self._writer.close()
        self._open.__exit__(kind, *error)


class PartWriter:
    """Writes batches to a directory, or to one directory for each crawl and subset. `number` is in the names of the files.

    Use it as a context manager: an error discards the files that are not complete.
    """

    def __init__(self, directory: Location, number: int, table: ArrowTable, asked: Exporting) -> None:
        self._directory, self._number, self._asked = directory, number, asked
        self._columns = [name for name in COLUMNS if not (asked.partition and name in _PARTITIONS)]
        self._schema = _subset(table.schema, self._columns)
        self._files: dict[tuple[str | None, ...], _Files] = {}
        self._closing = ExitStack()

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self._closing.__exit__(*error)

    @property
    def written(self) -> list[Location]:
        """The files."""
        return [file for files in self._files.values() for file in files.written]

    def write_none(self) -> None:
        """Write a file without rows."""
        self._part((None, None) if self._asked.partition else ()).open()

    def write(self, batch: Any) -> None:
        """Write a batch."""
        if not self._asked.partition:
            self._part(()).write(batch)
            return
        import pyarrow.compute as compute

        names = [batch.column(name).dictionary_encode(null_encoding="encode") for name in _PARTITIONS]
        crawls, subsets = (found.dictionary.to_pylist() for found in names)
        for one, crawl in enumerate(crawls):
            for other, subset in enumerate(subsets):
                chosen = compute.and_(
                    compute.equal(names[0].indices, one), compute.equal(names[1].indices, other)
                )
                rows = batch.filter(chosen)
                if rows.num_rows:
                    self._part((crawl, subset)).write(rows)

    def _part(self, values: tuple[str | None, ...]) -> _Files:
        found = self._files.get(values)
        if found is None:
            if len(self._files) == _MOST_PARTITIONS:
                raise UsageError(
                    f"--partition: more than {_MOST_PARTITIONS} crawls and subsets; export without it"
                )
            directory = self._directory
            for name, value in zip(_PARTITIONS, values, strict=False):
                directory /= f"{name}={_partition(value)}"
            found = self._files[values] = _Files(
                directory, self._number, self._columns, self._schema, self._asked.file_lines
            )
            self._closing.push(found.end)
        return found


def _subset(schema: Any, columns: list[str]) -> Any:
    import pyarrow

    return pyarrow.schema([schema.field(name) for name in columns], schema.metadata)


def _partition(value: str | None) -> str:
    """The value in the name of a directory, escaped as Hive does."""
    from urllib.parse import quote

    return (
        _NONE
        if value is None
        else quote(value, safe=" ").replace(".", "%2E" if value in (".", "..") else ".")
    )


def count_rows(file: Location) -> int:
    """The rows of a Parquet file, as its end says."""
    import pyarrow.parquet

    size = file.size()
    with file.open_ranges() as read_at:
        footer = int.from_bytes(read_at(size - _END, 4), "little") + _END
        end = read_at(size - footer, footer)
    return int(pyarrow.parquet.read_metadata(io.BytesIO(_MAGIC + end)).num_rows)
