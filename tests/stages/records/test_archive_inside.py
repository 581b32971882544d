"""A damaged record whose payload is an archive: no inner record is a capture, and no other record is lost."""

from __future__ import annotations

import hashlib
import io
import random
import re
from collections.abc import Callable

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from cdxmill.capture import Damage
from cdxmill.stages.records import archive_inside
from cdxmill.stages.records.read_contents import Content, read_contents

from ...commands.test_recompress import frame, member
from ...material.memory_files import MemoryFiles

NUMBERS = range(12)
HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: application/warc\r\n\r\n"
CLOSING = b"\r\n\r\n"


def record(name: str, block: bytes, kind: bytes = b"resource", more: bytes = b"") -> bytes:
    return (
        b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Target-URI: http://%b.com/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
        b"WARC-Record-ID: <urn:uuid:%b>\r\n%bContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
        % (kind, name.encode(), name.encode(), more, len(block), block)
    )


OTHERS = [record(f"o{number}", b"text %d\r\n\r\n" % number * number) for number in NUMBERS]
INNER = [record(f"i{number}", b"inner %d\r\n" % number * 9) for number in range(3)]
ARCHIVE = b"".join(INNER)
OUTER = {
    "at once": record("outer", ARCHIVE),
    "after an HTTP head": record("outer", HTTP + ARCHIVE, b"response"),
    "one record": record("outer", INNER[0]),
    "an archive in it": record("outer", INNER[1] + record("middle", ARCHIVE) + INNER[2]),
}


SECOND = INNER[1][:60]


def plain(data: bytes) -> bytes:
    return data


UNITS = pytest.mark.parametrize("to_unit", [plain, member, frame], ids=["plain", "gz", "zst"])


def changed(length: bytes) -> Callable[[bytes], bytes]:
    return lambda data: re.sub(rb"Content-Length: \d+", b"Content-Length: " + length, data, count=1)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "no length": lambda data: data.replace(b"Content-Length", b"X-Length", 1),
    "invalid length": changed(b"many"),
    "enormous length": changed(b"9" * 30),
    "too short": changed(b"7"),
    "into the first record": changed(b"300"),
    "too long": changed(b"1700"),
    "longer than all": changed(b"1000000"),
    "version": lambda data: data.replace(b"WARC/1.0", b"WARC/7.0", 1),
    "garbage": lambda data: b"GARBAGE" + data[9:],
    "no blank line": lambda data: data.replace(CLOSING, b"\r\nX\n", 1),
    "no closing": lambda data: data[:-4] + b"\rXXX",
    "no length, and an inner version": lambda data: DAMAGE["no length"](data).replace(
        SECOND, b"X" + SECOND[1:]
    ),
}


def read(data: bytes) -> tuple[list[bytes], list[str]]:
    """The records of an archive, and the reasons of its damage."""
    records, reasons = [], []
    for item in read_contents(lambda pos, size: data[pos : pos + size], MemoryFiles()):
        if isinstance(item, Content) and item.records:
            records.append(b"".join(item.pieces()))
        elif isinstance(item, Damage):
            reasons.append(item.reason)
    return records, reasons


@pytest.mark.parametrize("outer", OUTER)
def test_the_peers_see_no_inner_record_either(outer: str) -> None:
    data = b"".join([*OTHERS, OUTER[outer], *OTHERS])
    ours = [re.search(rb"<urn:uuid:(\w+)>", one)[1].decode() for one in read(data)[0]]  # type: ignore[index]
    fast = [one.record_id for one in FastIterator(io.BytesIO(data))]
    slow = [one.rec_headers["WARC-Record-ID"] for one in ArchiveIterator(io.BytesIO(data))]
    assert [f"<urn:uuid:{name}>" for name in ours] == fast == slow
    assert "outer" in ours


SPLIT: dict[str, list[bytes]] = {
    "closed with the last one": [*INNER[:2], INNER[2] + CLOSING],
    "closed by itself": [*INNER, CLOSING],
    "begun with the header": [ARCHIVE[:20], ARCHIVE[20:], CLOSING],
    "not closed": INNER,
    "closed by more": [*INNER, CLOSING + b"\r\n"],
}


