"""The counts of classic_count_job.py in a PySpark job with the steps of cc-pyspark, on local Spark.

    python bench/classic_count_spark.py WHAT OUT LIST      OUT: a directory for Parquet files

As there: `textFile` reads the list, each partition iterates over the records of its archives, and accumulators count
them; the pairs of each record go to `reduceByKey`, and the result becomes a data frame, which is written as Parquet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


class CountJob:
    """`processed` is an accumulator. Spark sends the object to its Python processes."""

    def __init__(self, what: str, processed: Any) -> None:
        self.what, self.processed = what, processed

    def process_warcs(self, _id: int, uris: Iterable[str]) -> Iterator[tuple[str, int]]:
        from warcio.archiveiterator import ArchiveIterator

        for uri in uris:
            with Path(uri).open("rb") as stream:
                yield from self.iterate_records(ArchiveIterator(stream, arc2warc=True))

    def iterate_records(self, records: Iterable[Any]) -> Iterator[tuple[str, int]]:
        from bench.classic_count_job import COUNTS

        process_record = COUNTS[self.what]
        for record in records:
            yield from process_record(record)
            self.processed.add(1)


def main() -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    what, out, names = sys.argv[1:]
    root = str(Path(__file__).resolve().parent.parent)
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=root)
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    job = CountJob(what, session.sparkContext.accumulator(0))
    archives = session.sparkContext.textFile(names)
    counts = archives.mapPartitionsWithIndex(job.process_warcs).reduceByKey(lambda a, b: a + b)
    schema = StructType([StructField("key", StringType()), StructField("val", LongType())])
    session.createDataFrame(counts, schema).coalesce(1).write.parquet(out, compression="gzip")
    print(f"{job.processed.value} records", file=sys.stderr)
    session.stop()


if __name__ == "__main__":
    main()
