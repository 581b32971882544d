"""Answers that a server did not mean, or that are not what they say: no byte of them is used."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill.errors import InputError, UntriedError, UsageError
from cdxmill.storage import patience
from cdxmill.storage.cache import open_cached, open_known
from cdxmill.storage.location import Location
from cdxmill.storage.reading import first_bytes
from cdxmill.storage.web.http import open_ranges

from .range_server import RangeServer, Served
from .web_file import BODY, STEP, A, error_of, read_all


@pytest.mark.parametrize("opened", [open_ranges, open_known])
def test_416_within_the_file_is_no_end(
    server: RangeServer, file: Served, hurry: None, opened: Callable[..., object]
) -> None:
    with opened(server.url + A) as read_at:  # type: ignore[attr-defined]
        assert read_at(0, STEP) == BODY[:STEP]
        file.statuses = [416]
        assert read_at(STEP, STEP) == BODY[STEP : 2 * STEP]
        file.statuses = [416] * 100
        with pytest.raises(
            InputError, match=r"did not answer \(416 for byte 524288 of 1048576\) after 8 tries"
        ):
            read_at(2 * STEP, STEP)


@pytest.mark.parametrize("length", [True, False])
def test_416_without_a_size_is_checked(server: RangeServer, file: Served, hurry: None, length: bool) -> None:
    file.tells_total = False
    with open_ranges(server.url + A) as read_at:
        assert read_at(0, STEP) == BODY[:STEP]
        file.statuses, file.tells_length = [416], length
        assert read_at(STEP, STEP) == BODY[STEP : 2 * STEP]
        assert read_at(len(BODY), 10) == read_at(len(BODY) + 5, 10) == b""


def test_the_first_answer_may_be_a_wrong_416(server: RangeServer, file: Served, hurry: None) -> None:
    file.statuses = [416]
    assert read_all(server.url + A) == BODY


def test_a_range_that_a_server_compresses_is_refused(server: RangeServer) -> None:
    file = server.add("/a.warc", BODY)
    told = "the server compresses the file (gzip), so offsets would be wrong; download the file and use the local copy"
    file.headers["Content-Encoding"] = "gzip"
    assert error_of(server.url + "/a.warc") == told
    assert first_bytes(Location(server.url + "/a.warc"), 10) == b""
    assert {headers["accept-encoding"] for headers in server.request_headers} == {"identity"}


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "zstd", "deflate"])
def test_an_encoding_that_is_not_that_of_the_stored_file_is_refused(
    server: RangeServer, file: Served, encoding: str
) -> None:
    file.headers["Content-Encoding"] = encoding
    assert "the server compresses the file" in error_of(server.url + A)


def test_a_chunked_range_of_a_stored_gzip_file_is_refused(server: RangeServer, file: Served) -> None:
    """Its server packs each range for itself: the length of what was stored is not known."""
    file.headers["Content-Encoding"], file.tells_length = "gzip", False
    assert "the server compresses the file" in error_of(server.url + A)


def test_an_encoding_of_some_answers_only_is_refused(server: RangeServer, file: Served, hurry: None) -> None:
    with open_ranges(server.url + A) as read_at:
        file.headers["Content-Encoding"] = "gzip"
        with pytest.raises(InputError, match="the server compresses some answers only"):
            read_at(0, 10)


def test_a_compressed_page_of_an_index_does_not_get_into_the_cache(
    server: RangeServer, hurry: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    file = server.add("/cluster.idx", BODY)
    with open_cached(server.url + "/cluster.idx") as ranges:
        file.body, file.headers = gzip.compress(BODY)[: len(BODY)], {"Content-Encoding": "gzip"}
        with pytest.raises(InputError):
            ranges.read_at(0, 100)
    file.body, file.headers = BODY, {}
    with open_cached(server.url + "/cluster.idx") as ranges:
        assert ranges.read_at(0, 1 << 17) == BODY[: 1 << 17]


def test_the_end_of_a_file_of_unknown_size_is_one_if_it_is_seen_twice(
    server: RangeServer, file: Served, hurry: None
) -> None:
    file.knows_ranges = file.tells_length = False
    file.cuts = [500_000, 700_000, len(BODY) - 1]
    assert read_all(server.url + A) == BODY
    assert len(server.seen) == 5


def test_one_byte_per_range_is_given_up(server: RangeServer, file: Served, hurry: None) -> None:
    file.most = 1
    assert error_of(server.url + A) == (
        "did not answer (the server sends 1 of 262137 bytes per answer) after 8 tries; run it again"
    )


def test_ranges_of_a_bounded_size_are_read(server: RangeServer, file: Served, hurry: None) -> None:
    file.most = 100_000
    assert read_all(server.url + A, len(BODY)) == BODY


def test_a_small_range_is_no_small_part(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is waited for."""
    monkeypatch.setattr(patience.Tries, "failed", lambda _, failure, __: pytest.fail(failure.reason))
    with open_ranges(server.url + A) as read_at:
        for first, size in ((0, 1), (10, 100), (len(BODY) - 5, 100)):
            assert read_at(first, size) == BODY[first : first + size]


def test_a_server_that_never_answers_is_given_up_in_time(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch, hurry: None
) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", "0.4")
    file.stall = 5
    assert error_of(server.url + A) == "did not answer (timed out) for 1 s; run it again"


def test_the_next_files_of_a_server_that_never_answers_are_given_up_sooner(
    server: RangeServer, monkeypatch: pytest.MonkeyPatch, hurry: None
) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", "1")
    monkeypatch.setattr(patience, "READ_SECONDS", 0.2)
    asked = []
    for name in ("/1", "/2", "/3"):
        server.add(name, BODY).stall = 5
        server.seen.clear()
        assert "did not answer (timed out) for 1 s" in error_of(server.url + name)
        asked.append(len(server.seen))
    assert asked[0] >= 3
    assert asked[1:] == [1, 1]
    with pytest.raises(UntriedError):
        read_all(server.url + "/4")


@pytest.mark.parametrize("where", ["head", "body"])
def test_one_byte_at_a_time_is_given_up_in_time(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch, hurry: None, where: str
) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", "0.5")
    monkeypatch.setattr(patience, "PROGRESS", 1 << 19)
    setattr(file, f"drips_{where}", 0.02)
    assert "did not answer (" in error_of(server.url + A)


def test_patience_is_a_number_of_seconds(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", "long")
    with pytest.raises(UsageError, match="CDXMILL_PATIENCE=long: must be a number of seconds"):
        read_all(server.url + A)


def test_a_terminal_shows_what_is_waited_for(
    server: RangeServer,
    file: Served,
    slept: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    file.statuses = [503] * 3
    read_all(server.url + A)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].removeprefix("\x1b[K").startswith(f"{server.url}{A}: 503; try 4 of 8 in ")


def test_short_waits_are_not_shown(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    file.statuses = [503] * 3
    read_all(server.url + A)
    assert capsys.readouterr().err == ""


def test_a_log_does_not(
    server: RangeServer, file: Served, slept: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    file.statuses = [503] * 3
    read_all(server.url + A)
    assert capsys.readouterr().err == ""
