"""A corrupt member or frame, or one that is not one record: how far the damage reaches, and whether several records are in it."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
import zstandard

from cdxmill.capture import Damage, Record
from cdxmill.stages.records import read_zst, resync, split_record, units
from cdxmill.stages.records.parse_header import FETCH_AGAIN, RECOMPRESS_FRAMES, RECOMPRESS_MEMBERS
from cdxmill.stages.records.read_records import read_records

from .test_changing_files import record


def stored(content: bytes) -> bytes:
    """A gzip member whose content lies there as it is."""
    return gzip.compress(content, 0, mtime=0)


def frame(content: bytes) -> bytes:
    """A frame. Contents that are too short to compress lie there as they are."""
    return zstandard.ZstdCompressor(1, write_checksum=True).compress(content)


def spoiled(unit: bytes) -> bytes:
    """A member or frame with another checksum."""
    at = -8 if unit.startswith(b"\x1f\x8b") else -4
    return unit[:at] + bytes([unit[at] ^ 1]) + unit[at + 1 :] if at else unit


PACK: dict[str, Callable[[bytes], bytes]] = {"gz": stored, "zst": frame}
BOTH = pytest.mark.parametrize("form", PACK)
WRONG = {"gz": "gzip CRC32 mismatch", "zst": "corrupt zstd data (restored data doesn't match checksum)"}
ONE, TWO = record(1, 50), record(2, 60)
NO_LENGTH = ONE.replace(b"Content-Length", b"X-Length")
LONG = ONE.replace(b"Content-Length: 50", b"Content-Length: 500000")
ARCHIVE = b"".join(record(number, 30) for number in range(3))


def outer(payload: bytes) -> bytes:
    """A record with a payload."""
    header = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: %d\r\n\r\n" % len(payload)
    return header + payload + b"\r\n\r\n"


def read(data: bytes) -> tuple[list[int], list[Damage]]:
    """The offsets of records, and the damage."""
    found = list(read_records(lambda pos, size: data[pos : pos + size]))
    records = [item.offset for item in found if isinstance(item, Record)]
    return records, [item for item in found if isinstance(item, Damage)]


@BOTH
@pytest.mark.parametrize("behind", [0, 1])
def test_what_lies_in_a_unit_with_a_wrong_checksum_is_no_record_of_the_file(form: str, behind: int) -> None:
    """Its end is certain if a record, or the end of the file, follows."""
    one = PACK[form](ONE)
    bad = spoiled(PACK[form](outer(one + b"\r\n")))
    assert one in bad
    records, damage = read(one + bad + one * behind)
    assert records == [0, len(one + bad)][: 1 + behind]
    assert damage == [Damage(len(one), f"{WRONG[form]}; {len(bad)} bytes skipped", FETCH_AGAIN)]


@BOTH
def test_garbage_behind_a_unit_with_a_wrong_checksum_belongs_to_its_damage(form: str) -> None:
    one = PACK[form](ONE)
    bad = spoiled(one)
    records, damage = read(one + bad + b"?" * 9 + one)
    assert records == [0, len(one + bad) + 9]
    assert damage == [Damage(len(one), f"{WRONG[form]}; {len(bad) + 9} bytes skipped", FETCH_AGAIN)]


def test_a_record_between_two_members_that_break_off_is_read() -> None:
    """Where such a member ends is not known, and the file may end first."""
    one = gzip.compress(ONE, mtime=0)
    bad = one[:10] + b"\x07" + one[11:]
    records, damage = read(bad + one + bad)
    assert records == [len(bad)]
    assert [item.offset for item in damage] == [0, len(bad + one)]


def test_a_member_that_reaches_to_the_end_of_the_file_is_skipped_up_to_the_next_record() -> None:
    one = stored(ONE)
    cut = stored(b"x" * 60_000)[:100]
    reason = "the file is truncated inside a gzip member"
    records, damage = read(one + cut + one)
    assert records == [0, len(one + cut)]
    assert [item[:3] for item in damage] == [(len(one), f"{reason}; 100 bytes skipped", FETCH_AGAIN)]
    assert read(one + cut) == ([0], [Damage(len(one), reason, FETCH_AGAIN)])


@BOTH
def test_what_was_read_of_a_corrupt_unit_is_all_that_is_passed(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search goes on there if it has cost too much to try each byte."""
    monkeypatch.setattr(resync, "_FREE", 0)
    monkeypatch.setattr(resync, "_SHARE", 0)
    one = PACK[form](ONE)
    bad = spoiled(PACK[form](b"WARC/1.0\r\n" + bytes(range(256)) * 2))
    records, damage = read(one * 9 + bad + b"?" * 9 + one * 2)
    start = len(one * 9 + bad) + 9
    assert records == [*range(0, 9 * len(one), len(one)), start, start + len(one)]
    assert [item.offset for item in damage] == [9 * len(one)]


@BOTH
@pytest.mark.parametrize(
    ("content", "is_miscut"),
    [
        (ONE, False),
        (ONE + TWO, True),
        (NO_LENGTH, False),
        (NO_LENGTH + ONE, True),
        (ONE + b"text" * 99, True),
        (b"text" + ONE, True),
        (b"text", False),
    ],
    ids=["one", "two", "damaged", "damaged and one", "text behind", "text before", "text"],
)
def test_a_corrupt_unit_with_several_records_is_miscut(
    form: str, content: bytes, is_miscut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_zst, "_CONTENT_PIECE", 64)
    one = PACK[form](ONE)
    records, damage = read(one + spoiled(PACK[form](content)) + one)
    assert len(records) == 2
    assert [(item.offset, item.is_miscut) for item in damage] == [(len(one), is_miscut)]


