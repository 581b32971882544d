"""Archives that lie all over the test cluster, and their indexes by the job and by `cdxmill index`."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import NamedTuple

from ..material.wacz_files import make_wacz
from .job_runs import BUCKET, HDFS, Ended, Jobs

ROOT = f"{HDFS}/archives"
INDEX = f"{HDFS}/index"
S3_INDEX = f"s3://{BUCKET}/index"
S3_SETTINGS = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9878",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""What tasks have to be told: they have nothing of the launcher's environment."""

ON_NODES = [
    *("--python-bin", sys.executable, "--warcs-per-map", "5"),
    *(word for pair in S3_SETTINGS.items() for word in ("--cmdenv", "=".join(pair))),
]
"""Whole environments on the nodes, five archives a mapper, S3 where the tests have it."""
TOGETHER = ("--warcs-per-map", "20")
"""Later on a command line: one mapper, for jobs that do not have to show how archives are divided."""
INDEX_HERE = [*ON_NODES, "--warc_bucket", ROOT, "--cdx_bucket", "/index"]

OF_HDFS = {
    "crawl-data/CC-1/example.warc.gz": "example.warc.gz",
    "crawl-data/CC-1/iana.warc.gz": "iana.warc.gz",
    "plain/example-extra.warc": "example-extra.warc",
}
OF_S3 = {"crawl-data/CC-2/example.arc.gz": "example.arc.gz", "more/dupes.warc.gz": "dupes.warc.gz"}
OF_S3_INDEXES = ("cc-index/cdx/CC-2/example.cdx.gz", "more/dupes.cdx.gz")
NOTED = "plain/noted.warc"
"""It has a record of a type that no standard knows."""
OF_WACZ = "plain/good.wacz"
"""It has two archives. The tasks open it, and find that BAD_WACZ is none."""
BAD_WACZ = "plain/bad.wacz"
BAD = ("plain/absent.warc.gz", "plain/broken.warc.gz", "plain/cut.warc.gz")


class Indexed(NamedTuple):
    """How the index job ended, and what `cdxmill index` makes of the same manifest, by name of output."""

    job: Ended
    manifest: Path
    root: Path
    expected: dict[str, bytes]


def index_all(jobs: Jobs, pywb_warcs: Path, directory: Path) -> Indexed:
    """Archives in HDFS, S3 by both names, on disk and behind http; and three that are no good."""
    lay_out(jobs, pywb_warcs, directory / "archives")
    (directory / "on disk.warc.gz").write_bytes((pywb_warcs / "post-test.warc.gz").read_bytes())
    manifest = directory / "warc.paths"
    rows = [
        *OF_HDFS,
        *(f"{scheme}://{BUCKET}/{key}" for scheme, key in zip(("s3a", "s3"), OF_S3, strict=True)),
        (directory / "on disk.warc.gz").as_uri(),
        f"{S3_SETTINGS['AWS_ENDPOINT_URL']}/{BUCKET}/more/dupes.warc.gz",
        NOTED,
        OF_WACZ,
        BAD_WACZ,
        *BAD,
    ]
    manifest.write_text("".join(f"{row}\n" for row in rows))
    jobs.cdxmill("index", "-q", "-o", directory / "here", "--manifest", manifest, "--root", ROOT, check=False)
    expected = {
        str(path.relative_to(directory / "here")).replace("crawl-data/", "cc-index/cdx/"): path.read_bytes()
        for path in (directory / "here").rglob("*.cdx.gz")
    }
    job = jobs.run("indexwarcsjob", *INDEX_HERE, manifest)
    return Indexed(job, manifest, directory / "archives", expected)


def lay_out(jobs: Jobs, pywb_warcs: Path, directory: Path) -> None:
    """All archives below `folder` as their names are in index lines, and in HDFS and S3."""
    for name, source in (*OF_HDFS.items(), *OF_S3.items()):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes((pywb_warcs / source).read_bytes())
    extra = (pywb_warcs / "example-extra.warc").read_bytes()
    (directory / NOTED).write_bytes(extra.replace(b"WARC-Type: response", b"WARC-Type: rezponse", 1))
    whole = (pywb_warcs / "example.warc.gz").read_bytes()
    (directory / "plain/cut.warc.gz").write_bytes(whole[:2000])
    (directory / "plain/broken.warc.gz").write_bytes(gzip.compress(b"no archive " * 99))
    (directory / OF_WACZ).write_bytes(make_wacz({"archive/a.warc.gz": whole, "archive/b.warc": extra}))
    (directory / BAD_WACZ).write_bytes(b"PK")
    jobs.fs("-put", directory.as_uri(), ROOT)
    jobs.upload({key: directory / key for key in OF_S3})