@pytest.mark.parametrize("to_unit", [member, frame], ids=["gz", "zst"])
@pytest.mark.parametrize("name", SPLIT)
def test_a_record_in_several_units_ends_where_its_length_says_if_it_is_closed_there(
    name: str, to_unit: Callable[[bytes], bytes]
) -> None:
    header = OUTER["at once"][: -len(ARCHIVE + CLOSING)]
    units = [*OTHERS, header, *SPLIT[name], *OTHERS]
    found, reasons = read(b"".join(map(to_unit, units)))
    if name in ("not closed", "closed by more"):
        assert OUTER["at once"] not in found
        assert reasons
    else:
        assert (found, reasons) == ([*OTHERS, OUTER["at once"], *OTHERS], [])


@pytest.mark.parametrize("to_unit", [member, frame], ids=["gz", "zst"])
@pytest.mark.parametrize(
    ("payload", "is_right", "is_read"),
    [(ARCHIVE, False, True), (ARCHIVE + b"more", True, True), (ARCHIVE + b"more", False, False)],
)
@pytest.mark.parametrize("is_closed_apart", [True, False])
def test_a_record_in_several_units_is_proved_by_two_closings_or_by_its_digest(
    payload: bytes, is_right: bool, is_read: bool, is_closed_apart: bool, to_unit: Callable[[bytes], bytes]
) -> None:  # fmt: skip
    digest = hashlib.sha1(payload if is_right else b"").hexdigest().encode()
    outer = record("outer", payload, more=b"WARC-Block-Digest: sha1:%b\r\n" % digest)
    header = outer[: -len(payload + CLOSING)]
    rest = [payload, CLOSING] if is_closed_apart else [payload + CLOSING]
    found, reasons = read(b"".join(map(to_unit, [OTHERS[0], header, *rest, OTHERS[1]])))
    if is_read:
        assert (found, reasons) == ([OTHERS[0], outer, OTHERS[1]], [])
    else:
        assert outer not in found
        assert reasons


@UNITS
@pytest.mark.parametrize("place", [0, 6, 12])
@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("outer", OUTER)
def test_the_damage_costs_the_outer_record_alone(
    outer: str, kind: str, place: int, to_unit: Callable[[bytes], bytes]
) -> None:
    bad = DAMAGE[kind](OUTER[outer])
    data = to_unit(b"".join([*OTHERS[:place], bad, *OTHERS[place:]]))
    records, reasons = read(data)
    assert records == OTHERS
    assert len(reasons) == 1
    assert f"; {len(bad)} bytes skipped" in reasons[0]
    assert "its payload is an archive of " in reasons[0]


@pytest.mark.parametrize("name", ["no length", "invalid length", "enormous length", "version", "garbage"])
@pytest.mark.parametrize("place", [0, 6])
def test_an_archive_after_a_text_ends_where_the_line_ends_of_two_records_are(name: str, place: int) -> None:
    outer = DAMAGE[name](record("outer", b"a text\r\n\r\n" + ARCHIVE))
    found, reasons = read(b"".join([*OTHERS[:place], outer, *OTHERS[place:]]))
    assert found == OTHERS
    assert reasons


@pytest.mark.parametrize("name", ["no length", "invalid length", "enormous length", "version", "garbage"])
@pytest.mark.parametrize("text", [b"a text\r\n\r\n", b"a text"])
def test_the_first_record_of_a_file_with_more_line_ends_is_damaged(name: str, text: bytes) -> None:
    """The line ends after the second record are those of this file, not those of a record around it."""
    loose = [one + CLOSING for one in [DAMAGE[name](record("bad", text)), *OTHERS]]
    found, reasons = read(b"".join(loose))
    assert [one.rstrip(b"\r\n") for one in found] == [one.rstrip(b"\r\n") for one in OTHERS]
    assert len(reasons) == 1


@pytest.mark.parametrize("name", ["version", "garbage"])
@pytest.mark.parametrize("lines", [1, 10_000])
@pytest.mark.parametrize("place", [6, 12])
def test_a_length_that_is_right_is_enough(name: str, lines: int, place: int) -> None:
    """The record in it is not followed by the line ends of two."""
    outer = DAMAGE[name](record("outer", b"a text\r\n" * lines + b"\r\n" + INNER[0] + b"more"))
    found, reasons = read(b"".join([*OTHERS[:place], outer, *OTHERS[place:]]))
    assert found == OTHERS
    assert len(reasons) == 1


