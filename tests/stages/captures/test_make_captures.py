"""Which related records add something to a capture."""

from __future__ import annotations

import pytest

from cdxmill.capture import Capture, Record
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.make_captures import Dated, make_captures, select

URL = b"http://example.com/a"


def record(kind: bytes, name: bytes, block: bytes, about: bytes = b"") -> Record:
    headers = {
        b"warc-type": kind,
        b"warc-target-uri": URL,
        b"warc-record-id": name,
        b"warc-date": b"2024-01-01T00:00:00Z",
    }
    if about:
        headers[b"warc-concurrent-to"] = about
    return Record(0, 10, headers, block, len(block))


def request(line: bytes, body: bytes = b"") -> Record:
    head = b"Content-Type: application/x-www-form-urlencoded\r\n" if body else b""
    return record(b"request", b"<req>", b"%b /a HTTP/1.1\r\n%b\r\n%b" % (line, head, body), b"<res>")


RESPONSE = record(b"response", b"<res>", b"HTTP/1.1 200 OK\r\n\r\nHi")


def keys(*records: Record, post_append: bool = True) -> list[bytes]:
    options = CaptureOptions(post_append=post_append)
    return [
        found.urlkey for found in make_captures(iter(records), b"f", options) if isinstance(found, Capture)
    ]


POST, OTHER, GET = request(b"POST", b"x=1"), request(b"POST", b"x=2"), request(b"GET")
WITH_X = b"com,example)/a?__wb_method=post&x=%d"


@pytest.mark.parametrize("url", [URL, URL + b"b"])
@pytest.mark.parametrize("of_response", [None, b"<req>", b"<other>"])
@pytest.mark.parametrize("of_request", [None, b"<res>", b"<other>"])
def test_a_request_belongs_to_a_response_of_its_url_if_one_names_the_other(
    of_request: bytes | None, of_response: bytes | None, url: bytes
) -> None:
    asking = record(b"request", b"<req>", bytes(POST.block), of_request or b"")
    answer = record(b"response", b"<res>", bytes(RESPONSE.block), of_response or b"")
    asking.headers[b"warc-target-uri"] = url
    belongs = url == URL and (of_request == b"<res>" or of_response == b"<req>")
    key = WITH_X % 1 if belongs else b"com,example)/a"
    assert (keys(asking, answer), keys(answer, asking)) == ([key], [key])


@pytest.mark.parametrize(
    ("records", "key"),
    [
        ([RESPONSE], b"com,example)/a"),
        ([RESPONSE, GET], b"com,example)/a"),
        ([RESPONSE, POST], WITH_X % 1),
        ([POST, RESPONSE], WITH_X % 1),
        ([POST, RESPONSE, GET], WITH_X % 1),
        ([RESPONSE, POST, GET], WITH_X % 1),
        ([RESPONSE, POST, OTHER], WITH_X % 2),
    ],
)
def test_the_last_request_that_adds_to_the_url_makes_the_key(records: list[Record], key: bytes) -> None:
    assert keys(*records) == [key]
    assert keys(*records, post_append=False) == [b"com,example)/a"]


def test_the_line_of_a_request_has_the_key_of_its_response() -> None:
    everything = CaptureOptions(records=None, post_append=True)
    for records in ([RESPONSE, POST], [POST, RESPONSE]):
        captures = [one for one in make_captures(iter(records), b"f", everything) if isinstance(one, Capture)]
        assert [one.urlkey for one in captures] == [WITH_X % 1] * 2
        assert [one.method for one in captures] == [b"POST" if one is RESPONSE else None for one in records]
    (alone,) = make_captures(iter([POST]), b"f", everything)
    assert isinstance(alone, Capture)
    assert alone.urlkey == b"com,example)/a"


def test_records_without_ids_belong_to_no_other() -> None:
    asking, answer = (
        record(kind, b"", bytes(one.block)) for kind, one in ((b"request", POST), (b"response", RESPONSE))
    )
    for one in (asking, answer):
        del one.headers[b"warc-record-id"]
    assert keys(asking, answer) == keys(answer, asking) == [b"com,example)/a"]


