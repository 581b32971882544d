"""Damaged parts of an archive become records with exactly their bytes, which are recognized, and get no line."""

from __future__ import annotations

import hashlib

import pytest

from cdxmill.capture import Damage, Record
from cdxmill.stages.records import carry_damage
from cdxmill.stages.records.carry_damage import DamagedPart, has_part, part_in, raw, with_damage
from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.records.read_records import read_records

OLD = bytes(range(256)) * 4


def read_at(offset: int, size: int) -> bytes:
    return OLD[offset : offset + size]


def content(offset: int) -> Content:
    return Content(offset, 10, 5, b"whole")


def carried(*items: Content | Damage, name: str = "a.warc.gz", end: int = len(OLD)) -> list[Content | Damage]:
    return list(with_damage(items, read_at, name, lambda: end))


def parts(*items: Content | Damage, end: int = len(OLD)) -> list[object]:
    """Offset and length of each damaged part, and "whole" or "damage" for the other items."""
    found: list[object] = []
    for one in carried(*items, end=end):
        part = part_in(one) if isinstance(one, Content) else None
        found.append(tuple(part) if part else "damage" if isinstance(one, Damage) else "whole")
    return found


BAD = [Damage(offset, "corrupt") for offset in range(0, 200, 10)]


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ([], []),
        ([content(0)], ["whole"]),
        ([BAD[0]], ["damage", (0, 1024)]),
        ([content(0), BAD[2]], ["whole", "damage", (20, 1004)]),
        ([BAD[1], content(30)], ["damage", (10, 20), "whole"]),
        ([BAD[1], BAD[3], content(70)], ["damage", (10, 20), "damage", (30, 40), "whole"]),
        ([BAD[1], BAD[1], content(30)], ["damage", "damage", (10, 20), "whole"]),
        ([BAD[1], content(10), content(30)], ["damage", "whole", (10, 20), "whole"]),
        ([content(10), BAD[1], content(10), content(30)], ["whole", "damage", "whole", (10, 20), "whole"]),
        ([content(0), content(10), BAD[2], content(30), BAD[4]], ["whole", "whole", "damage", (20, 10), "whole", "damage", (40, 984)]),
    ],
    ids=range(10),
)  # fmt: skip
def test_the_bytes_up_to_the_next_item_follow_the_damage(
    items: list[Content | Damage], found: list[object]
) -> None:
    assert parts(*items) == found


def test_damage_at_the_end_of_a_file_has_no_bytes() -> None:
    assert parts(BAD[1], end=10) == ["damage"]
    assert parts(BAD[1], end=11) == ["damage", (10, 1)]


@pytest.mark.parametrize("held", [1 << 20, 0])
@pytest.mark.parametrize("name", ["a.warc.gz", "a.arc", "a.ARC.gz", "a.arcs.gz"])
@pytest.mark.parametrize("length", [1, 100, 1024])
def test_a_part_is_a_record_with_its_bytes(
    length: int, name: str, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carry_damage, "HELD", held)
    monkeypatch.setattr(carry_damage, "_PIECE", 100)
    _, one = carried(Damage(1024 - length, "corrupt"), name=name)
    assert isinstance(one, Content)
    data = b"".join(one.pieces())
    assert (one.offset, one.length, one.size, one.records) == (1024 - length, length, len(data), 0)
    assert (one.data is None) == (held == 0)
    (record,) = read_records(lambda pos, size: data[pos : pos + size])
    assert isinstance(record, Record)
    assert (record.block, record.is_arc) == (
        OLD[1024 - length :],
        "arc" in name.lower().replace("warc", "").split("."),
    )
    if not record.is_arc:
        digest = b"sha256:" + hashlib.sha256(record.block).hexdigest().encode()
        assert (record.headers[b"warc-block-digest"], record.headers[b"warc-type"]) == (digest, b"metadata")
    assert data.endswith(record.block + (b"\n" if record.is_arc else b"\r\n\r\n"))
    assert (part_in(one), b"".join(raw(DamagedPart(1024 - length, length), read_at))) == (
        (1024 - length, length),
        record.block,
    )


@pytest.mark.parametrize("name", ["a.warc.gz", "a.arc"])
def test_a_part_is_held_in_memory_up_to_a_limit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, one = carried(BAD[1], name=name)
    assert isinstance(one, Content)
    for held in (one.size, one.size - 1):
        monkeypatch.setattr(carry_damage, "HELD", held)
        _, again = carried(BAD[1], name=name)
        assert isinstance(again, Content)
        assert (again.data is None, b"".join(again.pieces())) == (held < one.size, one.data)


@pytest.mark.parametrize("name", ["a.warc.gz", "a.arc"])
@pytest.mark.parametrize("held", [1 << 20, 0])
def test_a_part_with_other_bytes_is_not_the_part(
    name: str, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carry_damage, "HELD", held)
    monkeypatch.setattr(carry_damage, "_PIECE", 64)
    _, one, _ = carried(BAD[1], content(210), name=name)
    assert isinstance(one, Content)
    part = DamagedPart(10, 200)
    assert has_part(one, part, read_at)
    data = b"".join(one.pieces())
    at = data.index(OLD[10:210])
    for changed in (
        data[:at] + b"\xff" + data[at + 1 :],
        data[: at + 199] + b"\xff\r\n",
        data[: at + 199],
        data[:at],
    ):
        assert not has_part(one._replace(data=changed), part, read_at)
    assert not has_part(one, DamagedPart(11, 200), read_at)
    assert not has_part(one, DamagedPart(10, 201), read_at)


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [(b"5", b"5", (5, 1)), (b"5", b"4", None), (b"0", b"9", (0, 10)), (b"x", b"9", None)],
)
def test_which_records_are_damaged_parts(first: bytes, last: bytes, found: tuple[int, int] | None) -> None:
    warc = b"WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Damaged-Range: bytes=%b-%b\r\n" % (first, last)
    arc = b"filedesc://damaged/%b-%b 0.0.0.0 19700101000000 application/octet-stream 1\n" % (first, last)
    for data in (warc, arc):
        assert part_in(Content(0, 1, len(data), data)) == found
        assert part_in(Content(0, 1, len(data), b"x" + data)) is None
    assert part_in(Content(0, 1, 0, b"")) is None
