"""What is written to S3 is whole or absent: on moto, and on a server that fails half-way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.errors import InputError, StoppedError
from cdxmill.storage import s3
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import locate
from cdxmill.storage.s3_etag import PART
from tests.material.background import in_background


@cache
def large() -> bytes:
    """More than two parts of an upload."""
    return random.Random(9).randbytes(20 << 20)


"""Several parts of a multipart upload."""


@pytest.fixture(autouse=True)
def two_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed requests; botocore waits seconds before later tries."""
    monkeypatch.setattr(s3, "TRIES", 2)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


@pytest.fixture
def bucket(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of moto, and a bucket in it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="written")
    return client


def body_of(client: Any, key: str) -> bytes:
    body: bytes = client.get_object(Bucket="written", Key=key)["Body"].read()
    return body


def test_large_files_are_uploaded_in_parts_and_small_ones_at_once(bucket: Any) -> None:
    for key, body in (("large", large()), ("small", b"small")):
        with locate(f"s3://written/{key}").write_atomic() as file:
            file.write(body)
        assert body_of(bucket, key) == body
    assert bucket.head_object(Bucket="written", Key="large")["ETag"].endswith('-3"')
    assert bucket.list_multipart_uploads(Bucket="written").get("Uploads", []) == []


def test_directories_are_listed_whole(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")
    for number in range(105):
        bucket.put_object(Bucket="written", Key=f"many/{number}", Body=b"")
    bucket.put_object(Bucket="written", Key="many/", Body=b"")
    assert bucket.list_objects_v2(Bucket="written")["IsTruncated"]
    assert len(locate("s3a://written/many").entries()) == 105
    assert locate("s3://written").entries()["many"] == Entry(0, 0, is_directory=True)


def test_a_bucket_that_does_not_exist_stops_the_run(bucket: Any) -> None:
    told = r"^s3://absent/a: cannot be written \(404 NoSuchBucket\); check the bucket and the key$"
    with pytest.raises(StoppedError, match=told), locate("s3://absent/a").write_atomic() as file:
        file.write(b"1")
    told = r"^s3://absent/a: cannot be deleted \(404 NoSuchBucket\); check the bucket and the key$"
    with pytest.raises(StoppedError, match=told):
        locate("s3://absent/a").remove()
    with pytest.raises(InputError, match="404 NoSuchBucket"):
        locate("s3://absent/folder").entries()


@pytest.mark.parametrize("url", ["s3://", "s3://bucket", "s3:///key"])
def test_what_names_no_object_is_told_before_anything_is_written(url: str) -> None:
    with pytest.raises(InputError, match="has no bucket or no key"), locate(url).write_atomic():
        raise AssertionError("not reached")
    with pytest.raises(InputError, match="has no bucket or no key"):
        locate(url).status()


def test_a_disk_that_is_full_stops_the_run(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with (
        pytest.raises(StoppedError, match="cannot be written"),
        locate("s3://written/a").write_atomic() as file,
    ):
        file.write(b"1")
    assert locate("s3://written/a").status() is None


class _Failing(BaseHTTPRequestHandler):
    """Begins multipart uploads, and refuses their second part."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each body comes 40 ms after its headers
    seen: list[str]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        self._answer(200, b"<R><Bucket>b</Bucket><Key>k</Key><UploadId>7</UploadId></R>")

    def do_PUT(self) -> None:
        self._answer(403 if "partNumber=2" in self.path else 200, b"")

    def do_DELETE(self) -> None:
        self._answer(204, b"")

    def _answer(self, status: int, body: bytes) -> None:
        if "100-continue" not in self.headers.get("Expect", "") or status < 400:
            self._read()
        self.seen.append(f"{self.command} {self.path.partition('?')[2]}")
        self.send_response(status)
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _read(self) -> None:
        if self.headers.get("Transfer-Encoding") != "chunked":
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            self.rfile.read(size + 2)
        while self.rfile.readline().strip():
            pass


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What such a server is asked."""
    seen: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Failing,), {"seen": seen}))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
    with in_background(lambda: server):
        yield seen


def test_an_upload_that_fails_half_way_is_aborted(failing: list[str]) -> None:
    told = r"^s3://b/k: cannot be written \(403.*\); check the access rights$"
    with pytest.raises(StoppedError, match=told), locate("s3://b/k").write_atomic() as file:
        file.write(large())
    assert [request for request in failing if request.startswith("DELETE")] == ["DELETE uploadId=7"]
    assert "POST uploadId=7" not in failing, "never completed"


class _Deciding(_Failing):
    """Answers PUTs with `statuses`. It has an object that nobody may delete, on the second page of its list."""

    statuses: list[tuple[int, str]]

    def do_GET(self) -> None:
        page = b"<IsTruncated>true</IsTruncated><NextContinuationToken>2</NextContinuationToken>"
        if "continuation-token=2" in self.path:
            page = b"<Contents><Key>c/a</Key><Size>1</Size></Contents>"
        self._answer(200, b"<R><Name>b</Name>%b</R>" % page)

    def do_POST(self) -> None:
        error = b"<Error><Key>c/a</Key><Code>AccessDenied</Code></Error>"
        self._answer(200, b"<DeleteResult>%b</DeleteResult>" % error)

    def do_PUT(self) -> None:
        status, code = self.statuses.pop(0)
        self.seen.append("if" if self.headers.get("If-None-Match") else "always")
        del self.headers["Expect"]  # the body comes without a further answer
        self._answer(status, f"<Error><Code>{code}</Code></Error>".encode() if code else b"")