def test_the_line_of_a_request_without_its_response_has_its_own_key() -> None:
    everything = CaptureOptions(records=None, post_append=True)
    stranger = record(b"request", b"<other>", bytes(POST.block), b"<elsewhere>")
    captures = list(make_captures(iter([POST, RESPONSE, stranger, RESPONSE]), b"f", everything))
    assert [one.urlkey for one in captures if isinstance(one, Capture)] == [
        *[WITH_X % 1] * 2,
        *[b"com,example)/a"] * 2,
    ]


def test_the_request_of_another_capture_adds_nothing() -> None:
    other = record(b"response", b"<other>", b"HTTP/1.1 200 OK\r\n\r\nHo")
    assert keys(POST, RESPONSE, other) == [WITH_X % 1, b"com,example)/a"]
    assert keys(other, RESPONSE, POST) == [b"com,example)/a", WITH_X % 1]
    assert keys(other, POST, RESPONSE) == [b"com,example)/a", WITH_X % 1]


def test_a_request_that_adds_nothing_has_the_key_of_its_url() -> None:
    everything = CaptureOptions(records=None, post_append=True)
    for records in ([RESPONSE, GET], [GET, RESPONSE]):
        captures = [one for one in make_captures(iter(records), b"f", everything) if isinstance(one, Capture)]
        assert [one.urlkey for one in captures] == [b"com,example)/a"] * 2


def test_the_last_notes_that_are_not_empty_are_used() -> None:
    def notes(text: bytes) -> Record:
        return record(b"metadata", b"<notes>", text, b"<res>")

    told = [notes(b"charset-detected: UTF-8\r\n"), notes(b"charset-detected: KOI8-R\r\n"), notes(b"x: y\r\n")]
    (found,) = make_captures(iter([RESPONSE, *told]), b"f", CaptureOptions(records=frozenset((b"response",))))
    assert isinstance(found, Capture)
    assert found.charset == b"KOI8-R"


def test_notes_are_those_of_the_record_that_names_the_capture() -> None:
    text = b"charset-detected: UTF-8\r\n"
    ours = record(b"metadata", b"<notes>", text, b"<res>")
    elsewhere = ours._replace(headers={**ours.headers, b"warc-target-uri": b"http://example.org/"})
    other, nobody = record(b"metadata", b"<n>", text, b"<other>"), record(b"metadata", b"<n>", text)
    for notes, charset in ((ours, b"UTF-8"), (elsewhere, b"UTF-8"), (other, None), (nobody, None)):
        options = CaptureOptions(records=frozenset((b"response",)))
        (found,) = make_captures(iter([RESPONSE, notes]), b"f", options)
        assert isinstance(found, Capture)
        assert found.charset == charset


@pytest.mark.parametrize(
    ("kind", "content_type", "is_capture"),
    [
        (b"metadata", b"application/warc-fields", False),
        (b"metadata", b"text/anvl; charset=utf-8", False),
        (b"metadata", b"text/plain", True),
        (b"resource", b"application/warc-fields", False),
        (b"resource", b"text/anvl", True),
        (b"response", b"application/warc-fields", True),
        (b"response", b"text/anvl", True),
    ],
)
def test_only_metadata_and_resources_are_notes_of_a_crawler(
    kind: bytes, content_type: bytes, is_capture: bool
) -> None:
    found = record(kind, b"<one>", b"HTTP/1.1 200 OK\r\n\r\nHi")
    found.headers[b"content-type"] = content_type
    options = CaptureOptions(records=frozenset((b"metadata", b"resource", b"response")))
    assert isinstance(select(found, options), Dated) is is_capture


@pytest.mark.parametrize(("block", "mime"), [(b"", b"application/http"), (b"H", None)])
def test_only_a_record_without_a_block_has_the_type_of_its_header_in_place_of_that_in_it(
    block: bytes, mime: bytes | None
) -> None:
    found = record(b"response", b"<one>", block)
    found.headers[b"content-type"] = b"application/http"
    made = list(make_captures(iter([found]), b"f", CaptureOptions()))
    assert [one.mime for one in made if isinstance(one, Capture)] == [mime]
