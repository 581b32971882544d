"""A cluster in HDFS is changed there, and gets the lines of one on a disk."""

from __future__ import annotations

import sys
from pathlib import Path

from .conftest import Hadoop
from .job_runs import Jobs, files_below

THERE = "hdfs:///changing/C"


def test_a_cluster_in_hdfs_is_changed_like_one_on_a_disk(
    hadoop: Hadoop, pywb_warcs: Path, tmp_path: Path
) -> None:
    here, new = tmp_path / "C", pywb_warcs / "example.warc.gz"
    hadoop.cdxmill("build", "-q", "-s", "3", "--numlines", "20", "-o", here, pywb_warcs / "iana.warc.gz")
    hadoop.cdxmill("publish", "-q", here, THERE)
    hadoop.fs("-put", new.as_uri(), "/changing/")
    for cluster, archive in ((here, new), (THERE, "hdfs:///changing/example.warc.gz")):
        assert b" added; " in hadoop.cdxmill("add", cluster, archive).stderr
        assert (
            b" removed; " in hadoop.cdxmill("remove", "--keep-old", "0", cluster, "iana.org/domains/*").stderr
        )
    assert hadoop.cdxmill("lookup", THERE, "*").stdout == hadoop.cdxmill("lookup", here, "*").stdout
    assert b"every byte was checked" in hadoop.cdxmill("verify", THERE).stderr


def test_a_job_and_the_local_engine_add_the_same_to_a_cluster_in_hdfs(
    hadoop: Hadoop, jobs: Jobs, pywb_warcs: Path, tmp_path: Path
) -> None:
    for name in ("iana.warc.gz", "example.warc.gz"):
        hadoop.cdxmill("build", "-q", "-s", "2", "-o", tmp_path / "built" / name, pywb_warcs / name)
        for place in (f"hdfs:///adding/{name}", tmp_path / f"here/{name}"):
            hadoop.cdxmill("publish", "-q", "--location", "/x", tmp_path / "built" / name, place)
    options = ["-q", "--python-bin", sys.executable, "--zipnum-dir", "/adding/iana.warc.gz"]
    done = jobs.run("addclusterjob", *options, "/adding/example.warc.gz")
    assert done.status == 0, done.stderr
    hadoop.cdxmill("add", tmp_path / "here/iana.warc.gz", "--cdx", tmp_path / "here/example.warc.gz")
    own = ("cdx-", "part-", "cluster.idx", "cluster.json")
    found = jobs.get("hdfs:///adding/iana.warc.gz", tmp_path)
    wanted = files_below(tmp_path / "here/iana.warc.gz")
    assert {name: data for name, data in found.items() if name.startswith(own)} == {
        name: data for name, data in wanted.items() if name.startswith(own)
    }
    assert any(name.endswith("-1.gz") for name in found)
    assert not [name for name in found if name.startswith((".run-", ".change"))]
