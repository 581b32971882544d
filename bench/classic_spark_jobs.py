"""The jobs of webarchive-indexing on Spark, as they have been since 2024: every line is a pair of Python strings.

    python bench/classic_spark_jobs.py zipnum OUT BOUNDARIES CDX...
    python bench/classic_spark_jobs.py index OUT ARCHIVE...

cdxmill is compared with these jobs, so they must not be slower than necessary.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

LINES = 3000
Key = tuple[str, str]


def parse_line(line: str) -> tuple[Key, str] | None:
    parts = line.split(" ", 2)
    return ((parts[0], parts[1]), parts[2]) if len(parts) == 3 else None


def write_shard(number: int, pairs: Iterator[tuple[Key, str]], out: str) -> Iterator[tuple[Any, ...]]:
    name, offset, lines = f"cdx-{number:05d}.gz", 0, list[str]()
    with (Path(out) / name).open("wb") as shard:

        def write_block() -> tuple[Any, ...]:
            deflater = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS + 16)
            block = deflater.compress("".join(lines).encode()) + deflater.flush()
            shard.write(block)
            return " ".join(lines[0].split(" ", 2)[:2]), name, offset, len(block)

        for (key, timestamp), rest in pairs:
            lines.append(f"{key} {timestamp} {rest}\n")
            if len(lines) == LINES:
                entry = write_block()
                yield entry
                offset, lines = offset + entry[3], []
        if lines:
            yield write_block()


def zipnum(context: Any, out: str, boundaries: str, files: Sequence[str]) -> None:
    bounds = [tuple(row) for row in json.loads(Path(boundaries).read_text())]
    pairs = context.textFile(",".join(files)).map(parse_line).filter(lambda pair: pair is not None)
    written = (
        pairs.repartitionAndSortWithinPartitions(
            numPartitions=len(bounds) + 1, partitionFunc=lambda key: bisect_left(bounds, key)
        )
        .mapPartitionsWithIndex(lambda number, found: write_shard(number, found, out))
        .collect()
    )
    rows = ("\t".join(map(str, (*entry, number))) for number, entry in enumerate(written, 1))
    (Path(out) / "cluster.idx").write_text("\n".join(rows) + "\n")


def index_one(path: str, out: str) -> str:
    from pywb.indexer.cdxindexer import write_cdx_index

    name = Path(path).name
    with open(path, "rb") as archive, gzip.open(f"{out}/{name[:-8]}.cdx.gz", "wb", 6) as cdx:  # noqa: PTH123
        write_cdx_index(cdx, archive, name, surt_ordered=True, sort=True, cdxj=True)
    return name


def main() -> None:
    from pyspark import SparkConf, SparkContext

    os.environ["PYSPARK_PYTHON"] = sys.executable
    job, out, *rest = sys.argv[1:]
    conf = SparkConf().setMaster("local[2]").set("spark.driver.memory", "6g").set("spark.ui.enabled", "false")
    context = SparkContext(conf=conf.set("spark.executorEnv.PYTHONWARNINGS", "ignore"))
    if job == "zipnum":
        zipnum(context, out, rest[0], rest[1:])
    else:
        context.parallelize(rest, len(rest)).map(lambda path: index_one(path, out)).collect()
    context.stop()


if __name__ == "__main__":
    main()
