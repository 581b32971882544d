"""A look at a file gives its size and its first bytes, in one request by HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.storage.location import Location, locate
from cdxmill.storage.reading import first_bytes, look

from .range_server import RangeServer

BODY = bytes(range(256)) * 400


def seen(place: Location, size: int) -> tuple[tuple[int, float], bytes]:
    """Size, time and start of a file."""
    entry, head = look(place, size)
    assert entry is not None
    return entry[:2], head


@pytest.mark.parametrize(
    ("trouble", "size"),
    [
        ({}, len(BODY)),
        ({"knows_ranges": False}, len(BODY)),
        ({"tells_total": False}, 0),
        ({"tells_length": False}, len(BODY)),
        ({"most": 1000}, len(BODY)),
    ],
)
def test_one_request_gives_size_and_start(trouble: dict[str, int], size: int, server: RangeServer) -> None:
    file = server.add("/a", BODY)
    for name, value in trouble.items():
        setattr(file, name, value)
    assert seen(locate(f"{server.url}/a"), 1000) == ((size, 0), BODY[:1000])
    assert len(server.seen) == 1


def test_an_object_whose_start_cannot_be_read_has_a_size(
    server: RangeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    server.add("/bucket/a", BODY).knows_ranges = False
    assert seen(locate("s3://bucket/a"), 1000)[0][0] == len(BODY)
    assert look(locate("s3://bucket/a"), 1000)[1] == b""


def test_a_shorter_range_than_asked_for_is_the_start(server: RangeServer) -> None:
    server.add("/a", BODY).most = 300
    assert seen(locate(f"{server.url}/a"), 1000) == ((len(BODY), 0), BODY[:300])
    assert len(server.seen) == 1


@pytest.mark.parametrize("size", [0, 1, 1000, 1001])
@pytest.mark.parametrize("tells_length", [True, False])
def test_a_file_of_a_server_without_ranges_may_be_short(
    size: int, tells_length: bool, slept: list[float], server: RangeServer
) -> None:
    file = server.add("/a", BODY[:size])
    file.knows_ranges, file.tells_length = False, tells_length
    assert seen(locate(f"{server.url}/a"), 1000) == ((size * tells_length, 0), BODY[: min(size, 1000)])
    assert slept == []


@pytest.mark.parametrize(("size", "cut"), [(len(BODY), 10), (500, 499)])
def test_the_start_of_a_whole_file_is_whole(size: int, cut: int, hurry: None, server: RangeServer) -> None:
    file = server.add("/a", BODY[:size])
    file.knows_ranges, file.cuts = False, [cut]
    assert seen(locate(f"{server.url}/a"), 1000) == ((size, 0), BODY[: min(size, 1000)])


@pytest.mark.parametrize("cut", [1, 998, 999])
def test_a_start_has_as_many_bytes_as_its_range_says(cut: int, hurry: None, server: RangeServer) -> None:
    """Also if the answer has no length, so that its end is that of the connection."""
    file = server.add("/a", BODY)
    file.tells_length, file.cuts = False, [cut]
    assert seen(locate(f"{server.url}/a"), 1000) == ((len(BODY), 0), BODY[:1000])
    assert len(server.seen) == 2


def test_a_start_may_have_several_pieces(slept: list[float], server: RangeServer) -> None:
    server.add("/a", BODY)
    assert look(locate(f"{server.url}/a"), 100_000)[1] == BODY[:100_000]
    assert slept == []


@pytest.mark.parametrize("trouble", ["cuts", "drops", "statuses"])
def test_a_server_in_trouble_is_asked_again(trouble: str, hurry: None, server: RangeServer) -> None:
    setattr(server.add("/a", BODY), trouble, {"cuts": [10], "drops": 1, "statuses": [503]}[trouble])
    assert seen(locate(f"{server.url}/a"), 1000) == ((len(BODY), 0), BODY[:1000])
    assert len(server.seen) == 2


def test_a_file_that_is_missing_or_empty_has_no_start(server: RangeServer, tmp_path: Path) -> None:
    server.add("/empty", b"")
    (tmp_path / "empty").touch()
    assert look(locate(f"{server.url}/absent"), 10) == (None, b"")
    assert seen(locate(f"{server.url}/empty"), 10) == ((0, 0), b"")
    assert look(locate(str(tmp_path / "absent")), 10) == (None, b"")
    entry, head = look(locate(str(tmp_path / "empty")), 10)
    assert entry is not None
    assert (entry.size, entry.is_directory, head) == (0, False, b"")


def test_a_range_that_was_not_asked_for_is_not_the_start(server: RangeServer) -> None:
    server.add("/a", BODY).shift = 5
    assert look(locate(f"{server.url}/a"), 10) == (None, b"")


def test_a_directory_has_an_entry_and_no_start(tmp_path: Path) -> None:
    entry, head = look(locate(str(tmp_path)), 10)
    assert entry is not None
    assert (entry.is_directory, head) == (True, b"")


def test_an_object_of_s3_is_looked_at_in_one_head_and_one_get(
    server: RangeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    server.add("/b/a", BODY).headers["Last-Modified"] = "Wed, 01 Jan 2025 00:00:00 GMT"
    entry = (len(BODY), 1735689600)
    assert seen(locate("s3://b/a"), 1000) == (entry, BODY[:1000])
    assert seen(locate("s3://b/a"), 0) == (entry, b"")
    assert first_bytes(locate("s3://b/a"), 10) == BODY[:10]
    assert [method for method, _, _ in server.seen] == ["HEAD", "GET", "HEAD", "HEAD", "GET"]


def test_an_entry_alone_costs_one_byte_by_http(server: RangeServer) -> None:
    server.add("/a", BODY)
    assert seen(locate(f"{server.url}/a"), 0) == ((len(BODY), 0), BODY[:1])
    assert first_bytes(locate(f"{server.url}/a"), 10) == BODY[:10]
    assert server.ranges("/a") == ["bytes=0-0", "bytes=0-9"]
