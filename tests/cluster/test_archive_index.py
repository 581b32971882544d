"""archives.tsv: `build` writes where the archives are, and `get` and `verify` find them there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.cluster.archive_index import (
    ArchivePlaces,
    allowed_place,
    archives_of,
    has_archive_index,
    published_index,
)
from cdxmill.commands.clusters import build
from cdxmill.commands.per_archive import index
from cdxmill.errors import InputError, RefusedError, UsageError
from cdxmill.storage.location import Location, locate
from cdxmill.storage.reach import Reach, reach_of

from ..conftest import RunCdxmill
from ..storage.range_server import serving

NAME = "archives.tsv"


@pytest.fixture
def warcs(pywb_warcs: Path, tmp_path: Path) -> Path:
    """A folder with two different archives of one name, and a third one."""
    directory = tmp_path / "warcs"
    for place, archive in (
        ("one/w.warc.gz", "iana"),
        ("two/w.warc.gz", "example2"),
        ("b.warc.gz", "post-test"),
    ):
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(pywb_warcs / f"{archive}.warc.gz", directory / place)
    return directory


def archives_in(directory: Path) -> list[Path]:
    return [directory / "two/w.warc.gz", directory / "one/w.warc.gz", directory / "b.warc.gz"]


@pytest.fixture
def cluster(warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As versions built it that accepted two archives of one name. Their clusters are still read."""
    for module in (build, index):
        monkeypatch.setattr(module, "check_index_names", lambda archives: None)
    paths = map(str, archives_in(warcs))
    assert main(["build", "-q", "-o", str(tmp_path / "C"), "-s", "2", *paths]) == 0
    return tmp_path / "C"


def test_build_lists_each_name_once_and_sorted(cluster: Path, warcs: Path) -> None:
    both = f"{warcs}/one/w.warc.gz\t{warcs}/two/w.warc.gz"
    assert (cluster / NAME).read_text() == f"b.warc.gz\t{warcs}/b.warc.gz\nw.warc.gz\t{both}\n"


