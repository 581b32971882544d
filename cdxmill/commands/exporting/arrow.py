"""Lines as Arrow record batches, with the columns of Common Crawl's columnar index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from cdxmill.errors import UsageError
from cdxmill.formats.lines.public_suffixes import PublicSuffixes
from cdxmill.formats.lines.url_parts import HostParts, split_host
from cdxmill.stages.lines.capture_columns import ColumnBuffers, LineColumns, text_column
from cdxmill.version import install_extra

HOST_COLUMNS = (
    "url_host_name",
    "url_host_tld",
    "url_host_2nd_last_part",
    "url_host_3rd_last_part",
    "url_host_4th_last_part",
    "url_host_5th_last_part",
    "url_host_registry_suffix",
    "url_host_registered_domain",
    "url_host_private_suffix",
    "url_host_private_domain",
    "url_host_name_reversed",
)
"""The columns of a host, in the order of HostParts."""
COLUMNS = (
    "url_surtkey",
    "url",
    *HOST_COLUMNS,
    "url_protocol",
    "url_port",
    "url_path",
    "url_query",
    "fetch_time",
    "fetch_status",
    "fetch_redirect",
    "content_digest",
    "content_mime_type",
    "content_mime_detected",
    "content_charset",
    "content_languages",
    "content_truncated",
    "warc_filename",
    "warc_record_offset",
    "warc_record_length",
    "warc_segment",
    "cdx_line",
    "crawl",
    "subset",
)
"""All columns. `cdx_line` is cdxmill's own: the line, if the table cannot have one of its values."""
SUFFIX_LIST = "public_suffix_list"
"""The key of the table's metadata that has the version of the public suffix list."""
BATCH, BATCH_BYTES = 1 << 16, 64 << 20
"""Lines, and their bytes, of a batch. With twice the lines, a table is 1 % smaller and takes 100 MiB more memory."""
_MOST_HOSTS = 50_000
"""Hosts that are remembered. Lines are sorted, so those of a host follow one another."""


def require() -> None:
    """Raise UsageError if a library is missing."""
    try:
        import publicsuffixlist  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed; {install_extra('parquet')}") from None


def suffix_list() -> str:
    """The package of the public suffix list, with its version."""
    return _version("publicsuffixlist")


def libraries() -> list[str]:
    """The libraries that the bytes of a table depend on, with their versions."""
    return [_version("pyarrow"), suffix_list()]


def _version(name: str) -> str:
    from importlib.metadata import version  # slow to import

    return f"{name} {version(name)}"


@cache
def _suffixes() -> PublicSuffixes:
    from publicsuffixlist import PSLFILE

    with Path(PSLFILE).open(encoding="utf-8") as file:
        return PublicSuffixes(file)


class _Hosts:
    """The parts of hosts, by the public suffix list of the package publicsuffixlist."""

    def __init__(self) -> None:
        self._suffixes = _suffixes()
        self._known: dict[str, HostParts] = {}

    def parts_of(self, host: str | None) -> HostParts:
        if host is None:
            return HostParts()
        found = self._known.get(host)
        if found is None:
            if len(self._known) >= _MOST_HOSTS:
                self._known.clear()
            found = self._known[host] = split_host(host, self._suffixes)
        return found


class ArrowTable:
    """Makes record batches. `columns` counts the values that are missing because a table cannot have them.

    With `encoded`, the columns of hosts are dictionaries, as Parquet stores them.
    """

    def __init__(self, encoded: bool = False) -> None:
        require()
        import pyarrow

        self._arrow, self._hosts = pyarrow, _Hosts()
        self.columns = LineColumns()
        self.schema = self._schema(encoded)

    def _schema(self, encoded: bool) -> Any:
        arrow = self._arrow
        text = arrow.string()
        host = arrow.dictionary(arrow.int32(), text) if encoded else text
        kinds = {
            **dict.fromkeys(HOST_COLUMNS, host),
            "url_port": arrow.int32(),
            "fetch_time": arrow.timestamp("ms", "UTC"),
            "fetch_status": arrow.int16(),
            "warc_record_offset": arrow.int64(),
            "warc_record_length": arrow.int64(),
            "cdx_line": arrow.binary(),
        }
        columns = [(name, kinds.get(name, text)) for name in COLUMNS]
        return arrow.schema(columns, {SUFFIX_LIST: suffix_list()})

    def batches(self, batches: Iterable[list[bytes]]) -> Iterator[Any]:
        """The record batch of each list of lines."""
        return map(self.batch, batches)

    def reader(self, batches: Iterable[list[bytes]]) -> Any:
        """A pyarrow.RecordBatchReader of the batches."""
        return self._arrow.RecordBatchReader.from_batches(self.schema, self.batches(batches))

    def batch(self, lines: list[bytes]) -> Any:
        """The record batch of some lines, of less than 2 GiB. Arrow casts what has another type than the schema."""
        made = self.columns.columns_of(lines)
        arrays = self._host_arrays(self._array(made["host"], len(lines), self._arrow.string()))
        for name in COLUMNS:
            if name not in arrays:
                arrays[name] = self._array(made[name], len(lines), self.schema.field(name).type)
        return self._arrow.RecordBatch.from_arrays([arrays[name] for name in COLUMNS], schema=self.schema)

    def _array(self, column: ColumnBuffers, rows: int, kind: Any) -> Any:
        """An array of texts of this kind, or of int64."""
        arrow = self._arrow
        buffers = [part and arrow.py_buffer(part) for part in (column.valid, column.offsets)]
        values = arrow.py_buffer(column.values)
        if column.offsets is not None:
            return arrow.Array.from_buffers(kind, rows, [*buffers, values])
        return arrow.Array.from_buffers(arrow.int64(), rows, [buffers[0], values])

    def _host_arrays(self, hosts: Any) -> dict[str, Any]:
        """The columns of hosts, as dictionaries: a host of several lines is split once."""
        found = hosts.dictionary_encode(null_encoding="encode")
        split = [self._hosts.parts_of(host) for host in found.dictionary.to_pylist()]
        arrays = {}
        for number, name in enumerate(HOST_COLUMNS):
            values = self._texts([parts[number] for parts in split])
            encoded = values.dictionary_encode()
            rows = encoded.indices.take(found.indices)
            arrays[name] = self._arrow.DictionaryArray.from_arrays(rows, encoded.dictionary)
        return arrays

    def _texts(self, texts: list[str | None]) -> Any:
        """An array of texts. `pyarrow.array` would import pandas, which takes as long as 25,000 lines."""
        column = text_column([None if text is None else text.encode() for text in texts])
        return self._array(column, len(texts), self._arrow.string())
