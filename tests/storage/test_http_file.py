"""One file of a web server: what is a change of it, what is its end, and which answers are asked for again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cdxmill.errors import AbsentError, InputError, OutageError, UntriedError
from cdxmill.storage import patience
from cdxmill.storage.cache import open_known
from cdxmill.storage.web import http_file
from cdxmill.storage.web.http import open_ranges
from cdxmill.storage.web.http_file import HttpFile, NoRanges

from .range_server import RangeServer, Served
from .web_file import BODY, A, error_of, read_all

DAY = "Wed, 01 Jan 2025 00:00:00 GMT"
NEXT = "Thu, 02 Jan 2025 00:00:00 GMT"


def set_version(file: Served, etag: str | None, modified: str | None) -> None:
    file.etag, file.headers = etag, {"Last-Modified": modified} if modified else {}


@pytest.mark.parametrize(
    ("versions", "is_changed"),
    [
        ([('"one"', DAY), (None, DAY), ('"one"', None), ('"one"', DAY)], False),
        ([(None, None), ('"one"', None), (None, DAY)], False),
        ([('"one"', None), (None, None), ('"two"', None)], True),
        ([(None, DAY), (None, None), (None, NEXT)], True),
        ([('"one"', DAY), ('"one"', NEXT)], True),
    ],
    ids=["some say less", "some say more", "ETag", "time", "time alone"],
)
def test_a_file_has_changed_if_a_value_of_its_first_answer_has(
    versions: list[tuple[str | None, str | None]], is_changed: bool, server: RangeServer, file: Served
) -> None:
    set_version(file, *versions[0])
    with open_ranges(server.url + A) as read_at:
        for version in versions[1:-1]:
            set_version(file, *version)
            assert read_at(5, 10) == BODY[5:15]
        set_version(file, *versions[-1])
        if not is_changed:
            assert read_at(70, 10) == BODY[70:80]
            return
        with pytest.raises(InputError, match="has changed while it was read; run it again"):
            read_at(70, 10)


@pytest.mark.parametrize("offset", [0, 500, 1000, 5000])
def test_a_file_that_gets_shorter_while_it_is_read_has_changed(
    offset: int, server: RangeServer, file: Served
) -> None:
    with open_ranges(server.url + A) as read_at:
        assert read_at(0, 2000) == BODY[:2000]
        file.body = BODY[:500]
        with pytest.raises(InputError, match="has changed while it was read"):
            read_at(offset, 10)


@pytest.mark.parametrize("tells_total", [False, True])
@pytest.mark.parametrize(("left", "offset"), [(50, 100), (0, 100), (0, 50), (0, 0)])
def test_bytes_that_were_seen_are_not_behind_the_end(
    left: int, offset: int, tells_total: bool, server: RangeServer, file: Served, hurry: None
) -> None:
    """Even if the server did not tell the size before: the file was truncated."""
    file.tells_total = file.tells_length = False
    with open_known(server.url + A) as read_at:
        assert read_at(0, 100) == BODY[:100]
        file.body, file.tells_total = BODY[:left], tells_total
        told = "has changed while it was read" if tells_total else f"416 for byte {offset}"
        with pytest.raises(InputError, match=told):
            read_at(offset, 10)


@pytest.mark.parametrize("tells_length", [False, True])
@pytest.mark.parametrize("size", [0, 1, 100])
def test_what_is_behind_the_end_of_a_file_of_unknown_size_is_empty(
    size: int, tells_length: bool, server: RangeServer, file: Served, slept: list[float]
) -> None:
    file.body, file.tells_total, file.tells_length = BODY[:size], False, tells_length
    for first in (0, size, size + 1, size + 50):
        with open_known(server.url + A) as read_at:
            assert read_at(first, 10) == BODY[first:size][:10]
            assert read_at(0, 200) == BODY[:size]
            assert read_at(size, 10) == b""
            assert read_at(0, size) == BODY[:size]
            assert read_at(size + 1, 10) == read_at(size, 10) == b""
    assert slept == []


@pytest.mark.parametrize("opened", [open_ranges, open_known])
def test_a_wrong_416_for_the_first_byte_is_no_empty_file(
    opened: Callable[..., Any], server: RangeServer, file: Served, hurry: None
) -> None:
    file.statuses, file.tells_total, file.tells_length = [416], False, False
    with opened(server.url + A) as read_at:
        assert read_at(0, 100) == BODY[:100]


def test_nothing_is_asked_for_at_the_end_of_a_file_of_known_size(server: RangeServer, file: Served) -> None:
    with open_ranges(server.url + A) as read_at:
        assert read_at(len(BODY), 10) == read_at(len(BODY) + 1, 10) == read_at(5, 0) == b""
    assert server.ranges(A) == ["bytes=0-0"]


@pytest.mark.parametrize(
    ("most", "size", "waits"), [(256, 4100, 0), (255, 4100, 1), (10, 160, 0), (9, 160, 1), (1, 15, 0)]
)
def test_an_answer_has_a_sixteenth_of_its_range_or_256_bytes(
    most: int, size: int, waits: int, server: RangeServer, file: Served, slept: list[float]
) -> None:
    with open_ranges(server.url + A) as read_at:
        file.most = most
        assert read_at(5, size) == BODY[5 : 5 + size]
    assert len(slept) == waits


def test_short_answers_are_enough_if_the_size_is_unknown(
    server: RangeServer, file: Served, slept: list[float]
) -> None:
    file.most, file.tells_total = 10, False
    with open_ranges(server.url + A) as read_at:
        assert read_at(5, 1000) == BODY[5:1005]
    assert slept == []


def test_a_whole_file_with_the_headers_of_a_range_is_no_range(
    server: RangeServer, file: Served, hurry: None
) -> None:
    with open_ranges(server.url + A) as read_at:
        file.knows_ranges, file.headers = False, {"Content-Range": f"bytes 5-14/{len(BODY)}"}
        with pytest.raises(OutageError, match="the server sent the whole file instead of a range"):
            read_at(5, 10)


def test_a_file_that_was_read_in_ranges_is_not_downloaded_after_one_answer_without(
    server: RangeServer, file: Served, hurry: None
) -> None:
    found = HttpFile(server.url + A)
    assert found.read_at(0, 10) == BODY[:10]
    file.statuses, file.page = [200], b"a page"
    assert found.read_at(10, 10) == BODY[10:20]


def test_an_error_is_remembered_for_some_minutes(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = HttpFile(server.url + A)
    file.statuses = [404]
    errors = []
    for ask in (lambda: found.read_at(0, 10), lambda: found.read_at(5, 10), found.first_answer):
        with pytest.raises(AbsentError) as caught:
            ask()
        errors.append((caught.value.path, caught.value.reason, caught.value.hint))
    assert errors == [(server.url + A, "cannot be read (404 Not Found)", "check the URL")] * 3
    assert len(server.seen) == 1
    monkeypatch.setattr(http_file, "_REMEMBERED", 0.0)
    assert found.read_at(0, 10) == BODY[:10]


@pytest.mark.parametrize("steps", [5, 6])
def test_five_redirects_are_followed_over_two_connections(steps: int, server: RangeServer) -> None:
    server.add("/0", BODY)
    for step in range(1, steps + 1):
        server.add(f"/{step}", b"").moved_to = f"/{step - 1}"
    if steps == 5:
        assert read_all(f"{server.url}/5") == BODY
    else:
        assert error_of(f"{server.url}/6") == "redirects more than 5 times; check the URL"
    assert server.connections == 2, "one of them is for what a server leads to"


@pytest.mark.parametrize(("first", "then"), [("", "gzip"), ("gzip", ""), ("x-gzip", "gzip")])
def test_all_answers_have_one_encoding(
    first: str, then: str, server: RangeServer, file: Served, hurry: None
) -> None:
    """One machine may send the file as it is stored, and another one its content."""
    file.headers = {"Content-Encoding": first} if first else {}
    with open_ranges(server.url + A) as read_at:
        assert read_at(0, 10) == BODY[:10]
        file.headers = {"Content-Encoding": then} if then else {}
        with pytest.raises(OutageError, match="the server compresses some answers only"):
            read_at(0, 10)


@pytest.mark.parametrize("encoding", ["", "identity", "AWS-Chunked", " zstd "])
@pytest.mark.parametrize("trouble", ["", "knows_ranges", "tells_length"])
def test_an_encoding_of_the_stored_file_is_none(encoding: str, trouble: str, server: RangeServer) -> None:
    file = server.add("/a.warc.ZST", BODY)
    file.headers = {"Content-Encoding": encoding} if encoding else {}
    if trouble:
        setattr(file, trouble, False)
    if trouble == "tells_length" and "zstd" in encoding:
        assert "the server compresses the file (zstd)" in error_of(f"{server.url}/a.warc.ZST")
    else:
        assert read_all(f"{server.url}/a.warc.ZST") == BODY


def test_a_whole_file_of_unknown_length_may_have_the_encoding_of_the_stored_file(
    server: RangeServer, file: Served, hurry: None
) -> None:
    file.headers, file.knows_ranges, file.tells_length = {"Content-Encoding": "gzip"}, False, False
    assert read_all(server.url + A) == BODY


def test_a_length_that_is_no_number_is_none(server: RangeServer, file: Served, hurry: None) -> None:
    file.headers, file.knows_ranges, file.tells_length = {"Content-Length": "\u00b2"}, False, False
    assert read_all(server.url + A) == BODY


@pytest.mark.parametrize("asked", ["\u00b2", "-7", "1e3"])
def test_a_time_to_wait_that_is_no_number_is_none(
    asked: str, server: RangeServer, file: Served, slept: list[float]
) -> None:
    file.statuses, file.retry_after = [503], asked
    assert read_all(server.url + A) == BODY
    assert [wait <= patience.FIRST_WAIT for wait in slept] == [True]


def test_each_try_is_one_request(server: RangeServer, file: Served, hurry: None) -> None:
    file.drops = 100
    assert error_of(server.url + A) == "did not answer (connection lost) after 8 tries; run it again"
    assert len(server.seen) == 8


def test_a_server_is_read_however_short_the_patience_is(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", "0.9")
    assert HttpFile(server.url + A).read_at(5, 10) == BODY[5:15]


def test_a_whole_file_that_brings_nothing_more_is_given_up(
    server: RangeServer, file: Served, hurry: None
) -> None:
    file.knows_ranges, file.cuts = False, [100_000] * 100
    with open_ranges(server.url + A) as read_at, pytest.raises(OutageError, match="connection lost"):
        read_at(0, len(BODY))


def test_an_empty_file_of_unknown_size_is_empty(server: RangeServer, file: Served, hurry: None) -> None:
    file.body, file.knows_ranges, file.tells_length = b"", False, False
    assert read_all(server.url + A) == b""


def test_a_file_whose_first_answer_was_whole_has_no_ranges(server: RangeServer, file: Served) -> None:
    file.knows_ranges = False
    found = HttpFile(server.url + A)
    found.first_answer().close()
    with pytest.raises(NoRanges):
        found.read_at(5, 10)


def test_a_server_that_refuses_three_files_in_a_row_is_not_asked_for_more(server: RangeServer) -> None:
    """A file that it gives, or that it does not have, is an answer."""
    for number, status in enumerate([403, 401, 200, 403, 403, 404, 401, 403, 451, 200]):
        file = server.add(f"/{number}", BODY)
        file.statuses = [] if status == 200 else [status]
        if number < 9 and status != 200:
            assert error_of(f"{server.url}/{number}").startswith(f"cannot be read ({status} ")
        elif number < 9:
            assert HttpFile(f"{server.url}/{number}").read_at(5, 10) == BODY[5:15]
    before = len(server.seen)
    told = r"not requested, because 127\.0\.0\.1.* refused 3 files in a row \(451\)"
    with pytest.raises(UntriedError, match=told):
        read_all(f"{server.url}/9")
    assert len(server.seen) == before
