"""The ZipNum job as written since 2013: one line at a time through mapper, sort and reducer.

    python bench/classic_zipnum_job.py -r local --num-cores 2 --cluster DIR --output-dir DIR CDX...

`cdxmill zipnum` is compared with this job, so it must not be slower than necessary.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from mrjob.job import MRJob
from mrjob.protocol import RawProtocol, RawValueProtocol

LINES = 3000


class ClassicZipNumJob(MRJob):  # type: ignore[misc]  # mrjob has no types
    INPUT_PROTOCOL = RawValueProtocol
    INTERNAL_PROTOCOL = RawProtocol
    OUTPUT_PROTOCOL = RawValueProtocol

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--cluster", help="directory for the shards")

    def mapper(self, _: None, line: str) -> Iterator[tuple[str, str]]:
        line = line.split("\t")[-1]
        if not line.startswith(" CDX"):
            yield line, ""

    def reducer_init(self) -> None:
        self.lines: list[str] = []
        self.offset = 0
        part = int(os.environ["mapreduce_task_partition"])  # noqa: SIM112 (Hadoop's spelling)
        self.name = f"cdx-{part:05d}.gz"
        self.shard = (Path(self.options.cluster) / self.name).open("wb")

    def reducer(self, line: str, _values: Iterator[str]) -> Iterator[tuple[None, str]]:
        self.lines.append(line)
        if len(self.lines) == LINES:
            yield None, self.write_block()

    def reducer_final(self) -> Iterator[tuple[None, str]]:
        if self.lines:
            yield None, self.write_block()
        self.shard.close()

    def write_block(self) -> str:
        """Write the lines as one gzip member and return its index line."""
        deflater = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS + 16)
        block = deflater.compress(("\n".join(self.lines) + "\n").encode()) + deflater.flush()
        self.shard.write(block)
        key = " ".join(self.lines[0].split(" ", 2)[:2])
        part_line = f"{key}\t{self.name}\t{self.offset}\t{len(block)}"
        self.offset += len(block)
        self.lines = []
        return part_line


if __name__ == "__main__":
    ClassicZipNumJob.run()
