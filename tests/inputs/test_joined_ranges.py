"""Ranges of an archive that are fetched at once: from memory or a file, each byte is asked for once."""

from __future__ import annotations

import gzip
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest

from cdxmill.inputs import joined_ranges
from cdxmill.inputs.joined_ranges import GAP, JOINED, JoinedRanges, OpenRanges, is_one_request
from cdxmill.stages.records.fetch_record import NoRecord
from cdxmill.storage.location import Location, locate

from ..storage.range_server import serving

RECORD = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 4\r\n\r\nbody\r\n\r\n"
MEMBER = gzip.compress(RECORD, mtime=0)
DATA = bytes(range(100)) + MEMBER + bytes(range(256)) * 4


class Archive:
    """An archive in memory, which notes what is asked, and may fail."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.error: Exception | None = None
        self.waited = 0
        self.ranges = JoinedRanges(self.read_at, self.before, locate("a.warc.gz"))

    def before(self) -> None:
        self.waited += 1

    def read_at(self, offset: int, size: int) -> bytes:
        self.asked.append((offset, size))
        if self.error is not None:
            raise self.error
        return DATA[offset : offset + size]

    def answers(self, places: list[tuple[int, int]]) -> None:
        for offset, size in places:
            assert self.ranges.read_at(offset, size) == DATA[offset : offset + size], (offset, size)


@pytest.fixture(params=[1 << 20, 50])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of a range that is held in memory; larger ones are in a file, which is fetched in pieces of 30 bytes."""
    monkeypatch.setattr(joined_ranges, "_HELD", request.param)
    monkeypatch.setattr(joined_ranges, "_FETCH_PIECE", 30)
    size: int = request.param
    return size


def test_what_was_fetched_is_not_asked_again(held: int, tmp_path: Path) -> None:
    archive = Archive()
    archive.ranges.fetch(100, 70, tmp_path / "new")
    fetched = [(100, 70)] if held > 70 else [(100, 30), (130, 30), (160, 10)]
    assert archive.asked == fetched
    archive.answers([(100, 70), (100, 1), (169, 1), (120, 30), (170, 0)])
    assert archive.asked == fetched
    others = [(99, 2), (169, 2), (0, 5), (0, 1), (170, 9), (100, 71)]
    archive.answers(others)
    assert archive.asked == fetched + others
    assert archive.ranges.requests == len(archive.asked) == archive.waited
    assert archive.ranges.bytes == 70 + sum(size for _, size in others)
    assert not list(tmp_path.glob("new/*"))


def test_only_what_is_in_memory_is_held(held: int, tmp_path: Path) -> None:
    archive = Archive()
    archive.ranges.fetch(100, 40, tmp_path)
    wanted = {(100, 40): 40, (100, 50): 0, (99, 1): 0, (98, 42): 0, (139, 1): 1, (139, 2): 0, (140, 1): 0}
    for (offset, size), length in wanted.items():
        assert archive.ranges.held(offset, size) == DATA[offset : offset + length], (offset, size)
    archive.ranges.fetch(100, 70, tmp_path)
    assert archive.ranges.held(100, 60) == (DATA[100:160] if held > 60 else b"")
    assert archive.ranges.held(100, 50) == DATA[100:150]


def test_the_end_of_an_archive_is_the_end_of_a_range(held: int, tmp_path: Path) -> None:
    archive = Archive()
    archive.ranges.fetch(len(DATA) - 55, 90, tmp_path)
    assert archive.ranges.read_at(len(DATA) - 55, 55) == DATA[-55:]
    assert archive.ranges.inside()[1:] == (len(DATA) - 55, len(DATA))
    assert archive.ranges.read_at(len(DATA) - 3, 9) == DATA[-3:]


def test_a_range_alone_is_an_archive(held: int, tmp_path: Path) -> None:
    archive = Archive()
    archive.ranges.fetch(100, len(MEMBER), tmp_path)
    alone, start, end = archive.ranges.inside()
    assert (start, end) == (100, 100 + len(MEMBER))
    before = len(archive.asked)
    assert b"".join(alone.record(100, len(MEMBER)).content()) == RECORD
    assert b"".join(alone.record(100, None).content()) == RECORD
    for offset in (0, 99, end, end + 1):
        with pytest.raises(NoRecord):
            alone.record(offset, None)
    assert len(archive.asked) == before


@pytest.mark.parametrize("range_of_fetch", [(5, 20), (5, 21), (6, 20)])
def test_a_read_that_was_begun_is_used_for_the_same_range(
    range_of_fetch: tuple[int, int], tmp_path: Path
) -> None:
    archive = Archive()
    archive.ranges.begin(5, 20)
    archive.ranges.begin(50, 20)  # only one is begun
    archive.ranges.fetch(*range_of_fetch, tmp_path)
    offset, size = range_of_fetch
    archive.answers([range_of_fetch])
    assert archive.asked.count(range_of_fetch) == 1
    assert archive.ranges.held(offset, size) == DATA[offset : offset + size]
    archive.ranges.fetch(*range_of_fetch, tmp_path)
    assert archive.asked.count(range_of_fetch) == 2
    assert archive.waited == len(archive.asked)