def test_an_archive_of_one_record_after_a_text_is_one() -> None:
    outer = DAMAGE["no length"](record("outer", b"a text\r\n\r\n" + INNER[0]))
    found, reasons = read(b"".join([*OTHERS[:6], outer, *OTHERS[6:]]))
    assert found == OTHERS
    assert len(reasons) == 1


@pytest.mark.parametrize("more", [b"", CLOSING])
@pytest.mark.parametrize("size", [60_000, 70_000])
def test_garbage_that_is_longer_than_any_header_costs_no_record(size: int, more: bytes) -> None:
    parts = [*OTHERS[:6], b"?" * size, *OTHERS[6:]]
    found, reasons = read(b"".join(one + more for one in parts))
    assert [one.rstrip(b"\r\n") for one in found] == [one.rstrip(b"\r\n") for one in OTHERS]
    assert len(reasons) == 1


@pytest.mark.parametrize("garbage", [b"X\n\n", b"XX\n\n", b"X\r\n\r\n", b"X: y\r\n\r\n", b"X" * 31])
def test_garbage_that_is_shorter_than_any_header_costs_no_record(garbage: bytes) -> None:
    """The line ends at the end of the file are not those of a record around all that follow."""
    found, reasons = read(b"".join([*OTHERS[:6], garbage, *OTHERS[6:], CLOSING]))
    assert [one.rstrip(b"\r\n") for one in found] == [one.rstrip(b"\r\n") for one in OTHERS]
    assert reasons == [f"no WARC or ARC record starts here; {len(garbage)} bytes skipped"]


@pytest.mark.parametrize("length", [b"1700", b"1000000"])
def test_a_text_whose_length_leads_behind_the_end_of_the_file_costs_itself_alone(length: bytes) -> None:
    bad = changed(length)(record("bad", b"a text"))
    found, reasons = read(b"".join([*OTHERS[:6], bad, *OTHERS[6:]]))
    assert found == OTHERS
    assert len(reasons) == 1
    assert reasons[0].endswith(f"1627 found; {len(bad)} bytes skipped")


@pytest.mark.parametrize("name", ["version", "garbage"])
def test_the_length_of_a_damaged_record_leads_to_the_end_of_a_truncated_file_or_behind_it(name: str) -> None:
    bad = DAMAGE[name](OUTER["at once"])
    for size in range(len(bad) - len(ARCHIVE + CLOSING), len(bad) + 1):
        found, reasons = read(b"".join([*OTHERS[:2], bad[:size]]))
        assert found == OTHERS[:2], size
        assert reasons, size


@pytest.mark.parametrize(
    ("text", "closing", "end"),
    [(b"", b"\n\n", b""), *((HTTP[:size], closing, end) for size in (20, -2) for closing in (b"\n\n", CLOSING) for end in (b"", b"\n", CLOSING))],
    ids=range(13),
)  # fmt: skip
def test_a_record_that_breaks_off_before_its_payload_costs_itself_alone(
    text: bytes, closing: bytes, end: bytes
) -> None:
    """No record after it is its payload, however many line ends the file ends with."""
    bad = DAMAGE["no length"](record("bad", text, b"response")).removesuffix(CLOSING)
    others = [one.removesuffix(CLOSING) + closing for one in OTHERS]
    found, _ = read(b"".join([*others[:6], bad, *others[6:], end]))
    assert [one.rstrip(b"\r\n") for one in found] == [one.rstrip(b"\r\n") for one in OTHERS]


def test_more_line_ends_at_the_end_of_a_file_are_those_of_no_damaged_record() -> None:
    bad = DAMAGE["no length"](record("bad", b"a text"))
    found, reasons = read(b"".join([*OTHERS[:-1], bad, OTHERS[-1], CLOSING]))
    assert [one.rstrip(b"\r\n") for one in found] == [one.rstrip(b"\r\n") for one in OTHERS]
    assert len(reasons) == 1


