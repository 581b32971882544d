"""A remote cluster's cluster.loc leads only to remote places."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.cluster import find
from cdxmill.commands.clusters.split_points import points_of_cluster
from cdxmill.errors import InputError
from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup
from cdxmill.storage import hosts
from cdxmill.storage.location import Location
from cdxmill.storage.reach import Reach

from ..storage.range_server import serving
from .conftest import ALL, Remote

WANTED = [line for line in ALL if line.startswith(b"com,")]


def relocate(remote: Remote, directory: Path, place: str) -> None:
    """Remove the shards beside the index; cluster.loc says that they are below `place`."""
    rows = []
    for shard in sorted(directory.glob("cdx-*.gz")):
        del remote.server.files[f"/c/{shard.name}"]
        rows.append(f"{shard.name}\t{place}/{shard.name}\n")
    remote.server.add("/c/cluster.loc", "".join(rows).encode())


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_remote_cluster_does_not_lead_to_local_files(remote: Remote, directory: Path, scheme: str) -> None:
    relocate(remote, directory, f"{scheme}{directory}")
    with pytest.raises(InputError) as caught:
        list(lookup(remote.url, "*.com"))
    assert caught.value.reason == "cannot be read (404 Not Found)"
    assert caught.value.hint == (
        f"cluster.loc names {scheme}{directory}/cdx-00000.gz, which is a local path, and the cluster is remote;"
        " if you trust it, search with cdxmill lookup --shard-index-loc"
    )
    assert list(lookup(remote.url, "*.com", Query(shard_index_loc=("^.*", f"{directory}/")))) == WANTED


@pytest.mark.parametrize("place", ["http://169.254.169.254/c", "http://[fe80::1]/c"])
def test_no_cluster_leads_to_a_link_local_address(remote: Remote, directory: Path, place: str) -> None:
    for shard in directory.glob("cdx-*.gz"):
        (directory / "cluster.loc").write_text(f"{shard.name}\t{place}/{shard.name}\n")
    relocate(remote, directory, place)
    for shard in sorted(directory.glob("cdx-*.gz")):
        shard.unlink()
    for cluster in (remote.url, directory):
        with pytest.raises(InputError):
            list(lookup(cluster, "*.com"))


def test_a_remote_cluster_causes_no_request_with_the_keys_of_the_user(
    remote: Remote, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relocate(remote, directory, "s3://bucket/c")
    with serving() as s3:
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "secret")
        with pytest.raises(InputError) as caught:
            list(lookup(remote.url, "*.com"))
        assert "which is in another S3 bucket than the cluster, and requests to S3 have" in caught.value.hint
        assert s3.seen == []
        with pytest.raises(InputError):
            list(lookup(remote.url, "*.com", Query(shard_index_loc=("^.*", "s3://bucket/c/"))))
        assert s3.seen[0][:2] == ("HEAD", "/bucket/c/cdx-00000.gz")


def test_a_public_cluster_does_not_lead_to_internal_addresses(
    remote: Remote, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shard in directory.glob("cdx-*.gz"):
        remote.server.add(f"/there/{shard.name}", shard.read_bytes())
    relocate(remote, directory, remote.url.removesuffix("/c") + "/there")
    assert list(lookup(remote.url, "*.com")) == WANTED
    monkeypatch.setattr(Location, "content_reach", lambda directory: Reach.PUBLIC)
    remote.reads()
    with pytest.raises(InputError):
        list(lookup(remote.url, "*.com"))
    assert not any("/there/" in path for _, path, _ in remote.server.seen)
    assert (
        find.why_refused(Location(remote.url), "hdfs://namenode/c") == "is in HDFS, and the cluster is public"
    )


def test_verify_reports_local_paths_of_a_remote_cluster(
    remote: Remote, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    remote.server.add("/c/cluster.loc", (directory / "cluster.loc").read_bytes())
    remote.server.add("/c/cluster.json", (directory / "cluster.json").read_bytes())
    assert main(["verify", "-q", remote.url]) == 1
    assert "is a local path, and the cluster is remote" in capfd.readouterr().err


def test_a_manifest_that_cannot_be_read_is_not_taken_as_absent(remote: Remote, directory: Path) -> None:
    absent = points_of_cluster(remote.url, 2)
    manifest = remote.server.add("/c/cluster.json", (directory / "cluster.json").read_bytes())
    assert points_of_cluster(remote.url, 2).blocks == absent.blocks
    manifest.statuses = [503] * 99
    with pytest.raises(InputError, match=r"cluster\.json: did not answer \(503\)"):
        points_of_cluster(remote.url, 2)
    manifest.statuses = [403]
    hosts.begin_run()  # on a busy machine, the tries took so long that the server was given up
    assert points_of_cluster(remote.url, 2) == absent