def test_a_read_that_was_begun_fails_when_it_is_wanted(tmp_path: Path) -> None:
    archive = Archive()
    archive.error = OSError("gone")
    archive.ranges.begin(5, 20)
    with pytest.raises(OSError, match="gone"):
        archive.ranges.fetch(5, 20, tmp_path)
    archive.error = None
    archive.ranges.fetch(5, 20, tmp_path)
    archive.answers([(5, 20)])


def test_a_range_that_is_too_large_for_memory_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_ranges, "_HELD", 19)
    archive = Archive()
    archive.ranges.begin(5, 20)
    archive.answers([(5, 20)])
    assert archive.asked == [(5, 20)]


def test_ranges_near_to_each_other_are_one_request() -> None:
    assert is_one_request(0, 10, (10 + GAP, 20 + GAP))
    assert not is_one_request(0, 10, (11 + GAP, 20 + GAP))
    assert is_one_request(5, 10, (10, 5 + JOINED))
    assert not is_one_request(5, 10, (10, 6 + JOINED))
    assert is_one_request(0, 10, (11, 12), gap=1)
    assert not is_one_request(0, 10, (12, 13), gap=1)


@pytest.mark.parametrize(("far", "requests"), [(-1.0, 1), (1e9, 0)])
def test_only_of_a_far_archive_a_range_is_begun(
    far: float, requests: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_ranges, "_FAR", far)
    (tmp_path / "a").write_bytes(DATA)
    waited: list[int] = []
    with serving() as server:
        server.add("/a", DATA)
        place, near = locate(f"{server.url}/a"), locate(str(tmp_path / "a"))
        ranges = OpenRanges(lambda: waited.append(1))
        for one in (place, near):
            ranges.begin(one, 5, 20)
        assert near not in ranges
        assert (place in ranges) == bool(requests)
        opened = ranges.opened(place)
        assert ranges.opened(place) is opened
        opened.fetch(5, 20, tmp_path)
        assert opened.read_at(6, 3) == DATA[6:9]
        assert server.ranges("/a").count("bytes=5-24") == 1
        assert len(waited) == opened.requests == 1
        while ranges:
            ranges.popitem()


@pytest.mark.parametrize(("size", "is_in_memory"), [(19, True), (20, False)])
def test_a_range_of_the_largest_size_is_begun_and_kept_in_memory(
    size: int, is_in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_ranges, "_HELD", 19)
    archive = Archive()
    archive.ranges.begin(5, size)
    assert (archive.ranges._begun is not None) == is_in_memory
    archive.ranges.fetch(5, size, tmp_path / "new")
    assert (tmp_path / "new").exists() != is_in_memory
    assert len(archive.asked) == 1
    archive.answers([(5, size)])
    assert len(archive.asked) == 1


@pytest.mark.parametrize(
    ("name", "is_open", "seconds", "is_begun"),
    [
        ("http://h/a", False, 0.6, True),
        ("http://h/a", True, 0.6, True),
        ("http://h/a", False, 0.5, False),
        ("s3://b/a", True, 0.6, True),
        ("s3://b/a", True, 0.5, False),
        ("s3://b/a", False, 0.6, False),
        ("a", True, 0.6, False),
        ("a", False, 0.6, False),
    ],
)
def test_a_range_is_begun_if_that_saves_time(
    name: str, is_open: bool, seconds: float, is_begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_ranges, "_FAR", 0.5)
    place, archive = locate(name), Archive()
    monkeypatch.setattr(joined_ranges, "open_known", lambda place, shared: nullcontext(archive.read_at))
    ranges = OpenRanges(archive.before)
    ranges._seconds = seconds
    if is_open:
        ranges[place] = archive.ranges, ExitStack()
    ranges.begin(place, 5, 3)
    assert (place in ranges) == (is_open or is_begun)
    assert is_begun == (place in ranges and ranges.opened(place)._begun is not None)


def test_the_time_of_the_last_request_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 12.0, 20.0, 21.0])
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    monkeypatch.setattr(Location, "open_ranges", lambda self: nullcontext(lambda offset, size: b"x" * size))
    ranges = OpenRanges(lambda: None)
    opened = ranges.opened(locate("a"))
    for seconds in (2.0, 1.0):
        assert opened.read_at(0, 3) == b"xxx"
        assert ranges._seconds == seconds


def test_processes_share_what_a_server_without_ranges_sends(tmp_path: Path) -> None:
    with serving() as server:
        server.add("/a", DATA).knows_ranges = False
        place = locate(f"{server.url}/a")
        both = [OpenRanges(lambda: None, tmp_path) for _ in range(2)]
        asked = []
        for ranges in both:
            assert ranges.opened(place).read_at(100, len(MEMBER)) == MEMBER
            asked.append(len(server.seen))
        assert asked[0] == asked[1], "the second one has asked for nothing"
        for ranges in both:
            while ranges:
                ranges.popitem()
