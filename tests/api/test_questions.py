"""Questions to clusters and archives by functions: what is raised when, what is kept open, and what a record has."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import cdxmill
from cdxmill import InputError, UsageError
from cdxmill.messages import Step

from ..material.clusters import write_raw_cluster

HTTP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
PACKED = gzip.compress(b"payload", mtime=0)


def record(kind: str, body: bytes, *fields: str) -> bytes:
    head = "\r\n".join(["WARC/1.0", f"WARC-Type: {kind}", *fields, f"Content-Length: {len(body)}"])
    return gzip.compress(f"{head}\r\n\r\n".encode() + body + b"\r\n\r\n", mtime=0)


RECORDS = [
    record("warcinfo", b"software: x\r\n", "Content-Type: application/warc-fields"),
    record(
        "response",
        HTTP + PACKED,
        "WARC-Target-URI: http://a.com/",
        "WARC-Date: 2020-01-02T03:04:05Z",
        "Content-Type: application/http; msgtype=response",
    ),
]
OFFSET = len(RECORDS[0])


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`d/a.warc.gz`, and the cluster C of it."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    Path("d/a.warc.gz").write_bytes(b"".join(RECORDS))
    line = (
        b'com,a)/ 20200102030405 {"url": "http://a.com/", "mime": "text/html", "status": "200", "length": "%d",'
        b' "offset": "%d", "filename": "a.warc.gz"}' % (len(RECORDS[1]), OFFSET)
    )
    write_raw_cluster(Path("C"), [line])
    return tmp_path


def test_an_archive_has_its_base_name_in_captures() -> None:
    (found,) = cdxmill.captures("d/a.warc.gz")
    assert (found["filename"], found["offset"], found["url"]) == ("a.warc.gz", str(OFFSET), "http://a.com/")


@pytest.mark.parametrize(("decode", "payload"), [(True, b"payload"), (False, PACKED)])
def test_a_payload_is_decoded_unless_that_is_not_wanted(decode: bool, payload: bytes) -> None:
    with cdxmill.Cluster("C", archives="d") as cluster:
        found = [
            cdxmill.get("d/a.warc.gz", offset=OFFSET, decode=decode),
            cdxmill.get("C", "http://a.com/", archives="d", decode=decode),
            cluster.get("http://a.com/", decode=decode),
        ]
    for one in found:
        assert (one.payload, one.http_head) == (payload, HTTP)
        assert (one.url, one.timestamp) == ("http://a.com/", "20200102030405")
        assert (Path(one.filename).name, one.offset) == ("a.warc.gz", OFFSET)
        assert one.headers["warc-type"] == "response"


def test_a_record_without_a_url_and_a_time_has_empty_ones() -> None:
    found = cdxmill.get("d/a.warc.gz", offset=0)
    assert (found.url, found.timestamp, found.http_head) == ("", "", b"")
    assert found.payload == b"software: x\r\n"


def test_archives_stay_open_between_two_questions() -> None:
    with cdxmill.Cluster("C", archives="d") as cluster:
        assert cluster._store() is cluster._store()


def test_a_wrong_question_is_told_at_once_and_a_wrong_url_in_its_turn() -> None:
    told = r"^invalid filter '~url:\('"
    with pytest.raises(UsageError, match=told):
        cdxmill.lookup_many("C", ["http://a.com/"], filter="~url:(")
    with pytest.raises(UsageError, match=told):
        cdxmill.lookup("C", "http://a.com/", filter="~url:(")
    with pytest.raises(UsageError, match="lookup_many takes several URLs"):
        cdxmill.lookup_many("C", "http://a.com/")
    answers = cdxmill.lookup_many("C", ["http://a.com/", "http://x:y/"])
    with pytest.raises(UsageError, match="http://x:y/: not a URL"):
        list(answers)
    with pytest.raises(InputError, match="absent"):
        cdxmill.get("C", "http://absent.com/", archives="d")


def test_each_call_begins_a_run_and_tells_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    monkeypatch.setattr("cdxmill.api.calls.begin_run", lambda: begun.append(1))
    steps: list[Step] = []
    cdxmill.index("d/a.warc.gz", output="out", processes=1, progress=steps.append)
    assert begun == [1]
    assert steps
    assert steps[-1].done == steps[-1].total == 1
