"""S3 as boto3 reads it: from moto, and from a server that fails as it is told."""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.errors import InputError, OutageError, UsageError
from cdxmill.storage import hosts, patience, s3
from cdxmill.storage.location import locate
from cdxmill.storage.s3 import open_ranges
from cdxmill.version import HOME, __version__

from .range_server import RangeServer, Served

BODY = random.Random(5).randbytes(1 << 20)
URL = "s3://archives/crawl/a.warc.gz"


def sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


@pytest.fixture
def bucket(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of moto, and an archive in it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    sign(monkeypatch)
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="archives")
    client.put_object(Bucket="archives", Key="crawl/a.warc.gz", Body=BODY)
    return client


@pytest.fixture
def file(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> Served:
    """An object of a server that can fail: S3's GET and HEAD are those of HTTP."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    return server.add("/archives/crawl/a.warc.gz", BODY)


@pytest.fixture
def two_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between more would make a test slow."""
    monkeypatch.setattr(patience, "TRIES", 2)


def error_of(url: str) -> str:
    with pytest.raises(InputError) as caught, open_ranges(url) as read_at:
        read_at(0, 100)
    assert caught.value.path == url
    return str(caught.value).removeprefix(f"{url}: ")


def test_ranges_of_the_asked_size_are_read(server: RangeServer, file: Served) -> None:
    with open_ranges(URL) as read_at:
        assert read_at(100, 1000) == BODY[100:1100]
        assert read_at(len(BODY) - 5, 1000) == BODY[-5:]
    assert [(method, wanted) for method, _, wanted in server.seen] == [
        ("HEAD", None),
        ("GET", "bytes=100-1099"),
        ("GET", f"bytes={len(BODY) - 5}-{len(BODY) - 1}"),
    ]


def test_without_credentials_reads_are_unsigned(server: RangeServer, file: Served) -> None:
    assert locate(URL).size() == len(BODY)
    assert "authorization" not in server.request_headers[0]


def test_with_credentials_reads_are_signed(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(monkeypatch)
    assert locate(URL).size() == len(BODY)
    assert "Credential=someone/" in server.request_headers[0]["authorization"]


def test_an_endpoint_with_a_name_has_its_buckets_in_the_path(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url.replace("127.0.0.1", "localhost"))
    assert locate(URL).size() == len(BODY)
    assert server.seen[0][1] == "/archives/crawl/a.warc.gz"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_in_trouble_is_asked_again(
    server: RangeServer, file: Served, two_tries: None, status: int
) -> None:
    with open_ranges(URL) as read_at:
        file.statuses = [status]
        assert read_at(0, 100) == BODY[:100]
    assert len(server.seen) == 3


def test_a_server_that_stays_in_trouble_is_given_up(
    server: RangeServer, file: Served, two_tries: None
) -> None:
    file.statuses = [503] * 100
    assert error_of(URL) == "did not answer (503) after 2 tries; run it again"
    assert len(server.seen) == 2


def test_each_try_of_a_range_or_a_listing_is_one_request(
    server: RangeServer, file: Served, two_tries: None, hurry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "MORE_TRIES", 2)
    place = locate("s3://archives/crawl")
    with pytest.raises(InputError, match="404"):
        place.entries()
    listing = server.add(unquote(server.seen[-1][1]), b"")
    with open_ranges(URL) as read_at:
        file.statuses, listing.statuses = [503] * 100, [503] * 100
        for ask in (lambda: read_at(0, 100), place.entries):
            server.seen.clear()
            with pytest.raises(OutageError, match="after 2 tries"):
                ask()
            assert len(server.seen) == 2


def test_a_server_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch, two_tries: None, down: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", down)
    assert error_of(URL) == f"did not answer (no connection to {down}) after 2 tries; run it again"


class Outage:
    """S3 is gone for some seconds of a clock that only waits move; so none is waited for."""

    def __init__(self, moto_url: str, down: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._url, self._down, self._set = moto_url, down, monkeypatch.setenv
        self.passed, self._left = 0.0, 0.0
        monkeypatch.setattr(
            patience, "time", SimpleNamespace(sleep=self._sleep, monotonic=lambda: self.passed)
        )
        monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=self._sleep))
        monkeypatch.setattr("random.uniform", lambda low, high: high)

    def _sleep(self, wait: float) -> None:
        self.passed += wait
        self._left -= wait
        if self._left <= 0:
            self.end()

    def begin(self, seconds: float) -> None:
        self._left = seconds
        self._set("AWS_ENDPOINT_URL", self._down)
        s3._client.cache_clear()

    def end(self) -> None:
        self._set("AWS_ENDPOINT_URL", self._url)
        s3._client.cache_clear()


def test_an_outage_is_waited_for_by_every_request(
    bucket: Any, moto_url: str, down: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing was given up after 28 seconds, and 30 seconds at the start ended a run."""
    bucket.put_object(Bucket="archives", Key="outage/a.warc.gz", Body=b"x")
    place, outage = locate("s3://archives/outage"), Outage(moto_url, down, monkeypatch)
    outage.begin(30)
    assert place.entries().keys() == {"a.warc.gz"}
    outage.begin(150)  # the server has answered in this run: it gets five minutes
    assert place.entries().keys() == {"a.warc.gz"}
    outage.begin(150)
    with (place / "new").write_atomic() as file:
        file.write(b"new")
    outage.begin(150)
    (place / "new").move(place / "moved")
    outage.begin(150)
    (place / "moved").remove()
    assert place.entries().keys() == {"a.warc.gz"}
    assert outage.passed >= 630
    outage.begin(1000)
    hosts.begin_run()
    with pytest.raises(OutageError, match=r"no connection to http://127\.0\.0\.1:\d+\) after 8 tries"):
        place.entries()


def test_a_bucket_that_is_down_costs_no_wait_per_object(
    server: RangeServer, file: Served, two_tries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.statuses = [503] * 100
    assert "did not answer (503)" in error_of(URL)
    other = f"{URL}.other"
    assert error_of(other) == "not requested, because s3://archives did not answer (503); run it again later"
    assert len(server.seen) == 2
    hosts.begin_run()
    file.statuses = []
    assert locate(URL).size() == len(BODY), "a later run continues"


def test_requests_say_who_asks(server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDXMILL_CONTACT", "me@example.org")
    assert locate(URL).size() == len(BODY)
    assert f"cdxmill/{__version__} (+{HOME}; me@example.org)" in server.request_headers[0]["user-agent"]


def test_a_server_that_is_silent_is_given_up(
    file: Served, two_tries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "READ_SECONDS", 0.05)
    file.stall = 0.3
    assert error_of(URL) == "did not answer (timed out) after 2 tries; run it again"


def test_a_port_on_which_no_connection_is_made_is_given_up(
    deaf: str, two_tries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "CONNECT_SECONDS", 0.05)
    monkeypatch.setenv("AWS_ENDPOINT_URL", deaf)
    assert error_of(URL) == "did not answer (timed out) after 2 tries; run it again"


def test_what_is_absent_is_told_at_once(bucket: Any) -> None:
    told = "cannot be read (404 Not Found); check the bucket and the key"
    assert error_of("s3://archives/absent.warc") == error_of("s3://no-such-bucket/a.warc") == told


def test_what_is_refused_is_told_at_once(server: RangeServer, file: Served) -> None:
    file.statuses = [403]
    assert error_of(URL) == "cannot be read (403 Forbidden); check the access rights"
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [400, 501, 505])
def test_an_answer_that_no_other_try_changes_is_an_outage_at_once(
    status: int, server: RangeServer, file: Served
) -> None:
    """An old token, a wrong region or clock: it is not the fault of the object."""
    file.statuses = [status]
    with pytest.raises(OutageError, match=rf"cannot be read \({status} .+\)$"), open_ranges(URL):
        pass
    assert len(server.ranges("/archives/crawl/a.warc.gz")) == 1


def test_a_bucket_that_refuses_three_objects_is_not_asked_for_more(server: RangeServer, file: Served) -> None:
    urls = [f"s3://archives/{number}" for number in range(5)]
    for number, url in enumerate(urls):
        server.add(f"/archives/{number}", BODY).statuses = [403]
        told = (
            "cannot be read (403 Forbidden)" if number < 3 else "not requested, because s3://archives refused"
        )
        assert told in error_of(url)
    assert len(server.seen) == 3


def test_an_object_without_a_time_has_the_time_0(file: Served) -> None:
    entry = locate(URL).status()
    assert entry is not None
    assert (entry.size, entry.modified, entry.tag) == (len(BODY), 0, "one")


@pytest.mark.parametrize("url", ["s3://", "s3://bucket", "s3://bucket/", "s3:///key", "s3://no_bucket!/key"])
def test_what_names_no_object_is_told(bucket: Any, url: str) -> None:
    assert error_of(url) == "the URL has no bucket or no key; use s3://BUCKET/KEY"


def test_a_key_of_no_encoding_is_no_fault_of_ours(bucket: Any) -> None:
    assert error_of("s3://archives/a\udcfc.warc").startswith("cannot be read (")


def test_a_profile_that_does_not_exist_is_told(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert error_of(URL) == "cannot be read (The config profile (nobody) could not be found)"


def test_an_object_that_is_written_anew_is_refused(bucket: Any) -> None:
    with open_ranges(URL) as read_at:
        assert read_at(0, 10) == BODY[:10]
        bucket.put_object(Bucket="archives", Key="crawl/a.warc.gz", Body=BODY[::-1])
        with pytest.raises(InputError, match=r"has changed while it was read; run it again$"):
            read_at(10, 10)


def test_an_object_with_another_etag_is_refused(file: Served) -> None:
    with open_ranges(URL) as read_at:
        file.etag = '"two"'
        with pytest.raises(InputError, match="has changed while it was read"):
            read_at(0, 10)


def test_a_body_that_is_cut_is_continued(server: RangeServer, file: Served, hurry: None) -> None:
    file.cuts = [100_000, 0]
    with open_ranges(URL) as read_at:
        assert read_at(0, 500_000) == BODY[:500_000]
    wanted = server.ranges("/archives/crawl/a.warc.gz")
    assert wanted[1] == "bytes=0-499999"
    assert wanted[2] == wanted[3] != wanted[1], "from where it was cut"


def test_bodies_that_bring_nothing_are_given_up(server: RangeServer, file: Served, hurry: None) -> None:
    file.cuts = [0] * 100
    assert error_of(URL) == "did not answer (connection lost) after 8 tries; run it again"


@pytest.mark.parametrize("etag", ["", None])
def test_servers_that_tell_little_are_read(file: Served, hurry: None, etag: str | None) -> None:
    file.etag = etag
    with open_ranges(URL) as read_at:
        file.tells_length, file.cuts = False, [0] * 7
        assert read_at(0, 100) == BODY[:100]
        file.cuts = [0] * 8
        with pytest.raises(InputError, match="connection lost"):
            read_at(0, 100)


def test_an_object_of_unknown_size_is_not_taken_for_an_empty_one(file: Served) -> None:
    file.tells_length = False
    assert error_of(URL) == "the server does not report the size; download the file and use the local copy"
    assert locate(URL).size() == 0


def test_a_server_that_knows_no_ranges_is_refused(file: Served) -> None:
    file.knows_ranges = False
    told = "the server answers a request for bytes 0-99 with no Content-Range; download the file and use the local copy"
    assert error_of(URL) == told


def test_more_than_the_range_says_is_no_answer(file: Served, hurry: None) -> None:
    with open_ranges(URL) as read_at:
        file.headers["Content-Range"] = f"bytes 100-149/{len(BODY)}"
        file.wider = 100
        with pytest.raises(InputError, match="the server sent 150 bytes for bytes 100-149"):
            read_at(100, 50)


def test_without_boto3_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(UsageError) as caught, open_ranges(URL):
        pass
    assert str(caught.value) == "s3:// needs boto3: pip install './cdxmill[s3]', with a checkout in ./cdxmill"


def test_with_a_key_of_the_customer_the_etag_shows_no_change(file: Served) -> None:
    file.headers |= {"x-amz-meta-cdxmill": "mine", "x-amz-meta-cdxmill-etag": "other"}
    assert s3.stamped(URL)[1] == ""
    file.headers["x-amz-server-side-encryption-customer-algorithm"] = "AES256"
    assert s3.stamped(URL)[1] == "mine"


def test_a_body_that_is_longer_than_its_range_is_cut(file: Served, slept: list[float]) -> None:
    with open_ranges(URL) as read_at:
        file.tells_length, file.surplus = False, b"more"
        assert read_at(100, 50) == BODY[100:150]
    assert slept == []


def test_a_body_that_is_cut_and_brings_nothing_from_then_on_is_given_up(
    server: RangeServer, file: Served, hurry: None
) -> None:
    with open_ranges(URL) as read_at:
        for size in (500_000, 2):
            file.cuts = [1000 if size > 1000 else 0, *[0] * 100]
            with pytest.raises(InputError, match="connection lost"):
                read_at(0, size)


def test_a_body_that_drips_is_given_up(
    file: Served, monkeypatch: pytest.MonkeyPatch, two_tries: None, hurry: None
) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", "0.1")
    with open_ranges(URL) as read_at:
        file.drips_body = 0.01
        with pytest.raises(OutageError, match=r"did not answer \(sends too slowly\)"):
            read_at(0, 500_000)
