"""Archives on servers are indexed as those on disk are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.cli.main import main

from ..conftest import RunCdxmill
from .range_server import RangeServer

NAMES = ("example.warc.gz", "iana.warc.gz", "missing-status-text.warc", "example.arc")


@pytest.fixture
def archives(pywb_warcs: Path, tmp_path: Path) -> Path:
    """A folder with archives of every kind: gzip and plain, WARC and ARC."""
    directory = tmp_path / "archives/crawl one"
    directory.mkdir(parents=True)
    for name in NAMES:
        (directory / name).write_bytes((pywb_warcs / name).read_bytes())
    return directory.parent


@pytest.fixture
def manifest(archives: Path, tmp_path: Path) -> Path:
    """The archives, relative to their folder."""
    path = tmp_path / "manifest.txt"
    names = sorted(str(file.relative_to(archives)) for file in archives.rglob("*.*arc*"))
    path.write_text("# archives\n" + "".join(f"{number}\t{name}\n" for number, name in enumerate(names)))
    return path


@pytest.fixture
def indexed(run_cdxmill: RunCdxmill, manifest: Path, tmp_path: Path) -> Callable[[str], dict[str, bytes]]:
    """Indexes the manifest below a root; every output by its path, which does not depend on the root."""

    def run(root: str, *options: str) -> dict[str, bytes]:
        out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        done = run_cdxmill(
            "index", "-q", "-p", "2", "--manifest", manifest, "--root", root, "-o", out, *options
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.cdx.gz")}

    return run


def test_servers_files_and_buckets_give_the_same_bytes(
    archives: Path,
    indexed: Callable[[str], dict[str, bytes]],
    server: RangeServer,
    moto_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="by-url")
    for path in archives.rglob("*.*arc*"):
        client.put_object(
            Bucket="by-url", Key=f"archives/{path.relative_to(archives)}", Body=path.read_bytes()
        )
        server.add(f"/archives/{path.relative_to(archives)}", path.read_bytes())
        plain = server.add(f"/plain/archives/{path.relative_to(archives)}", path.read_bytes())
        plain.knows_ranges = False

    expected = indexed(str(archives))
    assert len(expected) == len(NAMES)
    assert all(expected.values())
    assert indexed(archives.as_uri()) == expected
    assert indexed(f"{server.url}/archives") == expected
    assert indexed(f"{server.url}/plain/archives") == expected
    assert indexed("s3://by-url/archives") == expected


def test_a_server_in_trouble_costs_no_line(
    archives: Path, indexed: Callable[[str], dict[str, bytes]], server: RangeServer
) -> None:
    for path in archives.rglob("*.*arc*"):
        file = server.add(f"/archives/{path.relative_to(archives)}", path.read_bytes())
        file.statuses, file.drops, file.cuts = [503], 1, [100]
    assert indexed(f"{server.url}/archives") == indexed(str(archives))


def test_failures_are_named_with_their_line_and_the_rest_is_indexed(
    archives: Path, server: RangeServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], hurry: None
) -> None:
    body = (archives / "crawl one/example.warc.gz").read_bytes()
    for name in ("good", "down", "changing", "refused"):
        server.add(f"/{name}.warc.gz", body)
    server.files["/down.warc.gz"].statuses = [503] * 100
    server.files["/refused.warc.gz"].statuses = [403, 403]
    url = server.url
    manifest = tmp_path / "list.txt"
    lines = (f"{url}/absent.warc.gz", f"{url}/down.warc.gz", f"{url}/refused.warc.gz", "ftp://h/a.warc.gz")
    manifest.write_text("".join(f"{line}\n" for line in (*lines, f"{url}/good.warc.gz")))

    assert main(["index", "-q", "-p", "2", "-o", str(tmp_path / "out"), "--manifest", str(manifest)]) == 3
    assert sorted(capfd.readouterr().err.splitlines()) == [
        f"{manifest}:1: {url}/absent.warc.gz: cannot be read (404 Not Found); check the URL",
        f"{manifest}:2: {url}/down.warc.gz: did not answer (503) after 12 tries; run it again",
        f"{manifest}:3: {url}/refused.warc.gz: cannot be read (403 Forbidden); check the access rights",
        f"{manifest}:4: ftp://h/a.warc.gz: ftp:// is not supported; use a path, or a file, http, https, s3 or hdfs URL",
    ]
    assert [path.name for path in (tmp_path / "out").rglob("*.cdx.gz")] == ["good.cdx.gz"]


def test_a_manifest_may_be_a_url(
    archives: Path, manifest: Path, server: RangeServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.add("/list.txt", manifest.read_bytes())
    options = ["-q", "-p", "1", "--root", str(archives), "-o"]
    assert main(["index", *options, str(tmp_path / "a.cdxj"), "--manifest", str(manifest)]) == 0
    for number, url in enumerate((f"{server.url}/list.txt", manifest.as_uri())):
        out = tmp_path / f"{number}.cdxj"
        assert main(["index", *options, str(out), "--manifest", url]) == 0
        assert (tmp_path / "a.cdxj").read_bytes() == out.read_bytes() != b""
    capfd.readouterr()
    for absent in (f"{server.url}/absent.txt", str(tmp_path / "absent.txt")):
        assert main(["index", *options, str(tmp_path / "c.cdxj"), "--manifest", absent]) == 2
        assert f"the manifest {absent} cannot be read (" in capfd.readouterr().err


def test_a_rerun_reads_only_what_failed(
    run_cdxmill: RunCdxmill, archives: Path, server: RangeServer, tmp_path: Path
) -> None:
    body = (archives / "crawl one/example.warc.gz").read_bytes()
    server.add("/one.warc.gz", body)
    urls = [f"{server.url}/one.warc.gz", f"{server.url}/two.warc.gz"]
    command = ("index", "-q", "-p", "1", "--update", "-o", tmp_path / "out", *urls)
    assert run_cdxmill(*command).returncode == 1
    server.add("/two.warc.gz", body)
    server.seen.clear()
    assert run_cdxmill(*command).returncode == 0
    assert server.ranges("/one.warc.gz") == ["bytes=0-0"], "its state is asked for"
    assert {path.name for path in (tmp_path / "out").rglob("*.cdx.gz")} == {"one.cdx.gz", "two.cdx.gz"}


def test_a_file_that_changes_while_it_is_read_leaves_no_output(
    archives: Path, server: RangeServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = server.add("/a.warc.gz", (archives / "crawl one/example.warc.gz").read_bytes())
    file.etags = ['"one"', '"one"', '"two"']
    url = f"{server.url}/a.warc.gz"
    assert main(["index", "-q", "-o", str(tmp_path / "out"), url]) == 1
    assert capfd.readouterr().err == f"{url}: has changed while it was read; run it again\n"
    assert list((tmp_path / "out").rglob("*.cdx.gz")) == []


def test_without_boto3_buckets_are_a_usage_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    assert main(["index", "-q", "-o", str(tmp_path / "out"), "s3://bucket/a.warc.gz"]) == 2
    assert "pip install './cdxmill[s3]', with a checkout in ./cdxmill" in capfd.readouterr().err
