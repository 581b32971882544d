"""Records that somebody asks for are read by their content, those that nobody asks for are passed."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
import zstandard

from cdxmill.capture import Damage, Note
from cdxmill.formats.archives.warc_header import Head, HeaderMatch
from cdxmill.stages import native, window
from cdxmill.stages.records import read_contents as contents_module
from cdxmill.stages.records import read_zst
from cdxmill.stages.records.fetch_record import Archive, NoRecord
from cdxmill.stages.records.read_contents import (
    HELD,
    Content,
    Refusals,
    choose_at,
    choose_contents,
    contents_between,
    dictionary_in,
    read_contents,
)

from ...material.memory_files import MemoryFiles
from .test_changing_files import record
from .test_skippable_frames import FIRST, ONE, OWN, frame, packed, skippable

PACK: dict[str, Callable[[bytes], bytes]] = {"plain": bytes, "gz": gzip.compress, "zst": frame}
SMALL = [record(number, 40 + number) for number in range(5)]
LARGE = record(9, HELD)


def reader(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, size: data[offset : offset + size]


def bytes_of(content: Content, found: HeaderMatch | None = None) -> bytes | None:
    """The record without its closing; None for one that nobody wants."""
    data = b"".join(content.pieces())
    assert content.size == len(data)
    assert (content.data is None) == (len(data) > HELD)
    return None if b"/2\r\n" in data else data.rstrip(b"\r\n")


@pytest.mark.parametrize("form", PACK)
@pytest.mark.parametrize("is_compiled", [True, False])
def test_all_records_are_offered_but_for_refused_ones(
    form: str, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr(native, "head", None)
    data = b"".join(map(PACK[form], [*SMALL, LARGE]))
    found = list(choose_contents(reader(data), MemoryFiles(), bytes_of))
    assert found == [one.rstrip(b"\r\n") for one in [*SMALL, LARGE] if one != SMALL[2]]

    def by_head(head: Head) -> bool:
        return head.url_text().endswith("/1")

    def by_content(data: bytes | bytearray) -> bool:
        return b"x" * 43 in data

    for refusals, numbers in (
        (Refusals(by_head), [0, 3, 4]),
        (Refusals(None, by_content), [0, 1]),
        (Refusals(by_head, by_content), [0]),
    ):
        found = list(
            choose_contents(
                reader(b"".join(map(PACK[form], SMALL))), MemoryFiles(), bytes_of, refusals=refusals
            )
        )
        quick = [SMALL[number].rstrip(b"\r\n") for number in numbers]
        assert set(quick) <= set(found), "a refusal saves time, and is not certain"
        assert form == "plain" or found == quick


@pytest.mark.parametrize("form", ["gz", "zst"])
def test_from_a_unit_with_many_records_on_all_are_read_in_another_way(form: str) -> None:
    pack = PACK[form]
    bad = SMALL[1].replace(b"Content-Length", b"X-Length")
    data = pack(SMALL[0]) + pack(SMALL[3] + SMALL[4] + bad) + pack(SMALL[0]) + pack(LARGE)
    found = list(choose_contents(reader(data), MemoryFiles(), bytes_of))
    (damage,) = (one for one in found if isinstance(one, Damage))
    assert damage.reason.startswith("missing Content-Length")
    records = [one for one in found if not isinstance(one, Damage)]
    assert records == [one.rstrip(b"\r\n") for one in (SMALL[0], SMALL[3], SMALL[4], SMALL[0], LARGE)]


def test_notes_are_told_and_records_after_them_are_read() -> None:
    notes: list[Note] = []
    data = ONE + skippable(ONE) + ONE
    found = list(choose_contents(reader(data), MemoryFiles(), bytes_of, note=notes.append))
    assert (len(found), [note.offset for note in notes]) == (2, [len(ONE)])


@pytest.mark.parametrize("form", PACK)
def test_a_single_record_is_chosen_by_its_bytes_or_its_place(form: str) -> None:
    choose = choose_at(bytes_of)
    for one in (*SMALL, LARGE):
        unit = PACK[form](one)
        archive = Archive(reader(b"x" * 7 + unit))
        wanted = None if one == SMALL[2] else one.rstrip(b"\r\n")
        length = len(unit) - 4 if form == "plain" else len(unit)
        for held in (unit, b"", unit[:-1]):
            assert choose(archive, held, 7, length) == wanted
        assert choose(archive, b"", 7, None) == wanted
        with pytest.raises(NoRecord):
            choose(archive, b"", 6, None)


@pytest.mark.parametrize("form", PACK)
def test_the_content_between_two_offsets(form: str) -> None:
    units = [PACK[form](one) for one in (SMALL[0], b"\r\n", LARGE)]
    ends = [sum(map(len, units[:number])) for number in range(4)]
    contents = contents_between(reader(b"".join(units)), 1 << 20)
    assert list(contents(5, 5)) == []
    for start, end, data, records in (
        (0, 1, SMALL[0], 1),
        (1, 2, b"\r\n", 0),
        (2, 3, LARGE, 1),
        (0, 2, SMALL[0] + b"\r\n", 1),
    ):
        (found,) = contents(ends[start], ends[end])
        assert (found.offset, found.length, found.size, found.records) == (
            ends[start],
            ends[end] - ends[start],
            len(data),
            records,
        )
        assert b"".join(found.pieces()) == data


def test_the_content_of_frames_with_a_dictionary() -> None:
    unit = packed(OWN, SMALL[3])
    (found,) = contents_between(reader(FIRST + unit), 1 << 20)(len(FIRST), len(FIRST + unit))
    assert found.data == SMALL[3]


@pytest.mark.parametrize("form", ["plain", "zst"])
@pytest.mark.parametrize(("held", "is_held"), [(len(SMALL[0]), True), (len(SMALL[0]) - 1, False), (9, False)])
def test_a_content_that_is_not_held_has_its_size(
    held: int, is_held: bool, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents_module, "HELD", held)
    monkeypatch.setattr(window, "_RANGE_PIECE", 16)
    monkeypatch.setattr(read_zst, "_CONTENT_PIECE", 16)
    unit = PACK[form](SMALL[0])
    (found,) = contents_between(reader(unit), 1 << 20)(0, len(unit))
    assert (found.size, found.data is not None) == (len(SMALL[0]), is_held)
    assert b"".join(found.pieces()) == SMALL[0]


@pytest.mark.parametrize("form", PACK)
def test_the_contents_of_an_archive_are_all_its_bytes(form: str) -> None:
    pack = PACK[form]
    units = [SMALL[0], b"\r\n\r\n", SMALL[1], LARGE, SMALL[2] + SMALL[3], SMALL[4], b"\n"]
    contents, data = list[Content](), b""
    for one in read_contents(reader(b"".join(map(pack, units))), MemoryFiles()):
        assert isinstance(one, Content)
        contents.append(one)
        data += b"".join(one.pieces())
    assert data == b"".join(units)
    assert sum(one.records for one in contents) == 6
    lengths = [one.line_length for one in contents if one.records]
    whole = [
        len(pack(one)) - (4 if form == "plain" else 0) for one in (*SMALL[:2], LARGE, *SMALL[2:4], SMALL[4])
    ]
    if form != "plain":
        whole[3:5] = [0, 0]
    assert lengths == whole


def test_which_dictionary_an_archive_starts_with() -> None:
    assert dictionary_in(reader(FIRST + ONE)) == OWN
    for data in (
        b"",
        ONE,
        skippable(OWN) + ONE,
        skippable(b"content only" * 99, 13) + ONE,
        FIRST[:-5],
        zstandard.compress(b""),
    ):
        assert dictionary_in(reader(data)) == b""