def test_the_record_behind_an_archive_may_be_damaged_too() -> None:
    outer = DAMAGE["no length"](record("outer", b"a text\r\n\r\n" + INNER[0]))
    bad = DAMAGE["invalid length"](record("bad", b"text"))
    found, reasons = read(b"".join([*OTHERS[:6], outer, bad, *OTHERS[6:]]))
    assert found == OTHERS
    assert len(reasons) == 2


@pytest.mark.parametrize("text", [b"a text", b"a text\r\n" * 10_000])
def test_damaged_records_between_others_are_passed_only_in_an_archive(text: bytes) -> None:
    """The archive at the end of what is passed closes another record, not the first damaged one."""
    first, second = DAMAGE["no length"](record("bad", text)), DAMAGE["no length"](OUTER["at once"])
    found, reasons = read(b"".join([OTHERS[0], first, *OTHERS[1:6], second, *OTHERS[6:]]))
    assert found == OTHERS
    assert len(reasons) == 2


def test_two_records_are_an_archive_in_a_file_with_more_line_ends_too() -> None:
    outer = DAMAGE["no length"](record("outer", b"a text\r\n\r\n" + INNER[0] + INNER[1]))
    found, reasons = read(b"".join(one + CLOSING for one in [*OTHERS[:6], outer, *OTHERS[6:]]))
    assert [one.rstrip(b"\r\n") for one in found] == [one.rstrip(b"\r\n") for one in OTHERS]
    assert len(reasons) == 1


def test_damaged_records_of_an_archive_are_passed_in_a_file_with_more_line_ends_too() -> None:
    outer = DAMAGE["no length, and an inner version"](OUTER["at once"])
    found, reasons = read(b"".join(one + CLOSING for one in [*OTHERS[:6], outer, *OTHERS[6:]]))
    assert [one.rstrip(b"\r\n") for one in found] == [one.rstrip(b"\r\n") for one in OTHERS]
    assert len(reasons) == 1


