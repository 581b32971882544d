"""The index of a cluster is found under any of its names, and its absence is reported for what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.cli.main import main
from cdxmill.cluster.find import (
    BASE,
    COLLINFO,
    Crawl,
    Directory,
    archives_of_crawls,
    check_rule,
    crawls_like,
    find_directory,
    find_index,
    index_of_crawl,
    is_switched,
    list_url,
    local_directory,
    no_crawl,
    resolved,
    shard_locations,
    why_refused,
)
from cdxmill.cluster.reader import open_cluster
from cdxmill.errors import InputError, RefusedError, UsageError
from cdxmill.storage import s3
from cdxmill.storage.location import _OWN_S3, Location, locate
from cdxmill.storage.reach import Reach, reach_of

from ..storage.range_server import RangeServer, serving

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with serving() as running:
        yield running


@pytest.fixture
def bucket(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    """A server whose files are also the objects of s3:// URLs."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    s3._client.cache_clear()
    yield server
    s3._client.cache_clear()


def refuse(server: RangeServer, *names: str) -> None:
    """Answer 403 for missing objects, as S3 does without the right to list."""
    for name in names:
        server.add(f"/b/C/{name}", b"").statuses = [403] * 9


def test_an_index_is_found_behind_names_that_s3_refuses(bucket: RangeServer) -> None:
    refuse(bucket, "cluster.idx")
    bucket.add("/b/C/cluster.summary", b"").headers["Last-Modified"] = "Wed, 01 Jan 2025 00:00:00 GMT"
    assert str(find_index(locate("s3://b/C"))) == "s3://b/C/cluster.summary"


def test_without_any_index_the_first_refusal_is_reported(bucket: RangeServer) -> None:
    refuse(bucket, "cluster.idx", "cluster.summary", "all.idx", "indexes/cluster.idx")
    with pytest.raises(RefusedError, match=r"^s3://b/C/cluster\.idx: cannot be read \(403"):
        find_index(locate("s3://b/C"))
    refuse(bucket, "cluster.idx", "cluster.summary", "all.idx", "indexes/cluster.idx")
    reason = r"^s3://b/C/cluster\.idx: cannot be read \(403"
    with pytest.raises(RefusedError, match=reason), open_cluster("s3://b/C"):
        pass


@pytest.mark.parametrize("name", ["part-00000", "cdx-00000.gz", "cdx-00012.gz", "cluster.json"])
def test_split_points_of_a_cluster_without_index_are_an_error_of_the_input(
    name: str, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "C").mkdir()
    asked = ("split-points", "-s", "2", "-o", tmp_path / "s.txt", "--from-cluster", tmp_path / "C")
    assert run_cdxmill(*asked).returncode == 2
    (tmp_path / "C" / name).touch()
    done = run_cdxmill(*asked)
    assert (done.returncode, b"C: has no cluster.idx; " in done.stderr) == (1, True)


@pytest.mark.parametrize("name", ["part-00000", "cdx-00000.gz", "cluster.json"])
def test_a_cluster_without_index_behind_http_is_an_error_of_the_input(name: str, server: RangeServer) -> None:
    with pytest.raises(UsageError, match="not a ZipNum cluster"):
        find_index(locate(f"{server.url}/C"))
    server.add(f"/C/{name}", b"content")
    with pytest.raises(InputError, match=r"/C: has no cluster\.idx; "):
        find_index(locate(f"{server.url}/C"))


def test_a_cluster_whose_files_are_just_moved_into_it_has_no_index_yet(tmp_path: Path) -> None:
    """A run on Hadoop or Spark moves them one by one from its own directory to one without a cluster, on a disk, too."""
    (tmp_path / "C/.new").mkdir(parents=True)
    (tmp_path / "C/cdx-00000.gz").write_bytes(b"")
    with pytest.raises(InputError, match=r"has no cluster\.idx; build the cluster again"):
        find_index(locate(tmp_path / "C"))
    (tmp_path / "C/.new/.replaces.json").write_bytes(b"{}")
    with pytest.raises(InputError, match="is being replaced, so there is no index; run it again when"):
        find_index(locate(tmp_path / "C"))