@pytest.mark.parametrize("url", ["http://www.iana.org/", "http://example.com/"])
def test_get_finds_the_archive_of_the_line_among_those_of_its_name(
    cluster: Path, run_cdxmill: RunCdxmill, url: str
) -> None:
    done = run_cdxmill("get", cluster, url, cwd=Path("/"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"WARC-Target-URI: {url}\r\n".encode() in done.stdout


def test_get_says_what_to_do_if_the_archives_were_moved(
    cluster: Path, warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    warcs.rename(warcs.with_name("moved"))
    done = run_cdxmill("get", cluster, "http://www.iana.org/")
    message = f"cdxmill: {warcs}/one/w.warc.gz: cannot be read (No such file or directory); if the archives are elsewhere, use --archives LOCATION\n"
    assert (done.returncode, done.stderr.decode()) == (1, message)
    moved = warcs.with_name("moved") / "one"
    assert run_cdxmill("get", cluster, "http://www.iana.org/", "--archives", moved).returncode == 0


def test_get_says_what_to_do_if_nothing_says_where_the_archives_are(
    cluster: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (cluster / NAME).unlink()
    done = run_cdxmill("get", cluster, "http://www.iana.org/", cwd=tmp_path)
    message = "cdxmill: w.warc.gz: cannot be read (No such file or directory); if the archives are elsewhere, use --archives LOCATION\n"
    assert (done.returncode, done.stderr.decode()) == (1, message)


def test_a_name_that_is_not_listed_is_reported(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    (cluster / NAME).write_text("other\t/other\n")
    done = run_cdxmill("get", cluster, "http://www.iana.org/")
    message = f"cdxmill: w.warc.gz: is not in the path index {cluster}/{NAME}; if the archives are elsewhere, use --archives LOCATION\n"
    assert (done.returncode, done.stderr.decode()) == (1, message)


def test_verify_reads_a_sample_of_the_records_without_archives(
    cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("verify", cluster, "--sample", "30", cwd=Path("/"))
    assert done.returncode == 0, done.stderr
    assert b"30 records read" in done.stderr
    done = run_cdxmill("verify", cluster, "--archives", cluster / NAME, cwd=Path("/"))
    assert done.returncode == 0, done.stderr


def test_a_sample_without_archives_needs_the_list(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    (cluster / NAME).unlink()
    done = run_cdxmill("verify", cluster, "--sample", "3")
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"cdxmill: {cluster}: has no {NAME}, so --sample needs --archives")


def test_verify_reports_a_list_that_pywb_cannot_search(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    (cluster / NAME).write_bytes(b"b\t/b\na\t/a\n")
    done = run_cdxmill("verify", cluster)
    assert done.returncode == 1
    assert f"{cluster}/{NAME}: line 2: out of order" in done.stderr.decode()


def test_the_list_is_replaced_with_the_cluster(cluster: Path, warcs: Path, run_cdxmill: RunCdxmill) -> None:
    build = ["build", "-o", str(cluster), "-s", "2", str(warcs / "b.warc.gz")]
    refused = run_cdxmill(*build)
    assert refused.returncode == 2
    assert (cluster / NAME).read_text().count("\n") == 2
    assert run_cdxmill(*build, "--replace").returncode == 0
    assert (cluster / NAME).read_text() == f"b.warc.gz\t{warcs}/b.warc.gz\n"
    assert not cluster.with_name(".C.old").exists()


def test_a_cluster_of_cdx_files_has_no_list(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    other = cluster.with_name("D")
    indexes = sorted((cluster / "cdx").glob("*.cdx.gz"))
    assert run_cdxmill("zipnum", "-o", other, "-s", "2", *indexes).returncode == 0
    assert not (other / NAME).exists()
    assert run_cdxmill("zipnum", "--replace", "-o", cluster, "-s", "1", indexes[0]).returncode == 0
    assert not (cluster / NAME).exists()


def test_a_list_that_the_user_wrote_is_never_overwritten(
    cluster: Path, warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    other = cluster.with_name("D")
    indexes = sorted((cluster / "cdx").glob("*.cdx.gz"))
    assert run_cdxmill("zipnum", "-o", other, "-s", "2", *indexes).returncode == 0
    (other / NAME).write_text("mine")
    assert run_cdxmill("zipnum", "--replace", "-o", other, "-s", "1", *indexes).returncode == 0
    assert (other / NAME).read_text() == "mine"
    empty = cluster.with_name("E")
    empty.mkdir()
    (empty / NAME).write_text("mine")
    done = run_cdxmill("build", "-o", empty, "-s", "1", warcs / "b.warc.gz")
    assert (done.returncode, (empty / NAME).read_text()) == (2, "mine")


def test_a_name_that_a_list_cannot_have_is_reported(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    shutil.copy(pywb_warcs / "iana.warc.gz", tmp_path / "a\tb.warc.gz")
    done = run_cdxmill("build", "-o", tmp_path / "C", "-s", "1", tmp_path / "a\tb.warc.gz")
    assert done.returncode == 0
    assert f"a\\tb.warc.gz: note: not in {NAME}, because of a tab" in done.stderr.decode()
    assert not (tmp_path / "C" / NAME).exists()


@pytest.mark.parametrize(
    ("directory", "place", "why"),
    [
        ("https://host/C", "/etc/passwd", "is a local path, and the cluster is remote"),
        ("s3://bucket/C", "file:///etc/passwd", "is a local path, and the cluster is remote"),
        ("https://8.8.8.8/C", "hdfs://host/a", "is in HDFS, and the cluster is public"),
        ("https://host/C", "s3://bucket/a", "is in another S3 bucket than the cluster"),
        ("hdfs://host/C", "s3a://bucket/a", "is in another S3 bucket than the cluster"),
        ("s3://bucket/C", "S3://other/a", "is in another S3 bucket than the cluster"),
    ],
)
def test_the_list_of_a_remote_cluster_does_not_lead_to_local_files(
    directory: str, place: str, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        allowed_place(Location(directory), place)


def test_the_list_of_a_public_cluster_leads_to_public_addresses_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    assert reach_of(allowed_place(Location("s3://bucket/C"), "http://host/a.warc.gz").text) == Reach.PUBLIC
    assert reach_of(allowed_place(Location("/data/C"), "http://host/a.warc.gz").text) == Reach.NETWORK
    assert str(allowed_place(Location("/data/C"), "/data/a.warc.gz")) == "/data/a.warc.gz"


def test_the_list_of_a_cluster_may_lead_to_its_own_bucket() -> None:
    for directory, place in (("s3a://bucket/C", "s3://bucket/a"), ("/data/C", "s3://other/a")):
        assert allowed_place(Location(directory), place).text == place


def test_get_from_a_remote_cluster_follows_urls_but_not_local_paths(
    cluster: Path, warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    with serving() as server:
        for path in cluster.iterdir():
            if path.is_file() and path.name != NAME:
                server.add(f"/C/{path.name}", path.read_bytes())
        server.add("/w.warc.gz", (warcs / "one/w.warc.gz").read_bytes())
        server.add(f"/C/{NAME}", (cluster / NAME).read_bytes())
        done = run_cdxmill("get", f"{server.url}/C", "http://www.iana.org/")
        assert done.returncode == 1
        assert (
            "leads there, and it is a local path, and the cluster is remote; if you trust it"
            in done.stderr.decode()
        )
        assert f"use --archives {server.url}/C/{NAME}" in done.stderr.decode()
        trusted = ("--archives", f"{server.url}/C/{NAME}")
        assert run_cdxmill("get", f"{server.url}/C", "http://www.iana.org/", *trusted).returncode == 0
        server.add(f"/C/{NAME}", f"w.warc.gz\t/etc/passwd\t{server.url}/w.warc.gz\n".encode())
        done = run_cdxmill("get", f"{server.url}/C", "http://www.iana.org/")
        assert (done.returncode, done.stderr) == (0, b"")
    (place,) = archives_of(locate(cluster), str(warcs)).open().locations("x")
    assert str(place) == f"{warcs}/x"


def test_publish_copies_the_list_or_writes_the_places_that_the_user_names(
    cluster: Path, warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    copy = cluster.with_name("P")
    assert run_cdxmill("publish", cluster, copy).returncode == 0
    assert (copy / NAME).read_bytes() == (cluster / NAME).read_bytes()
    done = run_cdxmill("publish", cluster, copy, "--archives", "https://host/warcs")
    assert done.returncode == 0, done.stderr
    urls = "b.warc.gz\thttps://host/warcs/b.warc.gz\nw.warc.gz\thttps://host/warcs/w.warc.gz\n"
    assert (copy / NAME).read_text() == urls
    assert run_cdxmill("publish", copy, copy, "--archives", warcs / "one").returncode == 0
    assert (copy / NAME).read_text().startswith(f"b.warc.gz\t{warcs}/one/b.warc.gz\n")


def test_publish_replaces_the_list_with_the_cluster(
    cluster: Path, warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    copy, other = cluster.with_name("P"), cluster.with_name("O")
    assert run_cdxmill("build", "-o", other, "-s", "1", warcs / "b.warc.gz").returncode == 0
    assert run_cdxmill("publish", cluster, copy).returncode == 0
    assert run_cdxmill("publish", other, copy).returncode == 2
    assert (copy / NAME).read_bytes() == (cluster / NAME).read_bytes()
    for _ in range(2):
        assert run_cdxmill("publish", other, copy, "--replace").returncode == 0
        assert (copy / NAME).read_bytes() == (other / NAME).read_bytes()
        assert not cluster.with_name(".P.old").exists()


def test_publish_does_not_overwrite_a_list_of_another_directory(
    cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    copy = cluster.with_name("P")
    copy.mkdir()
    (copy / NAME).write_text("mine")
    done = run_cdxmill("publish", cluster, copy)
    assert (done.returncode, (copy / NAME).read_text()) == (2, "mine")


def test_a_remote_copy_has_no_names_of_this_machine(cluster: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    remote = locate("s3://bucket/C")
    assert published_index(locate(cluster), remote, None, notes.append) is None
    assert notes[0].startswith(f"{cluster}/{NAME}: note: 3 of 3 archives not listed in s3://bucket/C: ")
    (cluster / NAME).write_text("a\t/data/a\thttps://host/a\nb\thttps://host/b?token=1\n")
    assert published_index(locate(cluster), remote, None, notes.append) == b"a\thttps://host/a\n"
    (cluster / NAME).write_text("a\thttps://host/a\n")
    assert published_index(locate(cluster), remote, None, notes.append) == b"a\thttps://host/a\n"
    assert len(notes) == 2, "all are listed"
    assert published_index(locate(tmp_path), remote, None, notes.append) is None
    with pytest.raises(UsageError, match="so --archives has no names to write"):
        published_index(locate(tmp_path), remote, "https://host/", notes.append)


def test_a_file_of_lines_has_no_list(tmp_path: Path) -> None:
    (tmp_path / "a.cdxj").write_text("")
    assert archives_of(locate(tmp_path / "a.cdxj"), None).directory is None


def test_another_archives_tsv_is_another_state_of_the_places(tmp_path: Path) -> None:
    """What the user named has none."""
    directory = locate(tmp_path)
    assert ArchivePlaces(str(tmp_path), directory).state() is ArchivePlaces(None).state() is None
    places, states = ArchivePlaces(None, directory), list[object]()
    for content in (None, "a\t/a\n", "bb\t/a\n"):
        if content is not None:
            (tmp_path / NAME).write_text(content)
        states.append(places.state())
    assert len(set(states)) == 3
    assert places.state() == states[-1]
    assert ArchivePlaces(str(tmp_path), directory).state() is None


def test_a_storage_that_refuses_to_tell_has_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 without the right to list refuses what does not exist."""

    def refuse(place: Location) -> bool:
        raise RefusedError(place.text, "cannot be read (403 Forbidden)")

    monkeypatch.setattr(Location, "exists", refuse)
    assert not has_archive_index(locate(tmp_path))


def test_without_a_cluster_and_a_place_archives_are_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (place,) = ArchivePlaces(None).open().locations("a.warc.gz")
    assert place.absolute() == str(tmp_path / "a.warc.gz")


def test_what_the_user_names_comes_before_the_list_of_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "cluster.idx").touch()
    directory = locate(tmp_path)
    assert archives_of(directory, None).directory is None
    (tmp_path / NAME).write_text("a\t/data/a\n")
    assert archives_of(directory, None) == ArchivePlaces(None, directory)
    (tmp_path / "warcs").mkdir()
    for places, expected in ((None, "/data/a"), (f"{tmp_path}/warcs", f"{tmp_path}/warcs/a")):
        (place,) = ArchivePlaces(places, directory).open().locations("a")
        assert place.text == expected
