"""How `recompress --estimate` sums what it found, and what it says of it."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pytest
import zstandard

from cdxmill.commands.per_archive import estimate as estimating
from cdxmill.commands.per_archive.estimate import (
    EstimatedKind,
    EstimateTask,
    KindSums,
    NewSizes,
    TriedArchive,
    _choose,
    _combined,
    _lines,
    _pays,
    _ratios,
    _saved,
    _scaled,
    estimate,
    try_one,
)
from cdxmill.commands.per_archive.recompress_one import RecompressOptions, packer_of
from cdxmill.errors import UsageError
from cdxmill.inputs.named import named_input
from cdxmill.running.failures import Failures
from cdxmill.running.processes import processes_by_default
from cdxmill.storage.location import Location

TRIED = KindSums(10, 1000, 4000, tried=500, tried_plain=2000, without=250, packed=100, seconds=2.0)
SEEN = KindSums(records=5, old=200, plain=200)


def tried(size: int, head: int, seconds: float, **kinds: KindSums) -> TriedArchive:
    return TriedArchive(size, kinds, head, seconds, [])


def test_sums_are_added_field_by_field() -> None:
    one, two = KindSums(1, 2, 3, 4, 5, 6, 7, 0.5), KindSums(10, 20, 30, 40, 50, 60, 70, 1.0)
    assert one.plus(two) == KindSums(11, 22, 33, 44, 55, 66, 77, 1.5)
    assert KindSums().plus(one) == one


def test_what_is_expected_of_all_is_what_was_found_in_some() -> None:
    """Half of the bytes were read. Only the first archive is large enough for a dictionary."""
    results = [tried(1200, 50, 1.0, x=TRIED, y=SEEN), tried(40, 50, 0.5, x=KindSums(2, 40, 100))]
    found = _combined(results, [1200, 40, 1240], 4)
    assert found == NewSizes(
        archives=3,
        read=2,
        records=2 * 17,
        before=2480,
        after=2 * (1000 // 5 + 40 // 2 + 200 // 5 + 50),
        dictionaries=2,
        seconds=2 * (1.5 + 2.0 * 4300 / 2000),
        processes=4,
        kinds=[EstimatedKind("x", 24, 2080, 440), EstimatedKind("y", 10, 400, 80)],
    )


def test_nothing_is_expected_of_nothing() -> None:
    assert _combined([], [], 1) == NewSizes(0, 0, 0, 0, 0, 0, 0, 1, [])
    assert _combined([tried(0, 9, 3.0)], [7], 1) == NewSizes(1, 1, 0, 7, 0, 0, 0, 1, [])
    untried = _combined([tried(200, 0, 1.0, y=SEEN)], [200], 1)
    assert (untried.after, untried.seconds) == (200, 1.0), "nothing was packed, so nothing is saved"


def test_a_kind_that_was_not_tried_is_as_all_others() -> None:
    other = KindSums(1, 100, 100, tried=100, tried_plain=100, without=100, packed=50)
    assert _ratios({"x": TRIED, "y": SEEN, "z": other}) == {
        "x": (0.5, 0.2),
        "y": (350 / 600, 150 / 600),
        "z": (1.0, 0.5),
    }
    assert _ratios({"y": SEEN}) == {"y": (1.0, 1.0)}


@pytest.mark.parametrize(("head", "pays"), [(0, False), (1, True), (299, True), (301, False)])
def test_a_dictionary_pays_if_it_saves_more_than_it_takes(head: int, pays: bool) -> None:
    assert _pays(tried(1, head, 0, x=TRIED), _ratios({"x": TRIED})) is pays
    assert not _pays(tried(1, 1, 0, x=TRIED), {"x": (0.2, 0.5)})


def kinds_of(*old: int) -> dict[str, KindSums]:
    return {f"k{number}": KindSums(1, size, size) for number, size in enumerate(old)}


@pytest.mark.parametrize(
    ("kinds", "lines"),
    [
        ({}, []),
        (kinds_of(1, 3, 2), [("k1", 3), ("k2", 2), ("k0", 1)]),
        (kinds_of(*range(50, 38, -1)), [(f"k{number}", 50 - number) for number in range(12)]),
        (kinds_of(*range(50, 37, -1)), [*((f"k{number}", 50 - number) for number in range(12)), ("other kinds", 38)]),
        (
            {"other kinds": KindSums(1, 999, 999), **kinds_of(*range(50, 37, -1))},
            [*((f"k{number}", 50 - number) for number in range(12)), ("other kinds", 38 + 999)],
        ),
        ({"other kinds": KindSums(1, 9, 9), **kinds_of(1)}, [("k0", 1), ("other kinds", 9)]),
        ({"other kinds": KindSums(1, 9, 9)}, [("other kinds", 9)]),
        (
            {"other kinds": KindSums(1, 999, 999), **kinds_of(*range(50, 39, -1))},
            [*((f"k{number}", 50 - number) for number in range(11)), ("other kinds", 999)],
        ),
        (
            {"other kinds": KindSums(1, 999, 999), **kinds_of(*range(50, 38, -1))},
            [*((f"k{number}", 50 - number) for number in range(12)), ("other kinds", 999)],
        ),
    ],
)  # fmt: skip
def test_twelve_kinds_have_lines_and_all_others_one(
    kinds: dict[str, KindSums], lines: list[tuple[str, int]]
) -> None:
    found = list(_lines(kinds, {kind: one.old / 2 for kind, one in kinds.items()}, 4.0))
    assert [(one.kind, one.before) for one in found] == [(kind, 4 * old) for kind, old in lines]
    assert [one.after for one in found] == [2 * old for _, old in lines]
    assert sum(one.records for one in found) == 4 * len(kinds)


@pytest.mark.parametrize(
    ("old", "size", "scaled"), [(100, 50, 50), (100, 100, 100), (100, 300, 300), (0, 7, 0)]
)
def test_bytes_of_records_add_up_to_those_of_the_archive(old: int, size: int, scaled: int) -> None:
    kinds = _scaled({"x": KindSums(1, old, 9, tried=old // 2)}, size)
    assert kinds == {"x": KindSums(1, scaled, 9, tried=scaled // 2)}


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (0, 0, "-"),
        (0, 5, "-"),
        (100, 100, "0.0 % smaller"),
        (100, 50, "50.0 % smaller"),
        (100, 150, "50.0 % larger"),
        (1000, 1001, "0.1 % larger"),
        (3, 0, "100.0 % smaller"),
    ],
)
def test_the_saving_is_a_share_of_what_was_there(before: int, after: int, text: str) -> None:
    assert _saved(before, after) == text


WHOLE = NewSizes(
    1, 1, 1234, 2048, 1024, 0, 1234.4, 1, [EstimatedKind("response text/html", 1234, 2048, 1024)]
)
TABLE = """\
kind of content     records   before    after
response text/html    1,234  2.0 KiB  1.0 KiB  50.0 % smaller
"""


@pytest.mark.parametrize(
    ("found", "last"),
    [
        (WHOLE, "1 archive: 2.0 KiB before, about 1.0 KiB after (50.0 % smaller); about 1,234 s of CPU time"),
        (
            WHOLE._replace(archives=3, read=3, dictionaries=2, processes=2),
            "3 archives, 2 with a dictionary: 2.0 KiB before, about 1.0 KiB after (50.0 % smaller);"
            " about 1,234 s of CPU time, 617 s with 2 processes",
        ),
        (
            WHOLE._replace(archives=3, read=1),
            "3 archives: 2.0 KiB before, about 1.0 KiB after (50.0 % smaller); about 1,234 s of CPU time\n"
            "estimated from 1 archive drawn at random",
        ),
    ],
)
def test_the_report_is_a_table_and_a_line(found: NewSizes, last: str) -> None:
    assert str(found) == TABLE + last


@pytest.mark.parametrize(("most", "number"), [(1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (40, 4), (99, 4)])
def test_archives_are_drawn_until_enough_bytes_are_read(
    most: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimating, "READ", most)
    order = list(range(4))
    Random(0).shuffle(order)
    assert _choose([10] * 4) == sorted(order[:number])
    assert _choose([]) == []


def member(number: int, kind: str = "resource", size: int = 400) -> bytes:
    block = b"words of a page, " * (size // 17) + bytes(str(number), "ascii")
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.b/{number}\r\nContent-Type: text/plain\r\n"
    return gzip.compress(
        b"%bContent-Length: %d\r\n\r\n%b\r\n\r\n" % (head.encode(), len(block), block), mtime=0
    )


MEMBERS = [member(1), member(2), member(3, "metadata")]


def task(path: Path, options: RecompressOptions, share: float = 1.0) -> EstimateTask:
    return EstimateTask(named_input(str(path), path.name), share, "0", path.parent / "scratch", options)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_records_are_packed_as_recompress_would_do_it(share: float, tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(MEMBERS))
    found = try_one(task(path, RecompressOptions(), share))
    assert (found.size, found.head, found.failures) == (path.stat().st_size, 0, [])
    assert {kind: (one.records, one.old) for kind, one in found.kinds.items()} == {
        "resource text/plain": (2, len(MEMBERS[0]) + len(MEMBERS[1])),
        "metadata text/plain": (1, len(MEMBERS[2])),
    }
    for one in found.kinds.values():
        assert one.plain > one.old
        assert (one.tried, one.tried_plain) == ((one.old, one.plain) if share else (0, 0))
        assert one.packed == one.without
        assert bool(one.packed) == bool(share)


@pytest.mark.parametrize(
    ("to", "own", "keeps", "has_head"),
    [
        ("zst", False, True, True),  # the one in the archive
        ("zst", False, False, False),
        ("gz", False, True, False),
        ("zst", True, False, True),
    ],
)
def test_a_dictionary_is_tried_if_recompress_would_use_it(
    to: str, own: bool, keeps: bool, has_head: bool, tmp_path: Path
) -> None:
    plain = [gzip.decompress(one) for one in [*MEMBERS, *(member(number, size=900) for number in range(40))]]
    trained = zstandard.train_dictionary(512, [*plain], k=64, d=8, dict_id=40000)
    data = trained.as_bytes()
    packer = zstandard.ZstdCompressor(dict_data=trained, write_checksum=True)
    head = b"\x5d\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data
    path = tmp_path / "a.warc.zst"
    path.write_bytes(head + b"".join(map(packer.compress, plain)))
    options = RecompressOptions(to=to, dictionary=data if own else b"", keeps_dictionary=keeps)
    found = try_one(task(path, options))
    assert found.head == (len(packer_of(to, 6, data).head) if has_head else 0)
    assert found.failures == []
    sums = found.kinds["resource text/plain"]
    assert (sums.packed < sums.without) == has_head
    assert sum(one.old for one in found.kinds.values()) == pytest.approx(path.stat().st_size, abs=2)


def test_damage_is_reported_and_the_rest_is_tried(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    damaged = bytearray(MEMBERS[1])
    damaged[-6] ^= 1
    path.write_bytes(MEMBERS[0] + bytes(damaged) + MEMBERS[2])
    found = try_one(task(path, RecompressOptions()))
    assert sum(one.records for one in found.kinds.values()) == 2
    assert [(one.path, one.offset) for one in found.failures] == [(str(path), len(MEMBERS[0]))]
    assert sum(one.old for one in found.kinds.values()) == pytest.approx(path.stat().st_size, abs=1)
    absent = try_one(task(tmp_path / "absent.warc.gz", RecompressOptions()))
    assert (absent[:4], len(absent.failures)) == ((0, {}, 0, 0), 1)


def test_an_estimate_of_small_and_empty_archives(tmp_path: Path) -> None:
    for name, data in (("a", b"".join(MEMBERS)), ("b", b"")):
        (tmp_path / f"{name}.warc.gz").write_bytes(data)
    archives = [named_input(str(tmp_path / f"{name}.warc.gz"), name) for name in "ab"]
    options, failures = RecompressOptions(quiet=True, processes=1), Failures(printed=False)
    found = estimate(archives, options, failures)
    assert (found.archives, found.read, found.records, found.processes) == (2, 2, 3, 1)
    assert [failure.path for failure in failures.items] == [archives[1].label]
    with pytest.raises(UsageError):
        estimate([], options, failures)
    empty = estimate(archives[1:], RecompressOptions(quiet=True, processes=0), failures)
    assert (empty.before, empty.after, empty.processes) == (0, 0, processes_by_default())


@pytest.mark.parametrize(("most", "share"), [(1 << 30, 1.0), (100, 0.5), (400, 1.0), (50, 0.25)])
def test_as_many_records_are_packed_as_there_is_time_for(
    most: int, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "a.warc.gz", list[float]()
    path.write_bytes(bytes(200))

    def noting(one: EstimateTask) -> TriedArchive:
        seen.append(one.share)
        return TriedArchive(200, {}, 0, 0, [])

    monkeypatch.setattr(estimating, "PACKED", most)
    monkeypatch.setattr(estimating, "try_one", noting)
    estimate([named_input(str(path), "a")], RecompressOptions(quiet=True, processes=1), Failures())
    assert seen == [share]


def test_a_library_that_an_archive_needs_is_missed_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def require(place: Location) -> None:
        raise UsageError(f"{place}: needs a library")

    monkeypatch.setattr(Location, "require", require)
    monkeypatch.setattr(Location, "size", lambda place: pytest.fail(f"{place} is asked for"))
    with pytest.raises(UsageError, match="b: needs a library"):
        estimate([named_input("b", "b")], RecompressOptions(quiet=True), Failures())


def test_the_time_to_read_is_told_from_the_time_to_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes on by a second each time that it is asked."""

    class Ticking:
        now = 100.0

        def process_time(self) -> float:
            self.now += 1
            return self.now

    monkeypatch.setattr(estimating, "time", Ticking())
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(MEMBERS))
    found = try_one(task(path, RecompressOptions()))
    assert {kind: one.seconds for kind, one in found.kinds.items()} == {
        "resource text/plain": 2.0,
        "metadata text/plain": 1.0,
    }
    assert found.seconds == 4.0
