"""Web servers that know no ranges."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from urllib3 import BaseHTTPResponse

from cdxmill.errors import InputError, StoppedError
from cdxmill.storage.cache import open_known
from cdxmill.storage.web import http_file
from cdxmill.storage.web.http import open_once, open_ranges, shared_path
from cdxmill.storage.web.http_file import HttpFile

from ..material.open_files import open_files
from .range_server import RangeServer, Served
from .web_file import BODY, A, error_of, read_all


def test_what_a_server_compresses_on_the_way_is_refused(server: RangeServer) -> None:
    file = server.add("/a.warc", BODY)
    file.headers["Content-Encoding"], file.knows_ranges = "gzip", False
    told = "the server compresses the file (gzip), so offsets would be wrong; download the file and use the local copy"
    assert error_of(server.url + "/a.warc") == told


def test_a_server_that_knows_no_ranges_sends_the_file_once(server: RangeServer, file: Served) -> None:
    file.knows_ranges = False
    with open_ranges(server.url + A) as read_at:
        assert read_at(500_000, 100) == BODY[500_000:500_100]
        assert read_at(0, 100) == BODY[:100], "backwards"
        assert read_at(1 << 62, 1) == b""
        assert read_at(1_000_000, 1 << 20) == BODY[1_000_000:]
    assert len(server.seen) == 1


def test_a_whole_file_that_is_cut_is_continued(server: RangeServer, file: Served, hurry: None) -> None:
    file.knows_ranges, file.cuts = False, [100_000, 0, 10, 700_000]
    assert read_all(server.url + A) == BODY
    assert len(server.seen) == 5


def test_a_whole_file_is_fetched_as_far_as_it_is_read(
    server: RangeServer, file: Served, slept: list[float]
) -> None:
    file.knows_ranges, file.cuts = False, [500_000]
    with open_ranges(server.url + A) as read_at:
        assert read_at(0, 100_000) == BODY[:100_000]
        assert slept == [], "the end of what the server sends was not seen"


def test_the_end_of_a_file_of_unknown_size_has_to_be_seen_twice(
    server: RangeServer, file: Served, hurry: None
) -> None:
    file.knows_ranges, file.tells_length, file.cuts = False, False, [500_000]
    assert read_all(server.url + A) == BODY
    assert len(server.seen) == 3


def test_cuts_of_a_whole_file_that_leave_much_behind_are_no_reason_to_give_up(
    server: RangeServer, file: Served, hurry: None
) -> None:
    file.knows_ranges, file.cuts = False, [70_000 * number for number in range(1, 13)]
    assert read_all(server.url + A, len(BODY)) == BODY
    assert file.cuts == []


def test_a_whole_file_is_as_long_as_was_said_first(server: RangeServer, file: Served, hurry: None) -> None:
    file.knows_ranges, file.cuts = False, [100_000]
    with open_ranges(server.url + A) as read_at:
        read_at(0, 50_000)
        file.tells_length, file.cuts = False, [200_000]
        assert read_at(0, len(BODY)) == BODY


def test_one_machine_of_several_may_not_know_ranges(
    server: RangeServer, file: Served, hurry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_file, "_REMEMBERED", 0.0)
    with open_ranges(server.url + A) as read_at:
        file.knows_ranges = False
        with pytest.raises(InputError, match="the server sent the whole file instead of a range"):
            read_at(0, 10)
        file.knows_ranges = True
        assert read_at(0, 10) == BODY[:10]


def test_a_range_is_no_answer_to_a_request_for_the_whole_file(
    server: RangeServer, file: Served, hurry: None
) -> None:
    file.knows_ranges, file.cuts = False, [1000]
    with open_ranges(server.url + A) as read_at:
        file.statuses = [206]
        assert read_at(0, len(BODY)) == BODY
    assert server.ranges(A)[1:] == [None, None]


def test_a_temporary_file_that_cannot_be_created_leaves_no_connection_open(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Any] = []

    def first_answer(file: HttpFile) -> BaseHTTPResponse:
        answer = file.ask(0, 0)
        answers.append(answer)
        return answer

    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(HttpFile, "first_answer", first_answer)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    file.knows_ranges = False
    with pytest.raises(StoppedError, match="No space left on device"), open_ranges(server.url + A):
        pass
    assert answers[0].closed


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("run", range(5))
def test_threads_share_a_file_without_ranges_and_download_it_once(
    run: int, server: RangeServer, file: Served, hasty_threads: None
) -> None:
    file.knows_ranges = False
    offsets = [*range(0, len(BODY), 10_000), *range(len(BODY), 0, -7000)]
    wanted = [BODY[offset : offset + 9000] for offset in offsets]
    for opened in (open_ranges, open_known):
        server.seen.clear()
        with opened(server.url + A) as read_at, ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda offset: read_at(offset, 9000), offsets)) == wanted
        assert server.ranges(A).count("bytes=0-0") == 1


def test_a_shared_file_is_kept_in_a_new_directory_until_it_is_closed(
    server: RangeServer, file: Served, tmp_path: Path
) -> None:
    file.knows_ranges = False
    shared = tmp_path / "not/yet"
    with open_known(server.url + A, shared) as read_at:
        assert read_at(10, 20) == BODY[10:30]
        assert [path.stat().st_size for path in shared.iterdir()] == [len(BODY)]
    assert list(shared.iterdir()) == []


def test_a_shared_file_is_deleted_by_the_last_that_closes_it(
    server: RangeServer, file: Served, tmp_path: Path
) -> None:
    file.knows_ranges = False
    with ExitStack() as one, ExitStack() as other:
        reads = [stack.enter_context(open_once(server.url + A, tmp_path)) for stack in (one, other)]
        one.close()
        assert reads[1](500, 100) == BODY[500:600]
        assert [path.stat().st_size for path in tmp_path.iterdir()] == [len(BODY)]
        with open_once(server.url + A, tmp_path) as read_at:
            assert read_at(len(BODY) - 5, 9) == BODY[-5:]
    assert list(tmp_path.iterdir()) == []
    assert open_files(tmp_path) == []
    assert len(server.seen) == 1


def test_half_of_a_shared_file_is_downloaded_again_whole(
    server: RangeServer, file: Served, tmp_path: Path
) -> None:
    """The process that began to download it was killed, or its server failed."""
    file.knows_ranges = False
    path = shared_path(server.url + A, tmp_path)
    path.write_bytes(BODY[1:] + BODY)
    path.chmod(0o600)
    file.statuses = [404]
    with pytest.raises(InputError), open_once(server.url + A, tmp_path):
        pass
    assert open_files(tmp_path) == []
    path.write_bytes(BODY[1:] + BODY)
    path.chmod(0o600)
    with open_once(server.url + A, tmp_path) as read_at:
        assert read_at(0, 2 * len(BODY)) == BODY
        assert path.stat().st_mode & 0o777 == 0o700
    assert server.ranges(A) == ["bytes=0-0"] * 2


def test_an_empty_file_is_shared_too(server: RangeServer, file: Served, tmp_path: Path) -> None:
    file.knows_ranges, file.body = False, b""
    with open_once(server.url + A, tmp_path) as read_at:
        assert read_at(0, 10) == b""


def test_processes_wait_for_the_one_that_downloads_a_shared_file(
    server: RangeServer, file: Served, tmp_path: Path
) -> None:
    file.knows_ranges = False

    def read(offset: int) -> bytes:
        with open_once(server.url + A, tmp_path) as read_at:
            barrier.wait(60)
            return read_at(offset, 100)

    barrier = Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, range(4))) == [BODY[at : at + 100] for at in range(4)]
    assert len(server.seen) == 1
    assert list(tmp_path.iterdir()) == []


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def test_a_chunked_body_shows_its_own_end(server: RangeServer, file: Served) -> None:
    file.knows_ranges, file.tells_length = False, False
    file.headers["Transfer-Encoding"], file.body = "chunked", chunked(BODY)
    assert read_all(server.url + A) == BODY
    assert len(server.seen) == 1


@pytest.mark.parametrize("length", [len(BODY) - 7, len(BODY), len(BODY) + 7])
def test_a_length_beside_a_chunked_body_is_right_or_an_error(
    server: RangeServer, file: Served, hurry: None, length: int
) -> None:
    file.knows_ranges, file.tells_length = False, False
    file.headers |= {"Transfer-Encoding": "chunked", "Content-Length": str(length)}
    file.body = chunked(BODY)
    if length == len(BODY):
        assert read_all(server.url + A) == BODY
        return
    with pytest.raises(InputError, match=r"did not answer|has changed"):
        read_all(server.url + A)
