"""Skippable frames of a Zstandard archive: a dictionary, notes of another tool, or damage. They hide no record."""

from __future__ import annotations

import pytest
import zstandard

from cdxmill.capture import Damage, Note, Record
from cdxmill.formats.archives.zstd_dictionary import with_own_id
from cdxmill.stages.records import read_zst
from cdxmill.stages.records.parse_header import FETCH_AGAIN, LARGE_WINDOW, WITH_DICTIONARY
from cdxmill.stages.records.read_contents import read_contents
from cdxmill.stages.records.read_records import read_records

from ...material.memory_files import MemoryFiles
from .test_changing_files import record

HIDDEN = "a skippable zstd frame contains frames, which are ignored (noted once per file)"
FOLLOWS = "no zstd frame follows the skippable frame"


def frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def skippable(data: bytes, number: int = 0, size: int | None = None) -> bytes:
    length = len(data) if size is None else size
    return bytes([0x50 + number]) + b"\x2a\x4d\x18" + length.to_bytes(4, "little") + data


ONE = frame(record(1, 50))
TEXT = frame(b"a text")


def read(*parts: bytes, max_window: int | None = None) -> tuple[list[int], list[tuple[int, str]]]:
    """The offsets of records, and the offsets and texts of what is damaged or noted."""
    data, records, told = b"".join(parts), [], []
    for item in read_records(lambda pos, size: data[pos : pos + size], max_window=max_window):
        if isinstance(item, Record):
            records.append(item.offset)
        elif isinstance(item, Damage | Note):
            told.append((item.offset, item.reason))
    return records, told


@pytest.mark.parametrize("number", [0, 1, 15])
@pytest.mark.parametrize("data", [b"", b"x", b"notes" * 99, TEXT], ids=["empty", "byte", "notes", "text"])
def test_a_skippable_frame_may_be_anywhere(data: bytes, number: int) -> None:
    skip = skippable(data, number)
    first, second = len(skip), 2 * len(skip) + len(ONE)
    assert read(skip, ONE, skip, ONE, skip) == ([first, second], [])
    assert read(ONE, skip, skip, ONE) == ([0, len(ONE) + 2 * len(skip)], [])


def test_frames_with_records_in_a_skippable_frame_are_noted_once() -> None:
    skip = skippable(b"x" + ONE)
    assert read(skip, ONE, skip, ONE, skip) == ([len(skip), 2 * len(skip) + len(ONE)], [(0, HIDDEN)])
    assert read(skippable(TEXT), skip, ONE)[1] == [(len(skippable(TEXT)), HIDDEN)]


@pytest.mark.parametrize("before", range(20))
def test_such_a_frame_is_found_wherever_two_reads_meet(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_zst, "_SEARCHED_PIECE", 8)
    data = b"\x28" * before
    assert read(ONE, skippable(data + ONE + b"x" * 30), ONE)[1] == [(len(ONE), HIDDEN)]
    assert read(ONE, skippable(data + TEXT), ONE)[1] == []


@pytest.mark.parametrize(("starts", "is_noted"), [(3, False), (4, True)])
def test_what_has_too_many_starts_of_frames_to_look_at_is_noted(
    starts: int, is_noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_zst, "_MOST_PROBES", 3)
    skip = skippable(b"\x28\xb5\x2f\xfd" * starts)
    assert read(skip, ONE) == ([len(skip)], [(0, HIDDEN)] if is_noted else [])


@pytest.mark.parametrize("more", [1, 3, len(ONE) - 1, len(ONE) + 1])
def test_a_length_that_is_too_large_costs_no_record(more: int) -> None:
    bad = skippable(b"notes", size=5 + more)
    found, told = read(ONE, bad, ONE, ONE)
    assert found == [0, len(ONE) + len(bad), 2 * len(ONE) + len(bad)]
    assert told == [(len(ONE), f"{FOLLOWS}; {len(bad)} bytes skipped")]


def test_a_skippable_frame_that_is_longer_than_the_file_is_truncated() -> None:
    for size, reason in ((5, None), (6, "the file is truncated inside a skippable frame")):
        found, told = read(ONE, skippable(b"notes", size=size))
        assert found == [0]
        assert told == ([(len(ONE), reason)] if reason else [])
    assert read(ONE, skippable(b"")[:6])[1] == [(len(ONE), "the file is truncated inside a skippable frame")]


def notes(*parts: bytes) -> list[Note]:
    data = b"".join(parts)
    items = read_contents(lambda pos, size: data[pos : pos + size], MemoryFiles())
    return [item for item in items if isinstance(item, Note)]


def test_what_is_not_copied_is_counted() -> None:
    large = frame(record(2, 9 << 20))
    assert notes(ONE, ONE) == []
    one, two = skippable(b"notes"), skippable(b"", 7)
    assert notes(ONE, one, ONE) == [Note(len(ONE), "1 skippable zstd frame (13 bytes) is not copied")]
    found = notes(two, ONE, one, large, two, one)
    assert found == [Note(0, "4 skippable zstd frames (42 bytes) are not copied")]


def trained(number: int) -> bytes:
    samples: list[bytes | bytearray | memoryview] = [record(n, n) for n in range(300)]
    return with_own_id(zstandard.train_dictionary(1 << 10, samples).as_bytes(), number)