@pytest.mark.parametrize(("free", "share", "number"), [(0, 3, 1), (8192, 0, 1), (8191, 0, 4), (0, 0, 4)])
def test_damaged_records_in_an_archive_are_passed_as_long_as_that_costs_little(
    free: int, share: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs 4 KiB at least. More of them are reported one by one."""
    monkeypatch.setattr(archive_inside, "_FREE", free)
    monkeypatch.setattr(archive_inside, "_SHARE", share)
    bad = DAMAGE["no length"](INNER[1])
    outer = DAMAGE["no length"](record("outer", INNER[0] + bad + INNER[2] + bad + INNER[1] + bad + INNER[0]))
    _, reasons = read(b"".join([*OTHERS * 2, outer, *OTHERS]))
    assert len(reasons) == number


@pytest.mark.parametrize(("free", "records", "damages"), [(8192, 1, 1), (0, 4, 3)])
def test_the_end_of_a_file_is_that_of_a_cut_archive_only_if_all_of_it_was_looked_at(
    free: int, records: int, damages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_inside, "_FREE", free)
    monkeypatch.setattr(archive_inside, "_SHARE", 0)
    bad = DAMAGE["no length"](INNER[1])
    outer = DAMAGE["longer than all"](record("outer", INNER[0] + bad + INNER[2] + bad + INNER[1]))
    found, reasons = read(OTHERS[0] + outer.removesuffix(CLOSING))
    assert (len(found), len(reasons)) == (records, damages)


@UNITS
@pytest.mark.parametrize("outer", OUTER)
def test_mutants(outer: str, to_unit: Callable[[bytes], bytes]) -> None:
    """One to three bytes of the header or of the closing are changed."""
    chance, whole = random.Random(34), OUTER[outer]
    header = whole.index(CLOSING) + 4
    for _ in range(150):
        bad = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            bad[chance.choice([chance.randrange(header), len(bad) - chance.randint(1, 4)])] = (
                chance.randrange(256)
            )
        place = chance.randrange(len(OTHERS))
        records, reasons = read(to_unit(b"".join([*OTHERS[:place], bad, *OTHERS[place:]])))
        left = [one for one in records if one not in OTHERS]
        assert [one for one in records if one in OTHERS] == OTHERS, bytes(bad)
        assert left in ([], [bytes(bad)]), bytes(bad)
        assert left or f"; {len(bad)} bytes skipped" in reasons[0], (reasons, bytes(bad))
        assert len(reasons) == (not left), (reasons, bytes(bad))


def arc_record(name: str, block: bytes) -> bytes:
    head = b"http://%b.com/ 1.2.3.4 20200101000000 text/plain %d" % (name.encode(), len(block))
    return b"%b\n%b\n" % (head, block)


VERSION = b"1 0 cdxmill\nURL IP-address Archive-date Content-type Archive-length\n"
VERSION = b"filedesc://x.arc 0.0.0.0 20200101000000 text/plain %d\n%b\n" % (len(VERSION), VERSION)
ARC_OTHERS = [
    VERSION,
    *(arc_record(f"o{number}", b"text %d\r\n\r\n" % number * number) for number in NUMBERS[1:]),
]
ARC_ARCHIVE = b"".join(arc_record(f"i{number}", b"inner %d\r\n" % number * 9) for number in range(3))
ARC_OUTER = {
    "at once": arc_record("outer", VERSION + ARC_ARCHIVE),
    "after an HTTP head": arc_record("outer", HTTP + VERSION + ARC_ARCHIVE),
    "without a version record": arc_record("outer", ARC_ARCHIVE),
    "a WARC": arc_record("outer", ARCHIVE),
    "a WARC after an HTTP head": arc_record("outer", HTTP + ARCHIVE),
}


@UNITS
@pytest.mark.parametrize("place", [1, 6, 12])
@pytest.mark.parametrize("length", [b"7", b"300", b"1700", b"1000000", b"many"])
@pytest.mark.parametrize("outer", ARC_OUTER)
def test_an_arc_record_with_a_wrong_length_costs_itself_alone(
    outer: str, length: bytes, place: int, to_unit: Callable[[bytes], bytes]
) -> None:
    bad = re.sub(rb" \d+\n", b" %b\n" % length, ARC_OUTER[outer], count=1)
    records, reasons = read(to_unit(b"".join([*ARC_OTHERS[:place], bad, *ARC_OTHERS[place:]])))
    assert records == ARC_OTHERS
    assert len(reasons) == 1
    assert "its payload is an archive of " in reasons[0]


UNREADABLE: dict[str, Callable[[bytes], bytes]] = {
    "no mime field": lambda data: data.replace(b" text/plain", b"", 1),
    "garbage at its start": lambda data: b"\0\xff ?" + data[5:],
    "no address": lambda data: data.replace(b" 1.2.3.4", b"", 1),
}


@UNITS
@pytest.mark.parametrize("place", [1, 6, 11, 12])
@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("outer", [*ARC_OUTER, "text"])
def test_an_arc_header_line_that_cannot_be_read_costs_its_record_alone(
    outer: str, kind: str, place: int, to_unit: Callable[[bytes], bytes]
) -> None:
    bad = UNREADABLE[kind](ARC_OUTER.get(outer) or arc_record("outer", b"text\r\n\r\n" * 9))
    records, reasons = read(to_unit(b"".join([*ARC_OTHERS[:place], bad, *ARC_OTHERS[place:]])))
    assert records == ARC_OTHERS
    assert len(reasons) == 1, reasons
    assert f"; {len(bad)} bytes skipped" in reasons[0]


@pytest.mark.parametrize("place", range(2, 12))
@pytest.mark.parametrize("is_last_loose", [True, False])
def test_an_arc_file_with_blank_lines_between_its_records_loses_the_damaged_one_only(
    place: int, *, is_last_loose: bool
) -> None:
    loose = [one + b"\n" for one in ARC_OTHERS]
    if not is_last_loose:
        loose[-1] = ARC_OTHERS[-1]
    loose[place] = re.sub(rb" \d+\n", b" many\n", loose[place], count=1)
    records, reasons = read(b"".join(loose))
    wanted = [one for number, one in enumerate(ARC_OTHERS) if number != place]
    assert [one.rstrip(b"\n") for one in records] == [one.rstrip(b"\n") for one in wanted]
    assert len(reasons) == 1
