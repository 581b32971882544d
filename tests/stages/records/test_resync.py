"""The search after damage finds the next record, and its time is bounded, whatever seems to start a record."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from itertools import pairwise

import pytest
import zstandard

from cdxmill.capture import Damage, Record
from cdxmill.stages.records import resync, split_record, units
from cdxmill.stages.records.read_records import read_records
from cdxmill.stages.records.resync import RECORD_START, Probe, Resync, probe_content
from cdxmill.stages.window import MemberError, Window

from .test_changing_files import record

SIZE = 100_000


def search_of(data: bytes, probe: Callable[[int], Probe]) -> Resync:
    return Resync(Window(lambda pos, size: data[pos : pos + size]), re.compile(b"x"), probe)


@pytest.mark.parametrize("cost", [1, 256, 1000, 30_000])
@pytest.mark.parametrize(("free", "share"), [(0, 0), (5000, 0), (0, 3), (9000, 2)])
def test_the_sum_of_all_failed_probes_is_bounded(
    cost: int, free: int, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resync, "_FREE", free)
    monkeypatch.setattr(resync, "_SHARE", share)
    probed: list[int] = []

    def probe(pos: int) -> Probe:
        probed.append(pos)
        return Probe(False, cost)

    assert search_of(b"x" * SIZE, probe).first(0) == SIZE
    real = max(cost, 256)
    spent, most = len(probed) * real, free + max(share, 1) * SIZE
    assert most - (2 + share) * real <= spent <= most + (2 + share) * real
    assert {after - before for before, after in pairwise(probed)} <= {1, real}


def test_as_long_as_it_costs_little_all_matches_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resync, "_FREE", 300 * 256)
    monkeypatch.setattr(resync, "_SHARE", 0)
    for start, found in ((300, 300), (301, 556), (556, 556), (557, 812)):
        search = search_of(b"x" * 900, lambda pos, start=start: Probe(pos >= start, 1))  # type: ignore[misc]
        assert search.first(0) == found


def test_the_first_match_may_be_at_the_start() -> None:
    search = search_of(b"x.x.x", lambda pos: Probe(pos > 0, 1))
    assert [search.first(pos) for pos in range(6)] == [2, 2, 2, 4, 4, 5]
    assert [search.after(pos, 99) for pos in range(5)] == [2, 2, 4, 4, 5]


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({4: 9}, 4),
        ({4: 6, 6: 9}, 4),
        ({4: 6, 6: 8}, 9),
        ({4: 10}, 9),
        ({4: 6, 6: 10}, 9),
        ({2: 3, 4: 9}, 4),
        ({8: 9}, 8),
        ({0: 9}, 9),
        ({}, 9),
    ],
)
def test_members_within_damage_lead_to_its_end(members: dict[int, int], found: int) -> None:
    """The file is xxxxxxxxxx, and each x starts something."""

    def end_of(pos: int) -> int:
        if pos not in members:
            raise MemberError("corrupt", pos)
        return members[pos]

    assert search_of(b"x" * 10, lambda _: RECORD_START).inside(0, 9, end_of) == found


def test_a_probe_costs_what_it_read() -> None:
    for content, is_start, cost in ((b"WARC/1.0", True, 0), (b"text\n" * 9, False, 1 << 12)):
        assert probe_content(lambda size, content=content: content[:size]) == (is_start, cost)  # type: ignore[misc]


PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 255, 256, 257, 1000])
@pytest.mark.parametrize("byte", [b"X", b"\xff"])
@pytest.mark.parametrize("form", PACK)
def test_bytes_between_records_cost_no_record(form: str, byte: bytes, size: int) -> None:
    one = PACK[form](record(1, 50))
    garbage = byte * size
    for parts in (
        [one, garbage, one],
        [garbage, one, one],
        [one, one, garbage],
        [one, garbage, one, garbage, one],
    ):
        data = b"".join(parts)
        found = list(read_records(lambda pos, size, data=data: data[pos : pos + size]))  # type: ignore[misc]
        ends = [sum(map(len, parts[:number])) for number in range(len(parts))]
        wanted = [end for end, part in zip(ends, parts, strict=True) if part == one]
        assert [item.offset for item in found if isinstance(item, Record)] == wanted
        damage = [item.offset for item in found if isinstance(item, Damage)]
        assert damage == [end for end, part in zip(ends, parts, strict=True) if part == garbage]


@pytest.mark.parametrize("form", ["gz", "zst"])
def test_wrong_lengths_that_reach_over_other_records_take_a_bounded_time(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would have its record end in any of the units after it."""
    number, read = 60, 0
    bad = record(1, 50).replace(b"Content-Length: 50", b"Content-Length: 5000000")
    unit = PACK[form](bad)
    data = unit * number

    def counted(units: units.Units, pos: int) -> tuple[Record | None, int]:
        nonlocal read
        found, reached = take_across(units, pos)
        read += reached - pos
        return found, reached

    take_across = split_record.take_across
    monkeypatch.setattr(units, "take_across", counted)
    monkeypatch.setattr(units, "_FREE", 5 * len(data))
    items = list(read_records(lambda pos, size: data[pos : pos + size]))
    places = [item.offset for item in items if isinstance(item, Damage)]
    assert places == list(range(0, len(data), len(unit)))
    assert len(items) == len(places)
    assert 5 * len(data) < read < 10 * len(data)
