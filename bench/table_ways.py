"""Other ways to make Parquet of the lines of a shard.

python -m bench.table_ways inflate|naive|duckdb|polars SHARD [OUTPUT]
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LINES = 1 << 16
LEVEL = 3
FIELDS = (
    "url",
    "mime",
    "mime-detected",
    "status",
    "digest",
    "length",
    "offset",
    "filename",
    "charset",
    "languages",
)


def inflate(shard: Path, _: Path) -> None:
    from isal import igzip

    with igzip.open(shard) as file:  # type: ignore[no-untyped-call]
        while file.read(1 << 20):
            pass


def _row(line: bytes) -> dict[str, Any]:
    key, time, rest = line.split(b" ", 2)
    fields = json.loads(rest)
    url = urlsplit(fields["url"])
    parts = {
        "key": key.decode(),
        "time": time.decode(),
        "host": url.hostname,
        "path": url.path,
        "query": url.query,
    }
    return parts | {name: fields.get(name) for name in FIELDS}


def naive(shard: Path, output: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, "string") for name in ("key", "time", "host", "path", "query", *FIELDS)])
    with (
        gzip.open(shard) as file,
        pyarrow.parquet.ParquetWriter(output, schema, compression="zstd", compression_level=LEVEL) as writer,
    ):
        while lines := list(islice(file, LINES)):
            writer.write_table(pyarrow.Table.from_pylist(list(map(_row, lines)), schema))


def duckdb(shard: Path, output: Path) -> None:
    import duckdb as library

    lines = f"read_csv('{shard}', delim='\\x01', quote='', escape='', header=false, columns={{'l': 'VARCHAR'}}, compression='gzip')"
    columns = ", ".join(f'j->>\'$."{name}"\' AS "{name}"' for name in FIELDS)
    rest = "l[length(split_part(l, ' ', 1)) + length(split_part(l, ' ', 2)) + 3:]"
    parts = f"SELECT split_part(l, ' ', 1) AS key, split_part(l, ' ', 2) AS time, ({rest})::JSON AS j FROM {lines}"
    with library.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute(
            f"COPY (SELECT key, time, {columns} FROM ({parts})) TO '{output}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {LEVEL})"
        )


def polars(shard: Path, output: Path) -> None:
    import polars as library

    with gzip.open(shard) as file:
        frame = library.DataFrame({"l": file.read().decode().splitlines()})
    parts = frame.select(
        library.col("l").str.splitn(" ", 3).struct.rename_fields(["key", "time", "j"])
    ).unnest("l")
    kind = library.Struct(dict.fromkeys(FIELDS, library.String))
    table = parts.with_columns(library.col("j").str.json_decode(kind)).unnest("j")
    table.write_parquet(output, compression="zstd", compression_level=LEVEL)


WAYS: dict[str, Callable[[Path, Path], None]] = {
    "inflate": inflate,
    "naive": naive,
    "duckdb": duckdb,
    "polars": polars,
}

if __name__ == "__main__":
    WAYS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[-1]))
