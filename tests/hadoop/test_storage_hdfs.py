"""HDFS as it is: the storage keeps its contract there, and commands read from it and write to it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ..storage.contract import BODY
from .conftest import Hadoop

HDFS = "hdfs://127.0.0.1:9000"
PAGES = "http://example.com/*"


def test_hdfs_keeps_the_contract_of_storages(hadoop: Hadoop, tmp_path: Path) -> None:
    (tmp_path / "put by hadoop").write_bytes(BODY)
    hadoop.fs("-mkdir", "-p", f"{HDFS}/storage")
    hadoop.fs("-put", (tmp_path / "put by hadoop").as_uri(), f"{HDFS}/storage/")
    checks = Path(__file__).with_name("hdfs_checks.py")
    hadoop.run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", checks)
    assert hadoop.fs("-cat", f"{HDFS}/storage/changing") == BODY


@pytest.fixture
def archives(pywb_warcs: Path, tmp_path: Path) -> Path:
    """A folder with archives, of which one is cut."""
    directory = tmp_path / "kept/below"
    directory.mkdir(parents=True)
    for name in ("example.warc.gz", "iana.warc.gz", "example2.warc.gz"):
        (directory / name).write_bytes((pywb_warcs / name).read_bytes())
    (directory / "cut.warc.gz").write_bytes((pywb_warcs / "example.warc.gz").read_bytes()[:2000])
    return directory.parent


def index_in_hdfs(hadoop: Hadoop, archives: Path) -> None:
    """From /kept to /cdx, twice: only the damaged archive is indexed again."""
    hadoop.fs("-put", archives.as_uri(), "/")
    index = ("index", "-p", "2", "--update", "-o", "hdfs:///cdx", "hdfs:///kept")
    done = hadoop.cdxmill(*index, check=False)
    assert done.returncode == 1
    assert b"cut.warc.gz@1864: the file is truncated inside a gzip member" in done.stderr
    done = hadoop.cdxmill(*index, check=False)
    assert done.returncode == 1
    assert b"3 skipped" in done.stderr
    listed = hadoop.fs("-ls", "-C", "/cdx/below").split()
    names = ("_cut.cdx.gz.failures", "cut.cdx.gz", "example.cdx.gz", "example2.cdx.gz", "iana.cdx.gz")
    assert listed == [f"/cdx/below/{name}".encode() for name in names]


def test_archives_in_hdfs_become_a_cluster_in_hdfs(hadoop: Hadoop, archives: Path, tmp_path: Path) -> None:
    index_in_hdfs(hadoop, archives)
    here, built = tmp_path / "here", tmp_path / "built"
    hadoop.cdxmill("index", "-q", "-o", here / "cdx", archives, check=False)
    hadoop.cdxmill("zipnum", "-q", "-s", "3", "-o", here / "C", here / "cdx")
    hadoop.cdxmill("zipnum", "-q", "-s", "3", "-o", built, "hdfs:///cdx/below/*.cdx.gz")
    own = ("cluster.loc", ".finished.json")  # have the places and the inputs of their run
    files = {path.name: path.read_bytes() for path in (here / "C").iterdir() if path.name not in own}
    assert {path.name: path.read_bytes() for path in built.iterdir() if path.name not in own} == files

    target = f"{HDFS}/collections/web/indexes"
    for copied in (3, 0):
        assert hadoop.cdxmill("publish", built, target).stderr.endswith(f", {copied} copied\n".encode())
    assert hadoop.fs("-cat", "/collections/web/metadata.yaml") == b'title: "web"\n'
    hadoop.fs("-get", f"{target}/*", tmp_path.as_uri())
    assert {name: (tmp_path / name).read_bytes() for name in files} == files
    wanted = hadoop.cdxmill("lookup", here / "C", PAGES).stdout
    assert wanted
    assert hadoop.cdxmill("lookup", target, PAGES).stdout == wanted
    verified = hadoop.cdxmill("verify", target, "--against", "hdfs:///cdx/below/*.cdx.gz")
    assert verified.stderr.endswith(b"every byte was checked, lines compared with the inputs\n")
    hadoop.fs("-rm", f"{target}/cdx-00001.gz")
    assert f"{target}/cdx-00001.gz: ".encode() in hadoop.cdxmill("verify", "-q", target, check=False).stderr
