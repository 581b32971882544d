"""Zstandard archives: the quick way and the careful way give the same lines and report the same damage."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isal import isal_zlib

from cdxmill.capture import Record
from cdxmill.formats.archives.zstd_dictionary import dictionary_of, with_own_id
from cdxmill.stages import native
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import Findings, index_archive
from cdxmill.stages.records import read_zst
from cdxmill.stages.records.fetch_record import Archive
from cdxmill.stages.records.parse_header import NOT_AN_ARCHIVE
from cdxmill.stages.records.read_records import read_records

DICTIONARY_FRAME = b"\x5d\x2a\x4d\x18"


def members(path: Path) -> list[bytes]:
    """The content of each gzip member of a valid file; what comes after damage is dropped."""
    data, found = path.read_bytes(), []
    while data.startswith(b"\x1f\x8b"):
        inflater = isal_zlib.decompressobj(31)
        try:
            found.append(inflater.decompress(data))
        except isal_zlib.IsalError:  # type: ignore[misc]
            break
        data = inflater.unused_data
    return found


def frames(contents: list[bytes], dictionary: bytes = b"", *, sizes: bool = True) -> bytes:
    held = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    packer = zstandard.ZstdCompressor(3, dict_data=held, write_checksum=True, write_content_size=sizes)
    first = DICTIONARY_FRAME + len(dictionary).to_bytes(4, "little") + dictionary if dictionary else b""
    return first + b"".join(map(packer.compress, contents))


def indexed(data: bytes) -> tuple[list[bytes], Findings]:
    indexer = index_archive(
        lambda offset, size: data[offset : offset + size], b"a.warc.zst", CaptureOptions()
    )
    return [line for lines in indexer for line in lines], indexer.findings


def carefully(data: bytes) -> tuple[list[bytes], Findings]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_zst, "frame_within", lambda *_: -1)
        patch.setattr(native, "read", None)
        return indexed(data)


@pytest.fixture(scope="module")
def contents(sample_archives: list[Path]) -> list[bytes]:
    """The records of all samples that have one record per gzip member."""
    found = [one for path in sample_archives if path.stat().st_size < 1 << 20 for one in members(path)]
    assert len(found) > 2_000
    return found


@pytest.fixture(scope="module")
def dictionary(contents: list[bytes]) -> bytes:
    return zstandard.train_dictionary(
        1 << 15, [one[: 1 << 14] for one in contents[::3]], k=500, d=8
    ).as_bytes()


@pytest.mark.parametrize("sizes", [True, False], ids=["sizes", "no sizes"])
@pytest.mark.parametrize("with_dictionary", [True, False], ids=["dictionary", "none"])
def test_all_samples_get_the_same_lines(
    contents: list[bytes], dictionary: bytes, with_dictionary: bool, sizes: bool
) -> None:
    data = frames(contents, dictionary if with_dictionary else b"", sizes=sizes)
    lines, findings = indexed(data)
    assert (lines, findings) == carefully(data)
    assert len(lines) > 1_000


def test_records_are_the_same_whole_or_in_pieces(contents: list[bytes], dictionary: bytes) -> None:
    """A record may have several frames. The quick way reads the first one as a whole, and finds that more has to follow."""
    rng = random.Random(1)
    whole = [one for one in contents if len(one) > 10][:400]
    pieces, counts = [], []
    for one in whole:
        cut = rng.randrange(len(one)) if rng.random() < 0.5 else 0
        parts = [part for part in (one[:cut], one[cut:]) if part]
        pieces += parts
        counts.append(len(parts))
    data = frames(pieces, dictionary)
    assert indexed(data) == carefully(data)


def test_other_data_in_a_skippable_frame_is_no_dictionary(contents: list[bytes], dictionary: bytes) -> None:
    """A frame may contain anything, such as notes of another tool; that some of it is compressed shows nothing."""
    part = frames(contents[:9], dictionary)
    once, _ = indexed(part)
    for notes in (b"notes", zstandard.compress(b"notes")):
        lines, findings = indexed(part + DICTIONARY_FRAME + len(notes).to_bytes(4, "little") + notes + part)
        assert (len(lines), findings.damage) == (2 * len(once), []), notes


@pytest.mark.parametrize("hidden", [1, 3])
def test_a_dictionary_does_not_hide_the_frames_behind_it(
    contents: list[bytes], dictionary: bytes, hidden: int
) -> None:
    data = frames(contents[:6], dictionary)
    over = len(frames(contents[:hidden], dictionary)) - 8
    for size, is_wrong in ((over, True), (over - 1, False), (over + 1, False)):
        _, findings = indexed(data[:4] + size.to_bytes(4, "little") + data[8:])
        assert ("its length reaches over other frames" in str(findings.damage)) == is_wrong


def test_a_part_with_another_dictionary_costs_only_itself(contents: list[bytes], dictionary: bytes) -> None:
    own, part = frames(contents[:9], dictionary), frames(contents[9:20], with_own_id(dictionary, 40_000))
    once, _ = indexed(own)
    for behind, count in ((own, 2), (b"", 1)):
        lines, findings = indexed(own + part + behind)
        assert len(lines) == count * len(once)
        assert [damage.offset for damage in findings.damage] == [len(own)]
        assert "40000" in findings.damage[0].reason
        assert f"{len(part)} bytes skipped" in findings.damage[0].reason


@pytest.mark.parametrize("pack", [zstandard.compress, gzip.compress])
def test_only_a_file_that_begins_with_other_content_is_no_archive(
    contents: list[bytes], pack: Callable[[bytes], bytes]
) -> None:
    page, record = pack(b"<html>no record, but a page</html>"), pack(contents[0])
    for data, hints in (
        (page + record, [True]),
        (record + page + record, [False]),
        (record + page, [False]),
        (page + record + page, [True, False]),
    ):
        _, findings = indexed(data)
        assert [damage.hint == NOT_AN_ARCHIVE for damage in findings.damage] == hints


mutations = st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(1, 255)), max_size=3)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 1 << 30), mutations, st.integers(0, 1 << 30), st.booleans())
def test_damage_is_reported_as_by_the_careful_way(
    contents: list[bytes],
    dictionary: bytes,
    start: int,
    flips: list[tuple[int, int]],
    end: int,
    with_dictionary: bool,
) -> None:
    start %= len(contents)
    data = bytearray(frames(contents[start : start + 4], dictionary if with_dictionary else b""))
    for place, bits in flips:
        data[place % len(data)] ^= bits
    cut = bytes(data[: end % (2 * len(data)) + 1])
    assert indexed(cut) == carefully(cut)


def test_each_record_is_fetched_with_one_dictionary(contents: list[bytes], dictionary: bytes) -> None:
    whole = contents[:200]
    data = frames(whole, dictionary)
    reads: list[tuple[int, int]] = []

    def read_at(offset: int, size: int) -> bytes:
        reads.append((offset, size))
        return data[offset : offset + size]

    archive = Archive(read_at)
    found = [
        item
        for item in read_records(lambda offset, size: data[offset : offset + size])
        if isinstance(item, Record)
    ]
    fetched = [archive.record(one.offset, one.length) for one in found]
    assert len(found) > 100
    assert {b"".join(one.content()) for one in fetched} <= set(whole)
    assert sum(offset < len(dictionary) for offset, _ in reads) == 1


def test_a_dictionary_is_prepared_once_per_process(dictionary: bytes) -> None:
    """Each `get` from Python prepared it again, and took five times as long as from gzip."""
    one = DICTIONARY_FRAME + len(dictionary).to_bytes(4, "little") + dictionary
    assert dictionary_of(one) is dictionary_of(bytes(bytearray(one)))
    assert dictionary_of(one) is not dictionary_of(one + b"x")
