"""Members and frames that do not have one record each: all contents are given, and each part of them is reported once."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from cdxmill.capture import Damage, Note
from cdxmill.formats.archives.warc_header import Head, HeaderMatch
from cdxmill.stages import native
from cdxmill.stages.records import resync
from cdxmill.stages.records.parse_header import FETCH_AGAIN
from cdxmill.stages.records.read_contents import (
    Content,
    Refusals,
    choose_contents,
    read_contents,
    without_notes,
)
from cdxmill.stages.records.read_units import Members
from cdxmill.stages.records.read_zst import Frames
from cdxmill.stages.window import Window

from ...material.memory_files import MemoryFiles
from .test_changing_files import record
from .test_corrupt_units import BOTH, NO_LENGTH, PACK, WRONG, spoiled
from .test_skippable_frames import skippable

A, B, C, D = (record(number, 40 + number) for number in range(4))
BLANK = b"\r\n"
ARC = b"http://a.b/ 1.2.3.4 20240101000000 text/plain 4\ntext\n"


class Scratch(MemoryFiles):
    """A file that is created again replaces the one before, as on disk."""

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        self.pop(name, None)
        with super().create(name) as file:
            yield file


def reader(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, size: data[offset : offset + size]


def contents(data: bytes) -> list[tuple[int, int, bytes] | Damage | Note]:
    """The unit of each content by its offset, the length that an index line has, and its bytes."""
    found: list[tuple[int, int, bytes] | Damage | Note] = []
    for one in read_contents(reader(data), Scratch()):
        if isinstance(one, Content):
            found.append((one.offset, one.line_length, b"".join(one.pieces())))
        else:
            found.append(one)
    return found


@BOTH
def test_the_records_of_one_unit_have_its_offset_and_no_length(form: str) -> None:
    a, several, d = map(PACK[form], (A, B + C, D))
    blank = PACK[form](BLANK)
    end = len(a + several)
    assert contents(a + several + d) == [(0, len(a), A), (len(a), 0, B), (len(a), 0, C), (end, len(d), D)]
    assert contents(blank + a + blank + several + blank) == [
        (0, 0, BLANK),
        (len(blank), len(a), A + BLANK),
        (len(blank + a + blank), 0, B),
        (len(blank + a + blank), 0, C + BLANK),
    ]


@BOTH
def test_a_damaged_record_after_such_a_unit_is_told_once(form: str) -> None:
    """It is read with that unit, as far as no sound record follows."""
    several, bad, d = map(PACK[form], (A + B, NO_LENGTH, D))
    found = contents(several + bad + d)
    assert found[:2] == [(0, 0, A), (0, 0, B)]
    assert isinstance(found[2], Damage)
    assert found[2].offset == 0
    assert found[2].reason.startswith("missing Content-Length; ")
    assert found[2].reason.endswith(f" bytes skipped, at byte {len(A + B)} of the decompressed content")
    assert found[3:] == [(len(several + bad), len(d), D)]
    assert [type(one) for one in contents(bad + several)] == [Damage, tuple, tuple]


@BOTH
def test_nothing_of_a_unit_with_a_wrong_checksum_is_given(form: str) -> None:
    several, bad, more = PACK[form](A + B), spoiled(PACK[form](C + D)), PACK[form](B + D)
    damage = Damage(len(several), f"{WRONG[form]}; {len(bad)} bytes skipped", FETCH_AGAIN)
    end = len(several + bad)
    assert contents(several + bad + more) == [(0, 0, A), (0, 0, B), damage, (end, 0, B), (end, 0, D)]
    assert contents(several + bad) == [(0, 0, A), (0, 0, B), damage]


def test_what_is_whole_in_a_member_that_is_cut_is_given() -> None:
    """As zlib gives what comes before the end."""
    cut = gzip.compress(A + B + C + bytes(99_999), 0, mtime=0)[: 50 + len(A + B + C)]
    first, second, third, *rest = contents(cut)
    assert (first, second) == ((0, 0, A), (0, 0, B))
    assert third == (0, 0, C) or isinstance(third, Damage)
    assert [one for one in rest if not isinstance(one, Damage)] == []


def test_a_note_ends_nothing() -> None:
    a, b, skip = PACK["zst"](A), PACK["zst"](B), skippable(PACK["zst"](C))
    text = "1 skippable zstd frame ({} bytes) is not copied"
    for first in (a, PACK["zst"](A + D)):
        found = contents(first + skip + b)
        assert [one[2] for one in found if not isinstance(one, Note | Damage)] == [
            *([A] if first == a else [A, D]),
            B,
        ]
        assert found[-1] == Note(len(first), text.format(len(skip)))
        assert not any(isinstance(one, Damage) for one in found)


def test_notes_are_taken_from_what_is_read() -> None:
    notes: list[Note] = []
    items: list[Content | Damage | Note] = [
        Note(1, "a"),
        Damage(2, "b"),
        Content(3, 1, 1, b"x"),
        Note(4, "c"),
    ]
    assert list(without_notes(iter(items), notes.append)) == items[1:3]
    assert notes == [items[0], items[3]]


def chosen(data: bytes, refusals: Refusals = Refusals()) -> tuple[list[bytes | Damage], list[bytes]]:  # noqa: B008
    """What is found, without the records that have a D in their header, and what was asked about."""
    asked: list[bytes] = []

    def choose(content: Content, match: HeaderMatch | None) -> bytes | None:
        del match
        asked.append(b"".join(content.pieces()))
        return None if b"/3\r\n" in asked[-1] or b"arc/no" in asked[-1] else asked[-1]

    return list(choose_contents(reader(data), Scratch(), choose, refusals=refusals)), asked


@BOTH
def test_a_damaged_unit_does_not_change_how_the_rest_is_read(form: str) -> None:
    a, b, bad = PACK[form](A), PACK[form](B), PACK[form](NO_LENGTH)
    refusals = Refusals(by_content=lambda data: b"/1\r\n" in data)
    (first, damage, last), asked = chosen(a + bad + b + a, refusals)
    assert isinstance(damage, Damage)
    assert (first, last) == (A, A)
    assert asked == [A, A]


@BOTH
def test_a_blank_content_and_a_note_are_not_offered(form: str) -> None:
    a, several, blank = map(PACK[form], (A, BLANK + B + C, BLANK))
    skip = skippable(PACK[form](B)) if form == "zst" else b""
    for parts in ((several, a, skip, blank, a), (blank, several, skip, a), (blank, several, blank, skip, a)):
        found, asked = chosen(b"".join(parts))
        assert [one.rstrip(b"\r\n") for one in asked] == [
            one.rstrip(b"\r\n") for one in (B, C, *[A] * parts.count(a))
        ]
        assert found == asked


@pytest.mark.parametrize("is_compiled", [True, False])
@BOTH
def test_records_whose_header_has_no_known_shape_are_offered_and_may_be_left_out(
    form: str, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr(native, "head", None)
    asked_for: list[Head] = []

    def by_head(head: Head) -> bool:
        asked_for.append(head)
        return False

    other = ARC.replace(b"http://a.b/", b"http://arc/no")
    parts = [ARC, other, A, A.removesuffix(BLANK), D.removesuffix(BLANK), D]
    found, asked = chosen(b"".join(map(PACK[form], parts)), Refusals(by_head))
    assert (found, asked) == ([ARC, A, A.removesuffix(BLANK)], parts)
    assert asked_for


@BOTH
def test_other_bytes_in_place_of_the_line_ends_are_damage(form: str) -> None:
    a, bad = PACK[form](A), PACK[form](A.removesuffix(b"\r\n\r\n") + b"more")
    (first, damage, last), asked = chosen(a + bad + a)
    assert (first, last, asked) == (A, A, [A, A])
    assert isinstance(damage, Damage)
    assert damage.reason.startswith("Content-Length is too short")


UNITS = {"gz": Members, "zst": Frames}


@BOTH
def test_the_next_unit_that_is_whole_need_not_be_a_record(form: str) -> None:
    good = PACK[form](b"text")
    bad = spoiled(good)
    for parts, place in (
        ([bad, good], 1),
        ([bad, bad, good, good], 2),
        ([bad, b"??", good], 2),
        ([good, good], 1),
        ([bad], 1),
        ([bad, bad], 2),
        ([bad, skippable(b"x", 13), good], 1 if form == "zst" else 2),
        ([bad, skippable(b"x", 12), good], 2),
    ):
        units = UNITS[form](Window(reader(b"".join(parts))))
        assert units.next_whole(0) == len(b"".join(parts[:place]))


@BOTH
@pytest.mark.parametrize("is_larger", [True, False])
def test_the_search_for_it_goes_on_behind_what_it_has_read(
    form: str, is_larger: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that are decompressed count like bytes that are read."""
    monkeypatch.setattr(resync, "_FREE", 0)
    monkeypatch.setattr(resync, "_SHARE", 0)
    good = PACK[form](b"text")
    pack = {"gz": lambda data: gzip.compress(data, mtime=0), "zst": PACK["zst"]}[form]
    monkeypatch.setattr("cdxmill.stages.records.read_zst._CONTENT_PIECE", 1 << 10)
    noise = bytes(number * number * number % 251 for number in range(700))
    bad = spoiled(pack(bytes(10_000)) if is_larger else PACK[form](noise))
    assert (len(bad) < 256) == is_larger
    start = 256 + len(bad)
    data = b"?" * 256 + bad + b"?" * (600 if is_larger else 0) + good
    units = UNITS[form](Window(reader(data + b"?" * 20_000 + good)))
    assert units.next_whole(0) == (len(data) + 20_000 if is_larger else start)
