"""What is counted of the records of an archive, and what is reported of the others."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdxmill.capture import Record
from cdxmill.stages import native
from cdxmill.stages.counting import count_records as module
from cdxmill.stages.counting.count_records import Counted, count_own_records, count_records
from cdxmill.stages.counting.counters import COUNTERS, BadRecord
from cdxmill.stages.counting.own_counter import OwnCounter
from cdxmill.stages.counting.tally import DictTally, Tally, new_tally
from cdxmill.stages.pages import full_record
from cdxmill.stages.records import read_contents
from cdxmill.storage.scratch import Scratch


def record(kind: str, block: bytes, media: str = "application/http", size: int | None = None) -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://www.example.com/\r\nWARC-Concurrent-To: <urn:x:1>\r\n"
    head += f"Content-Type: {media}\r\nContent-Length: {len(block) if size is None else size}\r\n\r\n"
    return head.encode() + block + b"\r\n\r\n"


def response(server: bytes = b"") -> bytes:
    return record(
        "response", b"HTTP/1.1 200 OK\r\n%b\r\n<p>" % (b"Server: %b\r\n" % server if server else b"")
    )


def text(words: bytes) -> bytes:
    return record("conversion", words, "text/plain")


INFO = record("warcinfo", b"software: x\r\n", "application/warc-fields")
NOTES = record("metadata", b"fetchTimeMs: 9\r\n", "application/warc-fields")
REQUEST = record("request", b"GET / HTTP/1.1\r\n\r\n")
WAT = record("metadata", b'{"Envelope": {', "application/json")


def packed(records: list[bytes]) -> bytes:
    return b"".join(gzip.compress(one, 1, mtime=0) for one in records)


class Run:
    """Counts an archive, and takes the counts out of the tally each time that it could be spilled."""

    def __init__(self, data: bytes, scratch: Scratch | None = None) -> None:
        self.tally: Tally = new_tally()
        self.counts: Counter[bytes] = Counter()
        self._data, self._scratch = data, scratch
        self.begun: list[int] = []
        self.refused: dict[int, str] = {}

    def spill(self) -> None:
        for line in self.tally.take(b"\n").splitlines():
            item, _, number = line.partition(b"\t")
            self.counts[item] += int(number)

    def begin(self, number: int) -> str:
        self.begun.append(number)
        return self.refused.get(number, "")

    def read_at(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]

    def count(self, what: str) -> Counted:
        found = count_records(
            self.read_at, COUNTERS[what], self.tally, self.spill, 1 << 20, self.begin, self._scratch
        )
        assert not len(self.tally)
        return found

    def count_own(self, items: Callable[[Any], Any], scratch: Scratch) -> Counted:
        found = count_own_records(
            self.read_at, scratch, OwnCounter(items), self.tally, self.spill, 1 << 20, self.begin
        )
        assert not len(self.tally)
        return found


def reasons(found: Counted) -> list[str]:
    return [one.reason for one in found.findings.damage]


SERVERS = [INFO, response(b"a"), REQUEST, response(b"b"), NOTES, response(), response(b"a"), REQUEST, NOTES, response()]  # fmt: skip


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("way", ["compiled", "no-count", "dictionary"])
def test_every_record_is_counted_once(way: str, is_packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "no-count":
        monkeypatch.setattr(native, "count", None)
    run = Run(packed(SERVERS) if is_packed else b"".join(SERVERS))
    if way == "dictionary":
        run.tally = DictTally()
    found = run.count("servers")
    assert run.counts == {b"a": 2, b"b": 1}
    assert (found.records, found.counted) == (9, 3)
    assert found.skipped == {"responses without a Server field": 2}
    assert (found.findings.damage, found.findings.notes) == ([], [])
    assert run.begun == sorted(run.begun)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_records_of_other_types_are_records_without_anything_to_count(
    is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr(native, "Tally", None)
    others = [NOTES, NOTES, REQUEST, REQUEST, response(b"a"), response(b"a"), INFO, INFO]
    for data in (packed([*others, text(b"x y")]), b"".join([*others, text(b"x y")])):
        run = Run(data)
        found = run.count("words")
        assert run.counts == {b"x": 1, b"y": 1}
        assert (found.records, found.counted, found.skipped) == (7, 1, {})


def test_what_cannot_be_counted_is_reported_and_costs_no_other_record() -> None:
    bad = bytearray(packed([response(b"bad")]))
    bad[len(bad) // 2] ^= 0xFF
    good = packed([response(b"a")])
    run = Run(good + bytes(bad) + packed([WAT]) + good)
    found = run.count("servers")
    assert run.counts == {b"a": 2}
    assert (found.records, found.counted) == (3, 2)
    (first, _), (second, hint) = ((one.offset, one.hint) for one in found.findings.damage)
    assert (first, second) == (len(good), len(good) + len(bad))
    assert "JSON is corrupt" in reasons(found)[1]
    assert hint == BadRecord.hint


def test_a_record_that_must_not_be_begun_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "count", None)
    run = Run(packed([INFO, response(b"a"), response(b"b"), response(b"c")]))
    run.refused = {2: "it has ended this process"}
    found = run.count("servers")
    assert run.begun == [1, 2, 3]
    assert run.counts == {b"a": 1, b"c": 1}
    assert (found.records, found.counted) == (3, 2)
    assert reasons(found) == ["it has ended this process"]
    assert found.findings.damage[0].hint


def test_an_error_of_our_own_is_blamed_on_the_record_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "count", None)

    def add(one: Record, tally: Tally) -> list[str]:
        if b"bad" in one.block:
            raise ZeroDivisionError("odd")
        tally.add(b"x", 1)
        return ["seen"]

    monkeypatch.setitem(COUNTERS, "servers", COUNTERS["servers"]._replace(add=add))
    run = Run(packed([response(b"bad"), response(b"a")]))
    found = run.count("servers")
    assert run.counts == {b"x": 1}
    assert found.counted == 1
    assert "ZeroDivisionError" in reasons(found)[0]
    assert [one.reason for one in found.findings.notes] == ["seen"]


@pytest.mark.parametrize("has_scratch", [False, True])
def test_members_of_several_records_are_taken_apart_or_reported(has_scratch: bool, tmp_path: Path) -> None:
    before, after = packed([text(b"a"), INFO]), packed([text(b"d")])
    joined = gzip.compress(text(b"b") + REQUEST + text(b"c" * 9) + b"\r\n", 1, mtime=0)
    bad = bytearray(packed([text(b"bad")]))
    bad[len(bad) // 2] ^= 0xFF
    run = Run(before + joined + bytes(bad) + after, Scratch(tmp_path) if has_scratch else None)
    found = run.count("words")
    more = {b"b": 1, b"c" * 9: 1} if has_scratch else {}
    assert run.counts == {b"a": 1, b"d": 1, **more}
    assert found.counted == len(run.counts)
    assert found.records == len(run.counts) + has_scratch
    places = [len(before), len(before + joined)][has_scratch:]
    assert [one.offset for one in found.findings.damage] == places
    assert all(one.is_miscut != has_scratch for one in found.findings.damage[:1])


LEAST = 300_000
"""More than readers keep of a block."""


@pytest.mark.parametrize(
    ("size", "is_whole", "is_joined"),
    [(LEAST, True, False), (LEAST + 2, False, False), (LEAST, True, True), (9 * LEAST, False, True)],
)
def test_what_a_large_record_has_beyond_the_limit_is_reported(
    size: int, is_whole: bool, is_joined: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CONTENT", LEAST)
    monkeypatch.setattr(read_contents, "HELD", 1000)
    large = text(b"x " * (size // 2))
    data = packed([text(b"y") + large]) if is_joined else large + text(b"y")
    run = Run(data, Scratch(tmp_path))
    found = run.count("words")
    assert LEAST // 2 <= run.counts[b"x"] <= LEAST // 2 + is_joined * LEAST
    assert (run.counts[b"y"], len(run.counts), found.counted) == (1, 2, 2)
    assert [f"the record has {size} bytes; only the first" in one for one in reasons(found)] == [True] * (
        not is_whole
    )
    if not is_joined:
        servers = record("response", b"HTTP/1.1 200 OK\r\nServer: z\r\n\r\n" + b"x" * size)
        assert reasons(Run(servers).count("servers")) == []


def test_a_large_record_that_is_gone_when_it_is_read_again_is_reported() -> None:
    run = Run(text(b"x " * LEAST) + text(b"y"))
    whole, reads = run.read_at, 0

    def read_at(offset: int, size: int) -> bytes:
        nonlocal reads
        reads += offset == 0
        return whole(offset, size) if reads <= 1 else b""

    found = count_records(read_at, COUNTERS["words"], run.tally, run.spill)
    assert reads > 1
    assert len(reasons(found)) == 1
    assert found.counted < 2


def test_a_function_of_the_user_gets_every_record_but_warcinfo(tmp_path: Path) -> None:
    def items(one: Any) -> list[bytes]:
        if b"bad" in one.block:
            raise KeyError("odd")
        return [one.kind, one.kind, b""]

    records = [INFO, response(b"a"), REQUEST, text(b"bad"), NOTES, text(b"x")]
    cut = packed([text(b"cut")])[:-9]
    run = Run(packed(records) + cut)
    run.refused = {2: "it has ended this process"}
    found = run.count_own(items, Scratch(tmp_path))
    assert run.counts == {b"response": 2, b"metadata": 2, b"conversion": 2}
    assert run.begun == list(range(1, 6))
    assert (found.records, found.counted) == (5, 3)
    refused, failed, truncated = found.findings.damage
    assert (refused.reason, failed.reason, failed.hint) == ("it has ended this process", "KeyError: 'odd'", "correct the function")  # fmt: skip
    assert refused.hint
    assert "truncated" in truncated.reason
    assert truncated.offset == len(packed(records))


def test_a_record_of_which_a_function_has_seen_only_the_start_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_record, "MAX_BODY", 10)
    for size, notes in ((10, []), (11, [full_record.CUT_RECORD])):
        run = Run(packed([text(b"x" * size)]))
        found = run.count_own(lambda one: one.block, Scratch(tmp_path))
        assert run.counts == {b"x" * 10: 1}
        assert [one.reason for one in found.findings.notes] == notes


def test_what_was_counted_in_several_archives_is_added() -> None:
    both = Counted(1, 2, {"a": 1})
    both.add(Counted(5, 3, {"a": 2, "b": 4}))
    assert (both.counted, both.skipped) == (5, {"a": 3, "b": 4})
