"""Which version of a file on a server the pages in the cache are of, and when a server is asked at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.errors import AbsentError
from cdxmill.storage.cache import PAGE, open_cached, open_known, read_with_entry
from cdxmill.storage.location import locate
from cdxmill.storage.web.http import shared_path

from .range_server import RangeServer, Served
from .web_file import BODY, A

MODIFIED = "Wed, 01 Jan 2025 00:00:00 GMT"
LATER = "Thu, 02 Jan 2025 00:00:00 GMT"


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache. Connections are counted."""
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def requests_for_a_page(server: RangeServer) -> int:
    """The requests for the first bytes, which are right."""
    server.seen.clear()
    with open_cached(server.url + A) as ranges:
        assert ranges.read_at(5, 100) == server.files[A].body[5:105]
    return len(server.seen)


def versions(top: Path) -> list[Path]:
    """The directories of the pages of one version."""
    return [path for path in top.glob("*/*") if path.is_dir()]


@pytest.mark.parametrize("told", ["etag", "modified", "both"])
@pytest.mark.parametrize("change", ["version", "size"])
def test_pages_are_those_of_one_version(
    told: str, change: str, server: RangeServer, file: Served, top: Path
) -> None:
    file.etag = None if told == "modified" else '"one"'
    file.headers = {} if told == "etag" else {"Last-Modified": MODIFIED}
    assert [requests_for_a_page(server) for _ in range(3)] == [2, 1, 1]
    (old,) = versions(top)
    (old.parent / "whole").write_bytes(b"of read_recent")
    file.body = BODY[::-1] + b"x" * (change == "size")
    if change == "version":
        file.etag = None if file.etag is None else '"two"'
        file.headers = {} if told == "etag" else {"Last-Modified": LATER}
    assert [requests_for_a_page(server) for _ in range(2)] == [2, 1]
    assert len(versions(top)) == 1
    assert not old.exists(), "pages of an older version are deleted"
    assert server.connections == 1


def test_pages_of_a_file_without_a_version_are_not_kept(server: RangeServer, file: Served, top: Path) -> None:
    file.etag = None
    assert [requests_for_a_page(server) for _ in range(2)] == [2, 2]
    assert versions(top) == []


@pytest.mark.parametrize("trouble", ["tells_total", "knows_ranges", "tells_length"])
def test_a_file_of_unknown_size_or_without_ranges_is_read(
    trouble: str, server: RangeServer, file: Served, top: Path
) -> None:
    setattr(file, trouble, False)
    with open_cached(server.url + A) as ranges:
        assert ranges.read_at(0, 2 * PAGE) == BODY[: 2 * PAGE]
        assert ranges.read_at(len(BODY) - 5, 100) == BODY[-5:]
        assert ranges.size == (None if trouble == "tells_total" else len(BODY))
    assert versions(top) == [] or trouble == "tells_length"


@pytest.mark.parametrize(
    ("etag", "modified", "tag"),
    [
        ('"one"', MODIFIED, MODIFIED),
        (None, MODIFIED, MODIFIED),
        ('"one"', None, '"one"'),
        (None, None, None),
    ],
)
def test_a_file_is_known_by_its_time_or_else_by_its_etag(
    etag: str | None, modified: str | None, tag: str | None, server: RangeServer, file: Served
) -> None:
    file.etag, file.headers = etag, {"Last-Modified": modified} if modified else {}
    data, entry = read_with_entry(locate(server.url + A))
    assert data == BODY
    assert entry == (None if tag is None else (len(BODY), 0, False, tag))
    assert entry is None or entry == locate(server.url + A).status()


def test_a_file_that_is_known_costs_no_first_request(server: RangeServer, file: Served) -> None:
    with open_known(server.url + A) as read_at:
        assert read_at(5, 10) == BODY[5:15]
        assert read_at(70, 10) == BODY[70:80]
    assert server.ranges(A) == ["bytes=5-14", "bytes=70-79"]
    with pytest.raises(AbsentError), open_known(server.url + "/none") as read_at:
        read_at(0, 10)


def test_a_local_file_that_is_known_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    with open_known(tmp_path / "a") as read_at:
        assert read_at(1, 3) == b"ont"
    with pytest.raises(AbsentError), open_known(tmp_path / "none"):
        pass


def test_a_file_that_another_process_has_downloaded_is_not_asked_for(
    server: RangeServer, file: Served, tmp_path: Path
) -> None:
    file.knows_ranges = False
    with open_known(server.url + A, tmp_path) as one, open_known(server.url + A, tmp_path) as other:
        assert one(5, 10) == BODY[5:15]
        assert shared_path(server.url + A, tmp_path).exists()
        before = len(server.seen)
        assert one(70, 10) == other(70, 10) == BODY[70:80]
        assert len(server.seen) == before == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shared", [True, False])
def test_a_file_without_ranges_is_asked_for_once(
    shared: bool, server: RangeServer, file: Served, tmp_path: Path
) -> None:
    file.knows_ranges = False
    with open_known(server.url + A, tmp_path if shared else None) as read_at:
        for offset in (0, 9, 500_000):
            assert read_at(offset, 10) == BODY[offset : offset + 10]
        assert len(server.seen) == 2
        assert len(list(tmp_path.iterdir())) == shared
