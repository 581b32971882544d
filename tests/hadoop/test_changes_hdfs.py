"""A cluster in HDFS is changed there, and gets the lines of one on a disk."""

from __future__ import annotations

from pathlib import Path

from .conftest import Hadoop
from .test_storage_hdfs import Run, cdxmill

__all__ = ["cdxmill"]

THERE = "hdfs:///changing/C"


def test_a_cluster_in_hdfs_is_changed_like_one_on_a_disk(
    hadoop: Hadoop, cdxmill: Run, pywb_warcs: Path, tmp_path: Path
) -> None:
    here, new = tmp_path / "C", pywb_warcs / "example.warc.gz"
    cdxmill("build", "-q", "-s", "3", "--numlines", "20", "-o", here, pywb_warcs / "iana.warc.gz")
    cdxmill("publish", "-q", here, THERE)
    hadoop.fs("-put", new.as_uri(), "/changing/")
    for cluster, archive in ((here, new), (THERE, "hdfs:///changing/example.warc.gz")):
        assert b" added; " in cdxmill("add", cluster, archive).stderr
        assert b" removed; " in cdxmill("remove", "--keep-old", "0", cluster, "iana.org/domains/*").stderr
    assert cdxmill("lookup", THERE, "*").stdout == cdxmill("lookup", here, "*").stdout
    assert b"every byte was checked" in cdxmill("verify", THERE).stderr
