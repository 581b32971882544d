"""Whether a cluster has an archive: by its name, by another one, in part, or not; and which lines are looked up for that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdxmill.commands.collections.identity import (
    Known,
    KnownArchive,
    LinesToKnow,
    find_known,
    joined,
    lines_in,
)
from cdxmill.errors import InputError
from cdxmill.inputs.cdx_files import take_inventory
from cdxmill.search.lookup import open_searched
from cdxmill.stages.lines.drop_lines import LineRange
from cdxmill.storage.location import locate

from ..material.clusters import write_raw_cluster


def line(name: str, number: int, **changed: str) -> bytes:
    """The line of a record of an archive."""
    fields = {"digest": f"D{number}", "length": "9", "offset": str(number), "filename": name}
    key, time = changed.pop("key", f"com,a)/{number:04d}"), changed.pop("time", "2020")
    return f"{key} {time} {json.dumps({**fields, **changed})}".encode()


def lines(name: str, *numbers: int) -> list[bytes]:
    return [line(name, number) for number in numbers]


def known(
    there: list[bytes], *lists: list[bytes], everything: LinesToKnow | None = None
) -> list[KnownArchive]:
    """What a cluster of some lines knows of the archives of others, which come in lists."""
    write_raw_cluster(Path("C"), sorted(there), 4)
    with open_searched(locate("C")) as cluster:
        return find_known(everything or LinesToKnow(lists, lambda: iter(lists)), cluster)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


MANY = range(16)
"""Of these, every second line is looked up."""


@pytest.mark.parametrize(
    ("there", "new", "found"),
    [
        (lines("a", *MANY), lines("x", 50, 51), [KnownArchive("x", Known.NOTHING)]),
        (lines("a", *MANY), lines("a", *MANY), [KnownArchive("a", Known.SOME)]),
        (lines("a", 14), lines("a", *MANY), [KnownArchive("a", Known.SOME)]),
        (lines("a", 15), lines("a", *MANY), [KnownArchive("a", Known.NOTHING)]),
        (lines("a", *MANY), lines("x", *MANY), [KnownArchive("x", Known.OTHER_NAME, "a")]),
        (lines("a", *MANY), lines("x", 3), [KnownArchive("x", Known.OTHER_NAME, "a")]),
        (lines("a", *MANY[:-1]), lines("x", *MANY), [KnownArchive("x", Known.SOME_OTHER_NAME, "a")]),
        (lines("a", *MANY[1:]), lines("x", *MANY), [KnownArchive("x", Known.NOTHING)]),
        (lines("b", *MANY) + lines("a", *MANY[:-1]), lines("x", *MANY), [KnownArchive("x", Known.OTHER_NAME, "b")]),
        (lines("b", *MANY) + lines("a", *MANY), lines("x", *MANY), [KnownArchive("x", Known.OTHER_NAME, "a")]),
        (lines("b", *MANY[:-1]) + lines("a", *MANY[:-1]), lines("x", *MANY), [KnownArchive("x", Known.SOME_OTHER_NAME, "a")]),
        (lines("a", *MANY) + lines("x", 0), lines("x", *MANY), [KnownArchive("x", Known.SOME)]),
        (lines("a", *MANY), lines("x", 1, 2) + lines("y", 50) + lines("a", 3),
         [KnownArchive("x", Known.OTHER_NAME, "a"), KnownArchive("y", Known.NOTHING), KnownArchive("a", Known.SOME)]),
        ([b"com,a)/0001 2020 {}", *lines("a", 1)], [b"com,a)/ {", b"com,a)/ 2020 {}", *lines("x", 1)],
         [KnownArchive("x", Known.OTHER_NAME, "a")]),
        (lines("a", 1), [], []),
    ],
)  # fmt: skip
def test_what_a_cluster_has_of_an_archive(
    there: list[bytes], new: list[bytes], found: list[KnownArchive]
) -> None:
    assert known(there, new) == found


@pytest.mark.parametrize(
    ("changed", "is_known"),
    [
        ({}, True),
        ({"key": "com,a)/0001x"}, False),
        ({"time": "2021"}, False),
        ({"offset": "2"}, False),
        ({"length": "8"}, False),
        ({"digest": "D"}, False),
        ({"url": "http://other.com/"}, True),
    ],
)
def test_a_record_is_known_by_its_key_time_place_and_digest(changed: dict[str, str], is_known: bool) -> None:
    (found,) = known([line("a", 1), line("a", 2)], [line("x", 1, **changed)])
    assert found.known is (Known.OTHER_NAME if is_known else Known.NOTHING)


def test_a_name_that_is_no_text_is_compared_by_its_bytes() -> None:
    there, new = (line(name, 1).replace(b"NAME", b"\xff.gz") for name in ("NAME", "xNAME"))
    assert known([there], [new]) == [KnownArchive("x\udcff.gz", Known.OTHER_NAME, "\udcff.gz")]


def test_lines_from_all_parts_of_a_file_are_looked_up() -> None:
    """64 of the first list, and 4 of each later one; and of many archives, 64 to 127."""
    lists = [
        [line(f"a{number:03d}", number) for number in range(128)],
        [line(f"b{number:03d}", number) for number in range(127)],
        [line(f"c{number:03d}", number) for number in range(8)],
        [line(f"d{number:03d}", number) for number in range(3)],
    ]
    first = [f"a{number:03d}" for number in range(0, 128, 2)]
    later = [f"b{number:03d}" for number in range(0, 127, 31)]
    rest = [f"c{number:03d}" for number in range(0, 8, 2)] + ["d000", "d001", "d002"]
    assert [one.name for one in known([], *lists)] == [*first, *later, *rest]
    Path("C").rename("D")
    names = [line(f"a{number:03d}", number) for number in range(127)]
    assert len(known([], names)) == 127
    Path("C").rename("E")
    assert [one.name for one in known([], *[names[start : start + 4] for start in range(0, 124, 4)], lists[3], lists[2][:1])] == [
        *(f"a{number:03d}" for number in range(0, 124, 2)), "d000", "d002"
    ]  # fmt: skip


def broken(found: list[bytes]) -> Iterator[list[bytes]]:
    yield found
    raise InputError("x.cdxj", "is truncated")


def test_a_file_that_ends_too_early_is_no_copy() -> None:
    """Nobody knows what the rest is. That is reported when it is sorted."""
    some = lines("x", *MANY)
    new = LinesToKnow(broken(some), lambda: broken(some))
    assert known(lines("a", *MANY), everything=new) == [KnownArchive("x", Known.SOME_OTHER_NAME, "a")]


A, B = (KnownArchive("a", one, other) for one, other in ((Known.NOTHING, ""), (Known.OTHER_NAME, "o")))
SOME, PART = KnownArchive("a", Known.SOME), KnownArchive("a", Known.SOME_OTHER_NAME, "p")


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([[A]], [A]),
        ([[A], [A]], [A]),
        ([[B], [B]], [B]),
        ([[A], [B]], [KnownArchive("a", Known.SOME_OTHER_NAME, "o")]),
        ([[B], [PART]], [PART]),
        ([[A], [SOME], [B]], [SOME]),
        ([[A, KnownArchive("b", Known.NOTHING)], [A]], [A, KnownArchive("b", Known.NOTHING)]),
        ([], []),
    ],
)
def test_files_that_are_added_together_are_one(
    parts: list[list[KnownArchive]], whole: list[KnownArchive]
) -> None:
    assert joined(parts) == whole


def test_the_lines_of_a_file_come_without_its_header_and_what_is_excluded() -> None:
    Path("a.cdxj").write_bytes(b"\n".join([b" CDX N b a", *lines("a", 1, 2, 3), b""]))
    (source,) = take_inventory(["a.cdxj"], formats=True).sources
    for excluded, left in (([], [1, 2, 3]), ([LineRange(b"com,a)/0002", b"com,a)/0003")], [1, 3])):
        found = lines_in(source, excluded)
        assert list(found.some) == [lines("a", *left)] == list(found.everything()) == list(found.everything())
