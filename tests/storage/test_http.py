"""What is read of a web server, and what is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cdxmill.errors import InputError
from cdxmill.storage.location import locate
from cdxmill.storage.web.http import open_ranges

from .range_server import RangeServer, Served
from .web_file import BODY, STEP, A, error_of, read_all


def test_ranges_of_the_asked_size_are_read_over_one_connection(server: RangeServer, file: Served) -> None:
    assert read_all(server.url + A) == BODY
    assert server.ranges(A) == ["bytes=0-0"] + [
        f"bytes={at}-{at + STEP - 1}" for at in range(0, len(BODY), STEP)
    ]
    assert server.connections == 1


def test_nothing_is_left_open(server: RangeServer, file: Served) -> None:
    read_all(server.url + A)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for file.knows_ranges in (True, False):
        with open_ranges(server.url + A) as read_at:
            read_at(0, 10)
    time.sleep(0.1)  # the server's end of the connection is in this process, too
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (404, "cannot be read (404 Not Found); check the URL"),
        (410, "cannot be read (410 Gone); check the URL"),
        (403, "cannot be read (403 Forbidden); check the access rights"),
        (401, "cannot be read (401 Unauthorized); check the access rights"),
        (400, "cannot be read (400 Bad Request)"),
        (501, "cannot be read (501 Not Implemented)"),
    ],
)
def test_a_refusal_is_told_at_once(
    server: RangeServer, file: Served, slept: list[float], status: int, reason: str
) -> None:
    file.statuses = [status]
    assert error_of(server.url + A) == reason
    assert len(server.seen) == 1
    assert slept == []


@pytest.mark.parametrize(
    ("kind", "page", "told"),
    [
        ("application/json", b'{"message": "No Captures found"}', ": No Captures found"),
        ("application/json; charset=utf-8", b'{"message": "no"}', ": no"),
        ("application/json", b'{"message": 7}', ""),
        ("application/json", b"[]", ""),
        ("application/json", b"{", ""),
        ("text/html", b'{"message": "no"}', ""),
    ],
)
def test_the_message_of_a_refusal_is_told(
    server: RangeServer, file: Served, kind: str, page: bytes, told: str
) -> None:
    file.statuses, file.page, file.headers = [404], page, {"Content-Type": kind}
    assert error_of(server.url + A) == f"cannot be read (404 Not Found{told}); check the URL"


@pytest.mark.parametrize("knows_ranges", [True, False])
@pytest.mark.parametrize("change", ["etag", "modified", "size"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    server: RangeServer, file: Served, hurry: None, change: str, knows_ranges: bool
) -> None:
    file.knows_ranges = knows_ranges
    file.headers["Last-Modified"] = "Wed, 01 Jan 2025 00:00:00 GMT"
    file.cuts = [] if knows_ranges else [STEP + 100]
    with open_ranges(server.url + A) as read_at:
        assert read_at(0, STEP) == BODY[:STEP]
        if change == "etag":
            file.etag = '"two"'
        elif change == "modified":
            file.headers["Last-Modified"] = "Thu, 02 Jan 2025 00:00:00 GMT"
        else:
            file.body = BODY + b"more"
        with pytest.raises(InputError, match=r"has changed while it was read; run it again$"):
            read_at(STEP, STEP)


def test_a_longer_range_than_asked_for_is_an_error(server: RangeServer, file: Served) -> None:
    with open_ranges(server.url + A) as read_at:
        file.wider = 1
        with pytest.raises(InputError, match="a request for bytes 5-14 with bytes 5-15/"):
            read_at(5, 10)


@pytest.mark.parametrize(("shift", "got"), [(1, "6-15"), (-1, "4-13")])
def test_a_range_that_was_not_asked_for_is_refused(
    server: RangeServer, file: Served, shift: int, got: str
) -> None:
    with open_ranges(server.url + A) as read_at:
        file.shift = shift
        told = f"the server answers a request for bytes 5-14 with bytes {got}/1048576; download the file"
        with pytest.raises(InputError, match=told):
            read_at(5, 10)


def test_more_than_was_asked_for_is_left(server: RangeServer, file: Served) -> None:
    file.tells_length, file.surplus = False, b"surplus"
    with open_ranges(server.url + A) as read_at:
        assert read_at(5, 10) == BODY[5:15]


def test_a_page_that_says_there_is_no_more_is_no_other_state_of_the_file(
    server: RangeServer, file: Served
) -> None:
    file.tells_total = False
    with open_ranges(server.url + A) as read_at:
        file.etags = ['"of the page"', '"one"']
        assert read_at(len(BODY), 10) == b""


def test_what_is_compressed_in_storage_is_read_as_stored(server: RangeServer, file: Served) -> None:
    file.headers["Content-Encoding"] = "gzip"
    for file.knows_ranges in (True, False):
        assert read_all(server.url + A) == BODY
    assert {headers["accept-encoding"] for headers in server.request_headers} == {"identity"}


def test_a_size_is_asked_for_once(server: RangeServer, file: Served) -> None:
    assert locate(server.url + A).size() == len(BODY)
    file.statuses = [404]
    assert locate(server.url + A).size() == 0
    assert server.ranges(A) == ["bytes=0-0"] * 2