OWN, OTHER = trained(40_000), trained(50_000)
FIRST = skippable(OWN, 13)


def packed(dictionary: bytes, content: bytes = record(1, 50)) -> bytes:
    held = zstandard.ZstdCompressionDict(dictionary)
    return zstandard.ZstdCompressor(dict_data=held, write_checksum=True).compress(content)


def told_of(*parts: bytes, max_window: int | None = None) -> tuple[str, str]:
    """What is reported of the frame after the first part, and what the user can do."""
    data = b"".join(parts)
    items = read_records(lambda pos, size: data[pos : pos + size], max_window=max_window)
    (damage,) = (item for item in items if isinstance(item, Damage))
    assert damage.offset == len(parts[0])
    return damage.reason.partition(";")[0], damage.hint


def changed(data: bytes) -> bytes:
    """A frame with another checksum."""
    return data[:-1] + bytes([data[-1] ^ 1])


CORRUPT = "corrupt zstd data (restored data doesn't match checksum)"


def test_which_dictionary_a_frame_needs_is_told() -> None:
    needs = "the frame needs the zstd dictionary {}, and the file has {}"
    assert told_of(ONE, packed(OWN), ONE) == (needs.format(40_000, "none"), WITH_DICTIONARY)
    assert told_of(FIRST, packed(OTHER), packed(OWN)) == (needs.format(50_000, 40_000), WITH_DICTIONARY)
    for bad in (changed(packed(OWN)), changed(ONE)):
        assert told_of(FIRST, bad, packed(OWN)) == (CORRUPT, FETCH_AGAIN)
    assert told_of(ONE, changed(ONE), ONE) == (CORRUPT, FETCH_AGAIN)


def with_window(log: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=log, write_checksum=True)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return stream.compress(record(1, 50)) + stream.flush()


def test_which_window_a_frame_needs_is_told() -> None:
    large = with_window(21)
    assert read(ONE, large, max_window=2 << 20) == ([0, len(ONE)], [])
    reason = "the frame needs a window of 2 MiB"
    assert told_of(ONE, large, max_window=1 << 20) == (reason, LARGE_WINDOW % 2)
    assert told_of(ONE, changed(large), max_window=2 << 20) == (CORRUPT, FETCH_AGAIN)
    largest = large[:5] + bytes([(31 - 10) << 3]) + large[6:]
    assert told_of(ONE, largest, max_window=1 << 20) == (
        "the frame needs a window of 2048 MiB",
        LARGE_WINDOW % 2048,
    )
    larger = large[:5] + bytes([(32 - 10) << 3]) + large[6:]
    assert told_of(ONE, larger, max_window=1 << 20)[1] == FETCH_AGAIN


@pytest.mark.parametrize(("least", "is_read"), [(0, True), (-1, False)])
def test_a_dictionary_has_a_largest_size(least: int, is_read: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_zst, "MAX_DICTIONARY", len(FIRST) + least)
    found, told = read(FIRST, packed(OWN))
    assert found == ([len(FIRST)] if is_read else [])
    assert bool(told) != is_read
    assert is_read or told[0][1].startswith("cannot read the zstd dictionary (larger than ")


def test_what_follows_a_dictionary_is_a_frame() -> None:
    reason = "no zstd frame follows the dictionary; {} bytes skipped"
    for behind in (b"", b"x", b"xyz" * 99):
        size = len(FIRST) + len(behind)
        assert read(FIRST, behind) == ([], [(0, reason.format(size))])
        if behind:
            assert read(FIRST, behind, packed(OWN)) == ([size], [(0, reason.format(size))])
    skip = skippable(b"notes")
    assert read(FIRST, skip, packed(OWN)) == ([len(FIRST) + len(skip)], [])


def test_the_part_with_another_dictionary_ends_where_the_own_one_is_repeated() -> None:
    other = skippable(OTHER, 13)
    mine, foreign = packed(OWN), packed(OTHER)
    start, size = len(FIRST) + len(mine), len(other) + 2 * len(foreign)
    found, told = read(FIRST, mine, other, foreign, foreign, FIRST, mine)
    assert found == [len(FIRST), start + size + len(FIRST)]
    assert [offset for offset, _ in told] == [start]
    assert told[0][1].endswith(
        f"(id 50000), and readers know only the one at the start of a file; {size} bytes skipped"
    )
    again = skippable(b"notes")
    assert len(read(FIRST, mine, FIRST, mine, again, mine)[0]) == 3
    noted = skippable(b"notes", 13)
    found, told = read(FIRST, mine, other, foreign, noted, foreign, FIRST, mine)
    assert (found, len(told)) == ([len(FIRST), start + size + len(noted) + len(FIRST)], 1)
    found, told = read(FIRST, mine, other, foreign, foreign[:-3])
    assert (found, len(told)) == ([len(FIRST)], 1)


@pytest.mark.parametrize("number", [0, 12, 14, 15])
def test_a_dictionary_in_a_frame_of_another_kind_is_passed(number: int) -> None:
    """Of the 16 magic numbers of skippable frames, WARC-Zstd has one for dictionaries."""
    one = frame(record(1, 50))
    found, told = read(one, skippable(OWN, number), one)
    assert (len(found), told) == (2, [])
