"""Folders of S3 and HDFS as inputs: no key is lost, whatever its characters and steps are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.cdx_files import find_cdx_files
from cdxmill.options.archives import ArchiveInputs
from cdxmill.running.failures import Failures
from cdxmill.storage.location import locate
from cdxmill.storage.walk import files_below, files_like

from .name_node import NameNode, name_node

BUCKET = "listings"
ODD = [
    *(
        "a%41b",
        "a+b",
        "a b",
        "ünïcode 🐟",
        "line\nend",
        "tab\t",
        "\x01\x1b[31m",
        "a&b=c?d#e",
        "'\"",
        "a\\b",
        "~",
        "*[x]?",
    ),
    *(
        "crawl//b",
        "crawl///c",
        "/leading",
        "./dot",
        "x/./y",
        "x/../z",
        "../up",
        "..",
        ".hidden",
        "a//",
        "-q",
        "%",
    ),
]

S3_ODD = [name for name in ODD if "\n" not in name]
"""moto takes no line end in a key."""


@pytest.fixture
def bucket(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of moto, and an empty bucket."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    yield client
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for item in page.get("Contents", ()):
            client.delete_object(Bucket=BUCKET, Key=item["Key"])


def put(client: Any, *keys: str, body: bytes = b"x") -> None:
    for key in keys:
        client.put_object(Bucket=BUCKET, Key=key, Body=body or key.encode())


def below(url: str) -> list[str]:
    start = f"{url.split('://')[0]}://{BUCKET}/"
    return [found.removeprefix(start) for found in files_below(url).files]


def like(pattern: str) -> list[str]:
    return [found.removeprefix(f"s3://{BUCKET}/") for found in files_like(f"s3://{BUCKET}/{pattern}").files]


def archives(*named: str) -> tuple[list[str], list[str]]:
    failures = Failures(printed=False)
    return [archive.path for archive in find_archives(ArchiveInputs(named), failures)], [
        str(one) for one in failures.items
    ]


def test_keys_with_empty_steps_and_objects_with_the_name_of_a_directory_are_found(bucket: Any) -> None:
    keys = [
        "crawl/2024",
        "crawl/2024/a.warc.gz",
        "crawl/2024/x/b.warc.gz",
        "crawl//c.warc.gz",
        "crawl/d.warc.gz",
    ]
    put(bucket, *keys)
    put(bucket, "crawl2/e.warc.gz", "crawl/2025/f.warc.gz")
    bucket.put_object(Bucket=BUCKET, Key="crawl/2025/", Body=b"")
    bucket.put_object(Bucket=BUCKET, Key="crawl/", Body=b"")
    for url in (f"s3://{BUCKET}/crawl", f"s3://{BUCKET}/crawl/", f"s3a://{BUCKET}/crawl"):
        assert sorted(below(url)) == sorted([*keys, "crawl/2025/f.warc.gz"])
    assert like("crawl/*") == ["crawl/2024", "crawl/d.warc.gz"]
    assert sorted(like("crawl/*/*.warc.gz")) == [
        "crawl//c.warc.gz",
        "crawl/2024/a.warc.gz",
        "crawl/2025/f.warc.gz",
    ]
    assert sorted(like("c*/2025/?.warc.gz")) == ["crawl/2025/f.warc.gz"]
    assert sorted(like("**/*.warc.gz")) == sorted(
        key for key in [*keys[1:], "crawl2/e.warc.gz", "crawl/2025/f.warc.gz"]
    )
    assert sorted(like("crawl/**/b.*")) == ["crawl/2024/x/b.warc.gz"]
    assert locate(f"s3://{BUCKET}/crawl").entries()["2024"].is_directory is False
    found, failures = archives(f"s3://{BUCKET}/crawl")
    assert len(found) == 5
    assert failures == []


def test_keys_round_trip(bucket: Any) -> None:
    for prefix in ("", "odd/"):
        keys = [f"{prefix}{name}.warc.gz" for name in S3_ODD]
        for key in keys:
            bucket.put_object(Bucket=BUCKET, Key=key, Body=key.encode())
    for directory in ("odd", ""):
        found = files_below(f"s3://{BUCKET}/{directory}").files
        wanted = {
            f"{prefix}{name}.warc.gz" for name in S3_ODD for prefix in ("", "odd/") if prefix or not directory
        }
        assert {url.removeprefix(f"s3://{BUCKET}/") for url in found} == wanted
    for url in found:
        assert locate(url).read_bytes() == url.removeprefix(f"s3://{BUCKET}/").encode()
        assert locate(url).status() is not None


def test_a_listing_has_many_pages(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")
    keys = [f"many/{number:04d}/{number}.warc.gz" for number in range(105)]
    put(bucket, *keys)
    assert bucket.list_objects_v2(Bucket=BUCKET)["IsTruncated"]
    assert below(f"s3://{BUCKET}/many") == keys
    assert like("many/*/*") == keys


def test_a_directory_of_s3_reports_what_it_skips(bucket: Any, capfd: pytest.CaptureFixture[str]) -> None:
    put(bucket, "in/a.warc.gz", "in/b.har", "in/c/_temporary/0/d.warc.gz", "in/e.cdx.gz")
    assert archives(f"s3://{BUCKET}/in") == ([f"s3://{BUCKET}/in/a.warc.gz"], [])
    failures = Failures()
    assert find_cdx_files([f"s3://{BUCKET}/in"], failures) == [f"s3://{BUCKET}/in/e.cdx.gz"]
    assert capfd.readouterr().err == (
        f"s3://{BUCKET}/in: note: 3 files skipped: 1 .har, 1 .warc.gz, 1 in _temporary\n"
    )


def test_a_directory_of_s3_without_archives(bucket: Any) -> None:
    put(bucket, "in/a.warc.gz", "har/b.har")
    with pytest.raises(
        UsageError, match=r"no archives found in s3://listings/har \(1 file skipped: 1 .har\)"
    ):
        archives(f"s3://{BUCKET}/har")
    with pytest.raises(UsageError, match=r"no archives found in s3://listings/absent/;"):
        archives(f"s3://{BUCKET}/absent/")
    with pytest.raises(UsageError, match=r"no archives found in s3://listings/\*\.x;"):
        archives(f"s3://{BUCKET}/*.x")
    found, failures = archives(f"s3://{BUCKET}/in", f"s3://{BUCKET}/har", f"s3://{BUCKET}/*.x")
    assert len(found) == 1
    assert [failure.split(";")[0] for failure in failures] == [
        f"s3://{BUCKET}/har: no archives found",
        f"s3://{BUCKET}/*.x: no file matches",
    ]


def test_a_bucket_that_cannot_be_listed_is_one_failure(bucket: Any) -> None:
    put(bucket, "in/a.warc.gz")
    found, failures = archives("s3://no-such-bucket/x", f"s3://{BUCKET}/in", "s3://no-such-bucket/*.gz")
    assert found == [f"s3://{BUCKET}/in/a.warc.gz"]
    assert len(failures) == 2
    assert all("404 NoSuchBucket" in failure for failure in failures)
    with pytest.raises(InputError, match="NoSuchBucket"):
        archives("s3://no-such-bucket/x")


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        yield running


def test_names_of_hdfs_round_trip(node: NameNode) -> None:
    names = [name for name in ODD if "/" not in name and name != ".."]
    for name in names:
        node.put(f"/odd/{name}.warc.gz", name.encode())
        node.put(f"/odd/{name}/below.warc.gz", name.encode())
    found = files_below("hdfs:///odd").files
    assert set(found) == {
        f"hdfs:///odd/{name}{end}" for name in names for end in (".warc.gz", "/below.warc.gz")
    }
    for url in found:
        assert locate(url).read_bytes().decode() in url
    assert len(files_like("hdfs:///odd/*/*.warc.gz").files) == len(names)
    assert len(files_like("hdfs:///**/*.warc.gz").files) == 2 * len(names)


def test_a_directory_of_hdfs_reports_what_it_skips(node: NameNode, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("a.warc.gz", "b.har", "_temporary/0/c.warc.gz", "deep/d.arc.gz"):
        node.put(f"/in/{name}", b"x")
    failures = Failures()
    assert [archive.path for archive in find_archives(ArchiveInputs("hdfs:///in"), failures)] == [
        "hdfs:///in/a.warc.gz",
        "hdfs:///in/deep/d.arc.gz",
    ]
    assert capfd.readouterr().err == "hdfs:///in: note: 2 files skipped: 1 .har, 1 in _temporary\n"


def test_a_directory_of_hdfs_that_cannot_be_listed_is_one_failure(node: NameNode) -> None:
    node.put("/in/a.warc.gz", b"x")
    node.put("/in/b/b.warc.gz", b"x")
    node.put("/in/c/c.warc.gz", b"x")
    listing = node.RequestHandlerClass._liststatus  # type: ignore[attr-defined]
    refused = "/in/b"

    def refuse(handler: Any, path: str, query: dict[str, str], body: bytes) -> None:
        if path == refused:
            handler._refuse(403, "AccessControlException")
        else:
            listing(handler, path, query, body)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node.RequestHandlerClass, "_liststatus", refuse)
        found, failures = archives("hdfs:///in")
        refused = "/in"
        with pytest.raises(InputError, match=r"^hdfs:///in: refused"):
            files_below("hdfs:///in")
    assert found == ["hdfs:///in/a.warc.gz", "hdfs:///in/c/c.warc.gz"]
    (failure,) = failures
    assert failure.startswith("hdfs:///in/b: refused (403 AccessControlException")
