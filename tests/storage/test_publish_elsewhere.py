"""Clusters are published to S3 and HDFS, from there too, and looked up where they are."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.storage.location import join, locate

from ..conftest import RunCdxmill
from .name_node import NameNode, name_node
from .range_server import RangeServer

LINES = [b'com,host%d)/page/%04d 2020 {"url": "http://host%d.com/page/%d"}' % (n % 7, n, n % 7, n) for n in range(3000)]  # fmt: skip
PAGES = "http://host3.com/page/*"


@pytest.fixture
def cluster(run_cdxmill: RunCdxmill, tmp_path: Path) -> Path:
    """A cluster on this machine."""
    (tmp_path / "a.cdxj").write_bytes(b"".join(line + b"\n" for line in LINES))
    directory = tmp_path / "C"
    done = run_cdxmill("zipnum", "-q", "-s", "3", "--numlines", "100", "-o", directory, tmp_path / "a.cdxj")
    assert done.returncode == 0, done.stderr
    (directory / ".finished.json").unlink()  # it is not published
    return directory


@pytest.fixture
def bucket(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of moto, and a bucket that is empty."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="published")
    for item in client.list_objects_v2(Bucket="published").get("Contents", ()):
        client.delete_object(Bucket="published", Key=item["Key"])
    return client


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        yield running


def objects(client: Any) -> dict[str, bytes]:
    listed = client.list_objects_v2(Bucket="published").get("Contents", ())
    return {
        item["Key"]: client.get_object(Bucket="published", Key=item["Key"])["Body"].read() for item in listed
    }


def test_a_cluster_is_published_to_a_bucket(
    cluster: Path, bucket: Any, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = "s3://published/collections/CC-MAIN-2024-42/indexes"
    done = run_cdxmill("publish", "-p", "2", "--title", "October 2024 Index", cluster, f"{target}/")
    assert (done.returncode, done.stderr.endswith(b", 3 copied\n")) == (0, True)
    found = objects(bucket)
    key = "collections/CC-MAIN-2024-42"
    names = [f"cdx-{number:05d}.gz" for number in range(3)]
    expected = {f"{key}/indexes/{path.name}": path.read_bytes() for path in cluster.iterdir()}
    expected[f"{key}/metadata.yaml"] = b'title: "October 2024 Index"\n'
    expected[f"{key}/indexes/cluster.loc"] = "".join(f"{name}\t{target}/{name}\n" for name in names).encode()
    assert found == expected
    parts = b"".join(found[name] for name in sorted(found) if "/part-" in name)
    assert len(parts.splitlines()) == len(found[f"{key}/indexes/cluster.idx"].splitlines())
    text = b"".join(gzip.decompress(found[f"{key}/indexes/{name}"]) for name in names)
    assert text.splitlines() == sorted(LINES)

    assert run_cdxmill("publish", cluster, target).stderr.endswith(b", 0 copied\n")
    bucket.delete_object(Bucket="published", Key=f"{key}/indexes/cdx-00001.gz")
    assert run_cdxmill("lookup", target, PAGES).returncode == 1
    assert run_cdxmill("publish", cluster, target).stderr.endswith(b", 1 copied\n")
    assert objects(bucket) == expected
    wanted = [line for line in sorted(LINES) if line.startswith(b"com,host3)/")]
    assert run_cdxmill("lookup", target, PAGES).stdout.splitlines() == wanted


def test_a_cluster_goes_from_place_to_place(
    cluster: Path, bucket: Any, node: NameNode, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    wanted = run_cdxmill("lookup", cluster, PAGES).stdout
    assert wanted
    places = [str(cluster), "hdfs://namenode:9000/c/indexes", "s3a://published/c", str(tmp_path / "last")]
    for source, target in pairwise(places):
        done = run_cdxmill("publish", "-q", "-p", "2", source, target)
        assert (done.returncode, done.stderr) == (0, b"")
        assert run_cdxmill("lookup", target, PAGES).stdout == wanted
    for path in cluster.iterdir():
        if path.name != "cluster.loc":
            assert (tmp_path / "last" / path.name).read_bytes() == path.read_bytes()
    assert node.files["/c/metadata.yaml"].body == b'title: "c"\n'
    assert [name for name in node.files if name.endswith(".tmp")] == []


@pytest.mark.parametrize("place", ["hdfs://namenode:9000/c", "s3://published/c"])
def test_a_cluster_of_a_job_is_finished_where_it_lies(
    place: str, cluster: Path, bucket: Any, node: NameNode, run_cdxmill: RunCdxmill
) -> None:
    for path in cluster.iterdir():
        with locate(join(place, path.name)).write_atomic() as file:
            file.write(path.read_bytes())
    for name in ("cluster.idx", "cluster.summary", "cluster.loc", "cluster.json"):
        locate(join(place, name)).remove()
    assert run_cdxmill("publish", "-q", place, place).returncode == 2
    again = place.replace("s3:", "s3a:")
    assert run_cdxmill("publish", "-q", "--unfinished", place, f"{again}/").returncode == 0
    assert locate(join(place, "cluster.idx")).read_bytes() == (cluster / "cluster.idx").read_bytes()
    assert locate(place).entries().keys() == {path.name for path in cluster.iterdir()} - {"cluster.json"} | {
        "metadata.yaml"
    }
    assert run_cdxmill("lookup", place, PAGES).stdout == run_cdxmill("lookup", cluster, PAGES).stdout


@pytest.mark.parametrize("place", ["hdfs://namenode:9000/c", "s3://published/c"])
def test_a_cluster_is_replaced_when_the_new_one_is_complete(
    place: str, cluster: Path, bucket: Any, node: NameNode, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    """Until then, the old one can be read; what a stopped run has copied is not copied again."""
    lines = [line.replace(b"host6", b"host8") for line in LINES]
    (tmp_path / "b.cdxj").write_bytes(b"".join(line + b"\n" for line in lines))
    new = tmp_path / "new"
    words = ("--numlines", "100", "--splits", cluster / "splits.txt")
    assert run_cdxmill("zipnum", "-q", *words, "-o", new, tmp_path / "b.cdxj").returncode == 0
    assert run_cdxmill("publish", "-q", cluster, place).returncode == 0
    before = {name: locate(join(place, name)).read_bytes() for name in locate(place).entries()}
    shard = new / "cdx-00002.gz"
    kept = shard.read_bytes()
    shard.write_bytes(kept[:-1] + b"x")  # found while it is copied
    assert run_cdxmill("publish", "-q", cluster, place).returncode == 0
    assert run_cdxmill("publish", "-q", new, place).returncode == 2
    assert run_cdxmill("publish", "-q", "--replace", new, place).returncode == 1
    assert {name: locate(join(place, name)).read_bytes() for name in before} == before
    shard.write_bytes(kept)
    assert run_cdxmill("publish", "-q", "--replace", new, place).returncode == 0
    assert locate(join(place, ".new")).entries() == {}
    for path in new.iterdir():
        if path.name not in ("cluster.loc", ".finished.json"):
            assert locate(join(place, path.name)).read_bytes() == path.read_bytes()
    assert locate(place).entries().keys() == before.keys()
    assert run_cdxmill("verify", "-q", place).returncode == 0


@pytest.mark.parametrize("place", ["hdfs://namenode:9000/c", "s3://published/c"])
def test_a_cluster_is_verified_where_it_lies(
    place: str, cluster: Path, bucket: Any, node: NameNode, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    assert run_cdxmill("publish", "-q", cluster, place).returncode == 0
    done = run_cdxmill("verify", "-p", "2", place, "--against", tmp_path / "a.cdxj")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"3000 lines in " in done.stderr
    assert done.stderr.endswith(b"every byte was checked, lines compared with the inputs\n")
    split = ("split-points", "-q", "-s", "2", "--from-cluster")
    assert run_cdxmill(*split, place, "-o", tmp_path / "there.txt").returncode == 0
    assert run_cdxmill(*split, cluster, "-o", tmp_path / "here.txt").returncode == 0
    assert (tmp_path / "there.txt").read_bytes() == (tmp_path / "here.txt").read_bytes() != b""

    shard = locate(join(place, "cdx-00001.gz")).read_bytes()
    with locate(join(place, "cdx-00001.gz")).write_atomic() as file:
        file.write(shard[:30] + bytes((shard[30] ^ 1,)) + shard[31:])
    locate(join(place, "cdx-00002.gz")).remove()
    done = run_cdxmill("verify", "-q", place)
    assert done.returncode == 1
    assert f"{place}/cdx-00001.gz@0: block 1: ".encode() in done.stderr
    assert f"{place}/cdx-00002.gz: ".encode() in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_cluster_is_looked_up_on_a_web_server(
    cluster: Path, server: RangeServer, run_cdxmill: RunCdxmill, knows_ranges: bool
) -> None:
    wanted = run_cdxmill("lookup", cluster, PAGES).stdout
    for path in cluster.iterdir():
        if path.name not in ("cluster.loc", "cluster.summary"):
            server.add(f"/c/{path.name}", path.read_bytes()).knows_ranges = knows_ranges
    assert run_cdxmill("lookup", f"{server.url}/c/", PAGES).stdout == wanted
    done = run_cdxmill("lookup", f"{server.url}/none", PAGES)
    assert done.returncode == 2
    assert b"not a ZipNum cluster (no cluster.idx or cluster.summary)" in done.stderr
    for file in server.files.values():
        file.tells_length = file.tells_total = file.knows_ranges = False
    done = run_cdxmill("lookup", f"{server.url}/c", PAGES)
    assert (done.returncode, b"the server does not report the file size" in done.stderr) == (1, True)
