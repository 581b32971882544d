"""Web servers that are down, slow or cut: waited for, with a bound."""

from __future__ import annotations

import http.client

import pytest

from cdxmill.errors import InputError
from cdxmill.storage import patience
from cdxmill.storage.web.http import open_ranges
from cdxmill.storage.web.http_file import HttpFile

from .range_server import RangeServer, Served
from .web_file import BODY, STEP, A, error_of, read_all


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_in_trouble_is_asked_again(
    server: RangeServer, file: Served, slept: list[float], status: int
) -> None:
    file.statuses = [status] * 3
    assert read_all(server.url + A) == BODY
    assert len(slept) == 3


def test_waits_double_and_are_spread(server: RangeServer, file: Served, slept: list[float]) -> None:
    file.statuses = [503] * 7
    read_all(server.url + A)
    longest = [patience.FIRST_WAIT * 2**number for number in range(7)]
    assert all(most / 2 <= wait <= most for wait, most in zip(slept, longest, strict=True))
    assert [wait / most for wait, most in zip(slept, longest, strict=True)] != [slept[0] / longest[0]] * 7


def test_a_server_that_stays_in_trouble_is_given_up(
    server: RangeServer, file: Served, slept: list[float]
) -> None:
    file.statuses = [503] * 100
    assert error_of(server.url + A) == "did not answer (503) after 8 tries; run it again"
    assert len(server.seen) == patience.TRIES == 8
    assert sum(slept) < 70, "about a minute"


def test_trouble_in_the_midst_of_a_file_is_waited_out(server: RangeServer, file: Served, hurry: None) -> None:
    with open_ranges(server.url + A) as read_at:
        assert read_at(0, STEP) == BODY[:STEP]
        file.statuses, file.drops = [503, 500], 2
        assert read_at(STEP, STEP) == BODY[STEP : 2 * STEP]


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ("7", 7, 7.7),
        ("0", 0, 0.5),
        ("86400", 60, 66),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 60, 66),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0, 0.5),
        ("soon", 0, 0.5),
    ],
)
def test_retry_after_is_heeded_up_to_a_bound(
    server: RangeServer, file: Served, slept: list[float], asked: str, least: float, most: float
) -> None:
    file.statuses, file.retry_after = [503], asked
    assert read_all(server.url + A) == BODY
    assert least <= slept[0] <= most


def test_a_body_that_is_cut_is_continued(server: RangeServer, file: Served, hurry: None) -> None:
    file.cuts = [100_000, 0]
    with open_ranges(server.url + A) as read_at:
        assert read_at(10, STEP) == BODY[10 : 10 + STEP]
    _, first, second, third = server.ranges(A)
    assert first == f"bytes=10-{STEP + 9}"
    assert second == third == f"bytes=100010-{STEP + 9}"


def test_bodies_that_bring_nothing_are_given_up(server: RangeServer, file: Served, hurry: None) -> None:
    file.cuts = [0] * 100
    assert error_of(server.url + A) == "did not answer (connection lost) after 8 tries; run it again"


def test_cuts_that_leave_much_behind_are_no_reason_to_give_up(
    server: RangeServer, file: Served, hurry: None
) -> None:
    file.cuts = [70_000] * 15
    assert read_all(server.url + A, len(BODY)) == BODY
    assert file.cuts == []


def test_connections_that_are_dropped_are_made_again(server: RangeServer, file: Served, hurry: None) -> None:
    file.drops = 3
    assert read_all(server.url + A) == BODY


@pytest.mark.parametrize(
    "headers", [{"X": "x" * (64 << 10)}, {f"X{number}": "x" for number in range(101)}], ids=["long", "many"]
)
def test_large_headers_are_an_error(
    headers: dict[str, str], server: RangeServer, file: Served, hurry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, value in (("_MAXHEADERS", 100), ("_MAXLINE", 1 << 16)):  # pywb raises them for its process
        monkeypatch.setattr(http.client, limit, value)
    file.headers = {}
    assert read_all(server.url + A) == BODY
    file.headers = headers
    with pytest.raises(InputError):
        read_all(server.url + A)


def test_a_server_that_is_down_is_named(hurry: None, down: str) -> None:
    assert error_of(down + A) == "did not answer (no connection) after 8 tries; run it again"


def test_a_server_that_is_silent_is_asked_again(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch, hurry: None
) -> None:
    monkeypatch.setattr(patience, "READ_SECONDS", 0.05)
    file.stall = 0.3
    assert error_of(server.url + A) == "did not answer (timed out) after 8 tries; run it again"


def test_a_port_on_which_no_connection_is_made_is_given_up(
    deaf: str, monkeypatch: pytest.MonkeyPatch, hurry: None
) -> None:
    monkeypatch.setattr(patience, "CONNECT_SECONDS", 0.05)
    assert error_of(deaf + A) == "did not answer (timed out) after 8 tries; run it again"


def test_more_than_the_range_says_is_no_answer(server: RangeServer, file: Served, hurry: None) -> None:
    file.headers["Content-Range"] = f"bytes 100-149/{len(BODY)}"
    with pytest.raises(InputError, match="the server sent 100 bytes for bytes 100-149"):
        HttpFile(server.url + A).read_at(100, 100)


def test_a_server_that_does_not_know_the_size_of_a_file_is_read(
    server: RangeServer, file: Served, hurry: None
) -> None:
    file.headers["Content-Range"] = "bytes 100-199/*"
    assert HttpFile(server.url + A).read_at(100, 100) == BODY[100:200]


def test_what_an_answer_promises_counts_where_it_has_no_length(
    server: RangeServer, file: Served, hurry: None
) -> None:
    file.tells_length, file.cuts = False, [0] * 100
    with open_ranges(server.url + A) as read_at, pytest.raises(InputError, match="connection lost"):
        read_at(0, 100)
    file.cuts = [50]
    with open_ranges(server.url + A) as read_at:
        assert read_at(0, 100) == BODY[:100]
