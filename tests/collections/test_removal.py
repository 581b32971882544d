"""What a removal means: ranges, keys and conditions, and the part of them that concerns a shard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdxmill.commands.collections.removal import (
    Removal,
    Restriction,
    checked_times,
    ranges_of_keys,
    sort_keys,
)
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.lookup_query import TimeRange
from cdxmill.stages.lines.drop_lines import LineRange
from cdxmill.storage.scratch import Scratch


def line(time: str, name: str = "a.gz") -> bytes:
    return f"com,a)/ {time} {json.dumps({'filename': name})}".encode()


TIMES = [
    "2013",
    "20140101000000",
    "201401010000005",
    "20141231235959",
    "2014123123595999",
    "20150101000000",
    "-",
]


@pytest.mark.parametrize(
    ("times", "meant"),
    [
        (TimeRange(b"2014", b""), TIMES[1:6]),
        (TimeRange(b"20140101000000", b""), TIMES[1:6]),
        (TimeRange(b"20140101000001", b""), TIMES[3:6]),
        (TimeRange(b"", b"2014"), [*TIMES[:5], "-"]),
        (TimeRange(b"", b"20141231235959"), [*TIMES[:5], "-"]),
        (TimeRange(b"", b"20141231235958"), [*TIMES[:3], "-"]),
        (TimeRange(b"2014", b"2014"), TIMES[1:5]),
        (TimeRange(b"20140101000000", b"20140101000000"), TIMES[1:3]),
    ],
)
def test_a_time_range_has_its_first_and_its_last_time(times: TimeRange, meant: list[str]) -> None:
    """A last one that is short has all times that begin with it."""
    test = Restriction(None, times).test()
    assert test is not None
    assert [time for time in TIMES if test(line(time))] == meant


@pytest.mark.parametrize(
    ("archives", "times", "meant"),
    [
        (frozenset(["a.gz"]), TimeRange(), [("2013", "a.gz"), ("2014", "a.gz")]),
        (frozenset(["a.gz", "b.gz"]), TimeRange(b"2014", b""), [("2014", "a.gz"), ("2014", "b.gz")]),
        (frozenset(["b.gz"]), TimeRange(b"", b"2013"), [("2013", "b.gz")]),
        (frozenset(["c.gz"]), TimeRange(), []),
        (frozenset[str](), TimeRange(), []),
        (None, TimeRange(b"", b"2013"), [("2013", "a.gz"), ("2013", "b.gz")]),
    ],
)
def test_lines_are_meant_if_their_archive_and_their_time_are(
    archives: frozenset[str] | None, times: TimeRange, meant: list[tuple[str, str]]
) -> None:
    test = Restriction(archives, times).test()
    assert test is not None
    lines = [(time, name) for time in ("2013", "2014") for name in ("a.gz", "b.gz")]
    assert [one for one in lines if test(line(*one))] == meant


def test_without_a_condition_all_lines_are_meant() -> None:
    assert Restriction().test() is None


RANGES = [LineRange(b"b ", b"b!"), LineRange(b"d", b"f"), LineRange(b"x", b"y")]


@pytest.mark.parametrize(
    ("low", "high", "left"),
    [
        (b"", None, RANGES),
        (b"", b"b ", []),
        (b"", b"b 1", RANGES[:1]),
        (b"b!", b"d", []),
        (b"b 9", b"d\0", RANGES[:2]),
        (b"f", b"x", []),
        (b"e", b"f", RANGES[1:2]),
        (b"e", None, RANGES[1:]),
        (b"y", None, []),
        (b"xz", None, RANGES[2:]),
    ],
)
def test_a_shard_gets_the_ranges_that_have_lines_of_it(
    low: bytes, high: bytes | None, left: list[LineRange]
) -> None:
    condition = Restriction(frozenset(["a.gz"]))
    part = Removal(RANGES, condition).part(low, high)
    assert part == ((left, [], condition) if left else None)


KEYS = ["com,a)/", "com,a)/ 2020", "com,b)/x", "org,c)/"]


@pytest.mark.parametrize(
    ("low", "high", "left"),
    [
        (b"", None, KEYS),
        (b"", b"com,a)/", []),
        (b"", b"com,b)", KEYS[:2]),
        (b"com,a)/ 2020", b"com,b)", KEYS[:2]),
        (b"com,a)/ 2020 {", b"com,a)/ 2020 }", KEYS[:2]),
        (b"com,a)/x", b"com,b)/x", []),
        (b"com,b)/x", b"com,b)/x!", KEYS[2:3]),
        (b"com,b)/x 2021", None, KEYS[2:]),
        (b"com,b)/y", None, KEYS[3:]),
        (b"org,c)/ 2020", None, KEYS[3:]),
        (b"org,d)/", None, []),
    ],
)
def test_a_shard_gets_the_keys_that_may_have_lines_of_it(
    low: bytes, high: bytes | None, left: list[str], tmp_path: Path
) -> None:
    """A shard may begin within the lines of a key."""
    (tmp_path / "keys").write_text("\n".join(reversed(KEYS)))
    scratch = Scratch(tmp_path / "work")
    part = Removal([], keys=sort_keys(str(tmp_path / "keys"), scratch), scratch=scratch).part(low, high)
    if not left:
        assert part is None
        return
    assert part is not None and (part.ranges, part.condition) == ([], Restriction())
    assert list(part.drop(scratch).split([f"{key} {{}}".encode() for key in KEYS]).gone) == [
        f"{key} {{}}".encode() for key in KEYS if any(one == key or key.startswith(f"{one} ") for one in left)
    ]


def test_ranges_and_keys_are_removed_together_and_with_a_condition(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("com,b)/\n")
    scratch = Scratch(tmp_path / "work")
    ranges = [LineRange(b"com,a)/", b"com,b)/ 2"), LineRange(b"com,c)/", b"com,d)/")]
    keys = sort_keys(str(tmp_path / "keys"), scratch)
    lines = [
        f'com,{host})/ {time} {{"filename": "a"}}'.encode() for host in "abcd" for time in ("1999", "2020")
    ]
    for condition, gone in (
        (Restriction(), lines[:6]),
        (Restriction(times=TimeRange(b"2000", b"")), lines[1:6:2]),
    ):
        part = Removal(ranges, condition, keys, scratch).part(b"", None)
        assert part is not None
        assert part.drop(scratch).split(lines).gone == gone


def test_the_range_of_a_key_ends_behind_its_last_line() -> None:
    assert list(ranges_of_keys([b"a)/ ", b"b)/ 2020 "])) == [
        LineRange(b"a)/ ", b"a)/!"),
        LineRange(b"b)/ 2020 ", b"b)/ 2020!"),
    ]


def test_times_that_are_none_are_refused() -> None:
    assert checked_times(None, None) == TimeRange()
    assert checked_times("2014", "2015") == TimeRange(b"20140101000000", b"20151231235959")
    with pytest.raises(UsageError, match="'x'"):
        checked_times("x", None)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("com,a)/\n", 0),
        ("com,a)/ 2020\n", 0),
        ("\n \n com,a)/ \n\ncom,a)/ 2020 ", 0),
        ("", 0),
        ("com,a\n", 1),
        ("com,a)/\nhttp://a.com/\n", 2),
        ("\n\ncom,a)/ 2020 {}\n", 3),
        ("com,a)/ 2020 x)\n", 1),
        ("a b)/\n", 0),
    ],
)
def test_a_file_of_keys_has_keys_alone(text: str, number: int, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(text)
    scratch = Scratch(tmp_path / "work")
    if not number:
        runs = sort_keys(str(tmp_path / "keys"), scratch)
        assert sum(run.lines for run in runs) == len(
            {key.strip() for key in text.splitlines() if key.strip()}
        )
        return
    with pytest.raises(InputError) as told:
        sort_keys(str(tmp_path / "keys"), scratch)
    wrong = text.splitlines()[number - 1].encode()
    assert str(told.value) == (
        f"{tmp_path}/keys: line {number} is not a key such as com,example)/page, {wrong!r};"
        " print keys with cdxmill lookup --fl urlkey"
    )