@pytest.mark.parametrize(
    "command",
    ["verify C", "add C C", "remove C a.com", "compact C", "publish C out", "merge -o out C C", "serve C"],
)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("file", "(it is a file); name the directory of a cluster"),
        ("absent", "(no such file or directory); check the path"),
    ],
)
def test_what_is_no_directory_is_no_cluster(
    name: str,
    reason: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(b"WARC/1.0\r\n")
    assert main(command.replace("C", name).split()) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("cdxmill: ")
    assert errors.endswith(f"{name}: not a ZipNum cluster {reason}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_answer_of_the_server_that_is_no_file_does_not_mean_that_a_cluster_is_replaced(
    server: RangeServer,
) -> None:
    server.add("/C/.new/.replaces.json", b"").statuses = [403] * 9
    with pytest.raises(UsageError, match="not a ZipNum cluster"):
        find_index(locate(f"{server.url}/C"))


@pytest.mark.parametrize(
    ("names", "asked", "expected"),
    [
        (["cluster.idx", "indexes/cluster.idx"], "", ("", "cluster.idx")),
        (["all.idx", "cluster.summary"], "", ("", "cluster.summary")),
        (["cluster.json", "indexes/cluster.idx"], "", ("", None)),
        (["cdx-00007.gz", "indexes/cluster.idx"], "", ("", None)),
        (["notes.txt", "indexes/cluster.idx"], "", ("indexes", "cluster.idx")),
        (["indexes/cluster.summary"], "", ("", None)),
        (["notes.txt"], "", ("", None)),
        ([], "", ("", None)),
        (["crawl.idx"], "crawl.idx", ("", "crawl.idx")),
        (["notes.txt"], "crawl.idx", ("", None)),
        (["C.idx/cluster.idx"], "C.idx", ("C.idx", "cluster.idx")),
        (["file"], "file", ("file", None)),
    ],
)
def test_the_directory_of_a_cluster_is_found(
    names: list[str], asked: str, expected: tuple[str, str | None], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    directory, index = find_directory(locate(tmp_path / asked))
    assert (directory.place.text, index) == (str(tmp_path / expected[0]), expected[1])


def test_the_root_directory_is_looked_at_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert Directory(locate("/")).has("etc")
    assert main(["verify", "/"]) == 2
    assert capsys.readouterr().err == (
        "cdxmill: /: not a ZipNum cluster (no cluster.idx, cluster.summary or cluster.json)\n"
    )


@pytest.mark.parametrize(
    ("shard", "present", "expected"),
    [
        ("cdx-00000.gz", {"cdx-00000.gz"}, ["/C/cdx-00000.gz", "/D/a.gz", "/C/b.gz", "/C/cdx-00000.gz"]),
        ("cdx-00000.gz", set(), ["/D/a.gz", "/C/b.gz", "/C/cdx-00000.gz"]),
        ("cdx-00001.gz", {"cdx-00001.gz.gz"}, ["/C/cdx-00001.gz"]),
        ("cdx-00000", {"cdx-00000.gz"}, ["/D/c.gz", "/C/cdx-00000"]),
        ("cdx-00001", {"cdx-00001.cdx.gz"}, ["/C/cdx-00001.cdx.gz", "/C/cdx-00001"]),
    ],
)
def test_the_places_of_a_shard_are_tried_in_order(shard: str, present: set[str], expected: list[str]) -> None:
    """Beside the index first, then where cluster.loc says; only a shard that is not listed may have another ending."""
    listed = {"cdx-00000.gz": ["/D/a.gz", "b.gz"], "cdx-00000": ["/D/c.gz"]}
    found = shard_locations(locate("/C"), shard, None, lambda: listed, present.__contains__)
    assert [place.text for place in found] == expected


def test_a_rule_alone_says_where_shards_are() -> None:
    listed = {"a.gz": ["/elsewhere/a.gz"]}
    rule = ("^/(.)/", r"/data/\1-shards/")
    found = shard_locations(locate("/C"), "a.gz", rule, lambda: listed, lambda _: True)
    assert [place.text for place in found] == ["/data/C-shards/a.gz"]
    check_rule(rule)
    for wrong in (("(", ""), ("a", r"\1"), ("dir", r"\1")):
        with pytest.raises(
            UsageError,
            match=f"invalid --shard-index-loc {re.escape(repr(wrong[0]))} {re.escape(repr(wrong[1]))}: not",
        ):
            check_rule(wrong)


@pytest.mark.parametrize(
    ("directory", "location", "is_used"),
    [
        ("/C", "hdfs://host/C/a.gz", True),
        ("https://host/C", "https://host/C/a.gz", True),
        ("https://host/C", "file:/C/a.gz", False),
        ("https://host/C", "s3://one/a.gz", False),
        ("s3://one/C", "s3a://one/D/a.gz", True),
        ("s3://one/C", "s3://two/C/a.gz", False),
        ("s3://one/C", "https://host/C/a.gz", True),
        ("hdfs://host/C", "hdfs://host/D/a.gz", True),
        ("s3://one/C", "hdfs://host/D/a.gz", False),
    ],
)
def test_a_cluster_of_others_leads_only_to_places_that_its_reader_may_be_led_to(
    directory: str, location: str, is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in _OWN_S3:
        monkeypatch.delenv(name, raising=False)
    assert (why_refused(locate(directory), location) == "") is is_used
    places = shard_locations(locate(directory), "b.gz", None, lambda: {"b.gz": [location]}, lambda _: False)
    assert [place.text for place in places] == [location] * is_used + [f"{directory}/b.gz"]


@pytest.mark.parametrize("directory", ["https://8.8.8.8/C", "https://10.0.0.1/C"])
def test_only_a_private_cluster_may_lead_to_hdfs(directory: str) -> None:
    is_public = locate(directory).content_reach() == Reach.PUBLIC
    assert bool(why_refused(locate(directory), "hdfs://host/C/a.gz")) is is_public
    own, other = (
        reach_of(resolved(locate(directory), f"{place}/a.gz").text) for place in (directory, "http://b")
    )
    assert (own, other) == (Reach.ANYWHERE, Reach.PUBLIC if is_public else Reach.NETWORK)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("s3://bucket/C", "not a local directory; build the cluster locally"),
        ("file/C", "is not a directory"),
        ("a\tb", "cluster.loc cannot have a path with a tab or a line end"),
    ],
)
def test_a_cluster_is_not_written_where_it_could_not_be_read(
    path: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(UsageError, match=reason):
        local_directory(path)
    assert local_directory("C") == Path("C")


def test_the_addresses_of_crawls_are_those_of_the_server_or_of_a_mirror(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CDXMILL_COMMONCRAWL", raising=False)
    monkeypatch.delenv("CDXMILL_COLLINFO", raising=False)
    index = f"{BASE}/cc-index/collections/CC-MAIN-2024-10/indexes"
    assert (archives_of_crawls(), list_url(), index_of_crawl("CC-MAIN-2024-10")) == (BASE, COLLINFO, index)
    assert "CC-MAIN-2024-10: no such crawl" in str(no_crawl(f"{index}/".rstrip("/")))
    for other in (index_of_crawl("mine"), f"{index}2", index.replace("https", "http")):
        assert no_crawl(other) is None
    monkeypatch.setenv("CDXMILL_COMMONCRAWL", "http://mirror/")
    assert (archives_of_crawls(), list_url()) == ("http://mirror", "http://mirror/collinfo.json")
    monkeypatch.setenv("CDXMILL_COLLINFO", "http://list/")
    assert list_url() == "http://list/"


def test_only_names_of_crawls_are_taken_from_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = (
        b'[{"id": "CC-MAIN-2024-10", "name": null}, {"id": "CC-MAIN-2024-*"}, {"id": "CC-MAIN-X"},'
        b' {"id": "CC-MAIN-2023-50", "name": "Fall"}]'
    )
    monkeypatch.setattr("cdxmill.storage.cache.read_recent", lambda *_: listed)
    assert crawls_like("*") == [Crawl("CC-MAIN-2024-10", ""), Crawl("CC-MAIN-2023-50", "Fall")]
    assert crawls_like("CC-MAIN-2023-*") == [Crawl("CC-MAIN-2023-50", "Fall")]
    with pytest.raises(UsageError, match="no such crawl"):
        crawls_like("CC-MAIN-2022-*")


def test_a_storage_that_does_not_tell_is_not_taken_for_a_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cdx-00012.gz").touch()
    with pytest.raises(InputError, match=r"has no cluster\.idx; build the cluster again"):
        find_index(locate(tmp_path))

    def fail(place: Location) -> bool:
        raise InputError(place.text, "cannot be read")

    monkeypatch.setattr(Location, "exists", fail)
    assert not is_switched(locate(tmp_path))
