"""The index job as written since 2013: fetch an archive, run pywb's indexer, upload the CDX file.

python bench/classic_index_job.py -r hadoop --cdx hdfs:///cdx MANIFEST
"""

from __future__ import annotations

import gzip
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mrjob.job import MRJob
from mrjob.protocol import RawValueProtocol


class ClassicIndexJob(MRJob):  # type: ignore[misc]  # mrjob has no types
    INPUT_PROTOCOL = OUTPUT_PROTOCOL = RawValueProtocol
    HADOOP_INPUT_FORMAT = "org.apache.hadoop.mapred.lib.NLineInputFormat"

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--cdx", help="directory for the CDX files")

    def mapper(self, _: None, line: str) -> Iterator[tuple[None, str]]:
        from pywb.indexer.cdxindexer import write_cdx_index

        path = line.split("\t")[-1]
        name = path.rsplit("/", 1)[1]
        hadoop = f"{os.environ['HADOOP_HOME']}/bin/hadoop"
        with tempfile.TemporaryDirectory(dir=".") as directory:
            local, cdx = Path(directory) / name, Path(directory) / name.replace(".warc.gz", ".cdx.gz")
            subprocess.run([hadoop, "fs", "-get", path, str(local)], check=True)
            with local.open("rb") as archive, gzip.open(cdx, "wb", 6) as out:
                write_cdx_index(out, archive, name, sort=True, cdxj=True)
            subprocess.run([hadoop, "fs", "-put", "-f", str(cdx), self.options.cdx], check=True)
        yield None, path


if __name__ == "__main__":
    ClassicIndexJob.run()