@pytest.fixture
def deciding(monkeypatch: pytest.MonkeyPatch, hurry: None) -> Iterator[type[_Deciding]]:
    handler = type("Handler", (_Deciding,), {"seen": [], "statuses": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
    with in_background(lambda: server):
        yield handler


def test_an_object_that_cannot_be_deleted_stops_the_run(deciding: type[_Deciding]) -> None:
    told = r"^s3://b/c: cannot be deleted \(AccessDenied: c/a\)"
    with pytest.raises(StoppedError, match=told):
        locate("s3://b/c").remove_tree()


@pytest.mark.parametrize(
    ("answers", "is_written", "requests"),
    [
        ([(200, "")], True, ["if"]),
        ([(412, "PreconditionFailed")], False, ["if"]),
        ([(404, "NoSuchKey")], False, ["if"]),
        ([(409, "ConditionalRequestConflict"), (200, "")], True, ["if", "if"]),
        ([(501, "NotImplemented"), (200, "")], True, ["if", "always"]),
        ([(404, "NoSuchBucket")], None, ["if"]),
        ([(403, "AccessDenied")], None, ["if"]),
    ],
)
def test_a_small_file_is_written_if_nobody_has_written_it(
    answers: list[tuple[int, str]], is_written: bool | None, requests: list[str], deciding: type[_Deciding]
) -> None:
    """Another request at the same time is no answer, and a service without conditions gets the file all the same."""
    deciding.statuses = answers
    if is_written is None:
        with pytest.raises(StoppedError, match=r"^s3://b/k: cannot be written"):
            locate("s3://b/k").swap(None, b"mine")
    else:
        assert locate("s3://b/k").swap(None, b"mine") == is_written
    assert [one for one in deciding.seen if one in ("if", "always")] == requests


def test_each_try_of_a_small_file_is_one_request(deciding: type[_Deciding]) -> None:
    deciding.statuses = [(500, "InternalError")] * 99
    with pytest.raises(StoppedError, match=r"^s3://b/k: did not answer \(500\) after 8 tries"):
        locate("s3://b/k").swap(None, b"mine")
    assert deciding.seen.count("if") == 8


def test_a_file_that_changes_after_it_was_compared_is_not_replaced(
    bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, put = locate("s3://written/swapped"), s3._put_if

    def put_late(*args: Any) -> bool:
        bucket.put_object(Bucket="written", Key="swapped", Body=b"theirs")
        return put(*args)

    for known, old in ((b"old", b"old"), (None, None)):
        place.remove()
        if old is not None:
            bucket.put_object(Bucket="written", Key="swapped", Body=old)
        with monkeypatch.context() as patch:
            patch.setattr(s3, "_put_if", put_late)
            assert not place.swap(known, b"mine")
        assert place.read_bytes() == b"theirs"
    assert place.swap(b"theirs", b"mine")
    assert place.read_bytes() == b"mine"


@pytest.mark.parametrize("size", [0, PART - 1, PART, 2 * PART + 1])
def test_the_etag_of_what_is_uploaded_with_a_stamp_is_known_before(size: int, bucket: Any) -> None:
    place = locate("s3://written/stamped")
    with place.write_atomic(stamp=lambda: "mine") as file:
        file.write(large()[:size])
    head = bucket.head_object(Bucket="written", Key="stamped")
    assert head["ETag"] == f'"{head["Metadata"]["cdxmill-etag"]}"'
    assert place.stamped() == (place.status(), "mine")


@pytest.mark.parametrize(
    ("body", "more", "stamp"),
    [
        (b"new", {}, "mine"),
        (b"odd", {}, ""),
        (b"odd", {"ServerSideEncryption": "AES256"}, ""),
        (b"odd", {"ServerSideEncryption": "aws:kms"}, "mine"),
    ],
)
def test_a_stamp_is_that_of_its_content(body: bytes, more: dict[str, str], stamp: str, bucket: Any) -> None:
    """With keys of KMS, the ETag of an object does not show its content."""
    place = locate("s3://written/stamped")
    with place.write_atomic(stamp=lambda: "mine") as file:
        file.write(b"new")
    metadata = bucket.head_object(Bucket="written", Key="stamped")["Metadata"]
    bucket.put_object(Bucket="written", Key="stamped", Body=body, Metadata=metadata, **more)
    assert place.stamped() == (place.status(), stamp)


def test_a_tree_is_deleted_with_the_object_of_its_name(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")
    keys = ["tree", "tree/", *(f"tree/{number}" for number in range(25)), "tree.beside", "trees/a"]
    for key in keys:
        bucket.put_object(Bucket="written", Key=key, Body=b"1")
    locate("s3://written/tree").remove_tree()
    assert set(locate("s3://written").entries()) & {"tree", "tree.beside", "trees"} == {
        "tree.beside",
        "trees",
    }
    locate("s3://written/absent").remove_tree()


def test_a_large_object_is_moved_in_parts(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "_COPIED_PART", PART)
    with locate("s3://written/one").write_atomic() as file:
        file.write(large())
    locate("s3://written/one").move(locate("s3://written/other"))
    assert body_of(bucket, "other") == large()
    assert bucket.head_object(Bucket="written", Key="other")["ETag"].endswith('-3"')
    assert not locate("s3://written/one").exists()