def test_a_record_with_an_archive_in_it_that_breaks_off_is_not_miscut() -> None:
    """What is in its payload is no record of the file."""
    bad = stored(outer(b"a text\r\n\r\n" + ARCHIVE + b"more" * 99))[:-300]
    _, damage = read(stored(ONE) + bad)
    assert [item.is_miscut for item in damage] == [False]


def test_a_record_in_many_members_is_one_whatever_its_parts_look_like() -> None:
    header = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: %d\r\n\r\n" % len(b"text\n" + ONE)
    one, parts = stored(TWO), [stored(header), stored(b"text\n"), stored(ONE), stored(b"\r\n\r\n")]
    for many in (parts, [stored(header), stored(b"text\n" + ONE + b"\r\n\r\n")]):
        records, (damage,) = read(one + b"".join(many) + one)
        size = len(b"".join(many))
        assert records == [0, len(one) + size]
        assert damage == Damage(
            len(one), f"{GOES_ON}; {size} bytes skipped", RECOMPRESS_MEMBERS, is_miscut=True
        )


@pytest.mark.parametrize(("more", "number"), [(0, 3), (-1, 2)])
@BOTH
def test_records_that_seem_to_reach_over_others_are_followed_up_to_a_limit(
    form: str, more: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, bad = PACK[form](ONE), PACK[form](LONG)
    data = one * 9 + bad * 5 + one
    tried: list[int] = []

    def counted(of: units.Units, pos: int) -> tuple[Record | None, int]:
        tried.append(pos)
        return take_across(of, pos)

    take_across = split_record.take_across
    first = len(one * 9)
    cost = [len(data) - first - len(bad) * number for number in range(5)]
    monkeypatch.setattr(units, "take_across", counted)
    monkeypatch.setattr(units, "_FREE", cost[0] + cost[1] + more)
    monkeypatch.setattr(units, "_SHARE", 0)
    records, damage = read(data)
    assert (len(records), len(damage)) == (10, 5)
    assert tried == [first + len(bad) * number for number in range(number)]


TEXT, BLANK = stored(b"more of it"), stored(b"\r\n\r\n")
GOES_ON = "the record continues in the next gzip member"
TOO_LONG = "Content-Length is 500000, but the block has only 54 bytes"
NO_START = "no WARC or ARC record starts here"


@pytest.mark.parametrize(
    ("content", "behind", "reasons"),
    [
        (LONG, [TEXT], [f"{GOES_ON}; {len(stored(LONG) + TEXT)} bytes skipped"]),
        (LONG, [TEXT, stored(ONE)], [f"{GOES_ON}; {len(stored(LONG) + TEXT)} bytes skipped"]),
        (LONG, [], [TOO_LONG]),
        (LONG, [BLANK], [TOO_LONG]),
        (LONG, [stored(ONE)], [TOO_LONG]),
        (ONE[:40], [TEXT], [f"{GOES_ON}; {len(stored(ONE[:40]) + TEXT)} bytes skipped"]),
        (ONE[:40], [], ["no blank line ends it"]),
        (NO_LENGTH, [TEXT], ["missing Content-Length", f"{NO_START}; {len(TEXT)} bytes skipped"]),
        (NO_LENGTH, [BLANK, TEXT], ["missing Content-Length", f"{NO_START}; {len(TEXT)} bytes skipped"]),
        (b"text\n", [TEXT, BLANK], [f"{NO_START}; {len(stored(b'text ') + TEXT + BLANK)} bytes skipped"]),
        (b"text", [TEXT], [f"{GOES_ON}; {len(stored(b'text') + TEXT)} bytes skipped"]),
    ],
    ids=range(11),
)
def test_a_record_goes_on_in_the_next_member_if_it_is_cut_and_that_starts_none(
    content: bytes, behind: list[bytes], reasons: list[str]
) -> None:
    first = stored(TWO)
    records, damage = read(b"".join([first, stored(content), *behind]))
    assert len(records) == 1 + behind.count(stored(ONE))
    assert len(damage) == len(reasons)
    for item, reason in zip(damage, reasons, strict=True):
        assert reason in item.reason
        assert item.is_miscut == (GOES_ON in reason)
        assert GOES_ON not in reason or item.hint == RECOMPRESS_MEMBERS


@BOTH
@pytest.mark.parametrize(
    ("content", "inside"), [(ONE + TWO, "2"), (NO_LENGTH + TWO, "1, and 1 damaged"), (TWO + NO_LENGTH, "1, and 1 damaged")]
)  # fmt: skip
def test_a_unit_with_several_records_says_how_many(form: str, content: bytes, inside: str) -> None:
    one, bad = PACK[form](ONE), PACK[form](content)
    records, (damage,) = read(one + bad + one)
    assert records == [0, len(one + bad)]
    name, hint = {"gz": ("gzip member", RECOMPRESS_MEMBERS), "zst": ("zstd frame", RECOMPRESS_FRAMES)}[form]
    assert damage.reason.startswith(f"the {name} contains more than one record: {inside}")
    assert damage.reason.endswith(f"; {len(bad)} bytes skipped")
    assert (damage.hint, damage.is_miscut) == (hint, True)
