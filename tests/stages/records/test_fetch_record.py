"""One record is read by one read if it is small; of a large one, no more than a piece is held."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from cdxmill.stages.records import fetch_record
from cdxmill.stages.records.fetch_record import Archive, NoRecord, Placed, records_after, records_before
from cdxmill.stages.window import CHUNK

from .test_skippable_frames import FIRST, OWN, packed

LARGE = 17 << 20


def record(size: int) -> bytes:
    head = (
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.b/\r\nContent-Length: %d\r\n\r\n"
        % size
    )
    return head + bytes(size) + b"\r\n\r\n"


@pytest.mark.parametrize("size", [100, LARGE])
def test_how_much_of_a_record_is_read_at_once(size: int) -> None:
    whole = record(size)
    stored = gzip.compress(whole, 0)
    data, reads = b"x" * 7 + stored + b"y" * 7, []

    def read_at(offset: int, wanted: int) -> bytes:
        reads.append((offset, wanted))
        return data[offset : offset + wanted]

    found = Archive(read_at).record(7, len(stored))
    assert b"".join(found.stored()) == stored
    assert b"".join(found.content()) == whole
    if size == LARGE:
        assert max(wanted for _, wanted in reads) < LARGE // 2
    else:
        assert reads == [(7, len(stored))]
    assert all(offset >= 7 and offset + wanted <= 7 + len(stored) for offset, wanted in reads)


@pytest.mark.parametrize("size", [100, 100_000])
@pytest.mark.parametrize("store", [bytes, gzip.compress])
def test_without_a_length_it_is_the_record_that_begins_there(
    store: Callable[[bytes], bytes], size: int
) -> None:
    whole = record(size)
    data = b"x" * 7 + store(whole) * 2
    found = Archive(lambda offset, wanted: data[offset : offset + wanted]).record(7, None)
    assert b"".join(found.content()) == whole
    assert b"".join(found.stored()) == store(whole.removesuffix(b"\r\n\r\n") if found.is_plain else whole)


class File:
    """A file whose reads are noted."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def __call__(self, offset: int, size: int) -> bytes:
        self.reads.append((offset, size))
        return self.data[offset : offset + size]


@pytest.mark.parametrize("size", [100, LARGE])
@pytest.mark.parametrize("has_length", [True, False])
def test_the_first_read_is_short_if_the_length_is_not_known(has_length: bool, size: int) -> None:
    unit = gzip.compress(record(size), 0)
    file = File(unit + unit)
    Archive(file).record(0, len(unit) if has_length else None)
    first = (min(len(unit), CHUNK) if size == LARGE else len(unit)) if has_length else 16 << 10
    assert file.reads[0] == (0, first)


def test_a_range_that_is_not_held_is_read_within_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_record, "_RANGE_PIECE", 40)
    whole = record(100).removesuffix(b"\r\n\r\n")
    for most, sizes in ((len(whole), []), (len(whole) - 1, [40] * (len(whole) // 40) + [len(whole) % 40])):
        monkeypatch.setattr(fetch_record, "_HELD", most)
        file = File(b"x" * 7 + whole + b"y" * 99)
        found = Archive(file).record(7, len(whole))
        assert all(7 <= start <= start + size <= 7 + len(whole) for start, size in file.reads)
        file.reads.clear()
        assert b"".join(found.stored()) == whole
        assert [size for _, size in file.reads] == sizes


def with_dictionary() -> tuple[bytes, int]:
    """A file with a dictionary and one record, and the offset of that."""
    return FIRST + packed(OWN, record(100)), len(FIRST)


def test_the_dictionary_is_read_from_the_file_that_is_opened_for_it() -> None:
    data, offset = with_dictionary()
    near, far = File(data), File(data)
    archive = Archive(far, lambda: nullcontext(near))
    for _ in range(2):
        assert b"".join(archive.record(offset, len(data) - offset).content()) == record(100)
    assert {start for start, _ in far.reads} == {offset}
    assert {start for start, _ in near.reads} == {0}
    alone = File(data)
    Archive(alone).record(offset, None)
    assert {start for start, _ in alone.reads} == {0, offset}


def test_a_part_of_an_archive_has_the_dictionary_of_all_of_it() -> None:
    data, offset = with_dictionary()
    whole, part = File(data), File(b"?" * offset + data[offset:])
    archive = Archive(whole)
    for _ in range(2):
        found = archive.within(part).record(offset, len(data) - offset)
        assert b"".join(found.content()) == record(100)
    assert [start for start, _ in whole.reads].count(0) == 1
    assert {start for start, _ in part.reads} == {offset}


@pytest.mark.parametrize(
    ("data", "length", "reason"),
    [
        (b"?http://a.b/ localhost 2024 html 4\ntext\n", None, "no WARC or ARC record found"),
        (b"http://a.b/ localhost 2024 html 4\ntex", None, "truncated file or wrong Content-Length"),
        (b"\x1f\x8b\x08", 3, "the file is truncated inside a gzip header"),
        (b"\x28\xb5\x2f\xfd", 4, "the file is truncated inside a zstd frame"),
        (record(9) + b"text", 9 + len(record(9)) - 5, "the range has more than one record (no WARC or ARC"),
        (record(9) + record(8), 2 * len(record(9)) - 1, "the range has more than one record (another record"),
    ],
)
def test_what_is_not_one_record_is_said(data: bytes, length: int | None, reason: str) -> None:
    with pytest.raises(NoRecord) as raised:
        Archive(File(data)).record(0, length)
    assert str(raised.value).startswith(reason)


def test_no_more_is_read_around_a_response_than_is_searched() -> None:
    head = b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Record-ID: <%b>\r\nWARC-Concurrent-To: <r>\r\nContent-Length: 1\r\n\r\nx\r\n\r\n"
    request, response, notes = (
        head % names for names in ((b"request", b"q"), (b"response", b"r"), (b"metadata", b"m"))
    )
    start = len(request)
    searched, file = File(request + response + notes), File(request + response + notes)
    one = Placed(start, Archive(file).record(start, None))
    for low in (0, 5):
        records_before(Archive(file), searched, one, low)
    assert searched.reads == [(0, start), (5, start - 5)]
    file.reads.clear()
    for high, number in ((len(file.data), 1), (one.next_start + 1, 0), (one.next_start, 0)):
        assert len(records_after(Archive(file), one, high)) == number
    assert [offset for offset, _ in file.reads].count(one.next_start) == 2
    assert all(offset <= len(file.data) for offset, _ in file.reads)
