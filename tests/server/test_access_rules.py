"""Rules and embargoes, each by itself: which one decides, from when until when, and what is no rule."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.server.access import Access, AccessRule, Times, parse_embargo, read_rules
from cdxmill.storage.location import locate

NOW = datetime(2024, 3, 31, 12, 34, 56, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("before:2014", Times("before", b"2014")),
        ("after:20240101000000", Times("after", b"20240101000000")),
        ("newer:1y", Times("newer", months=12)),
        ("older:2m", Times("older", months=2)),
        ("newer:3w", Times("newer", days=21)),
        ("newer:4d", Times("newer", days=4)),
        ("newer:1y6m", Times("newer", months=18)),
        ("older:2y3m4w5d", Times("older", months=27, days=33)),
        ("newer:0d", Times("newer")),
        ("newer:9999y9999m9999w99999d", Times("newer", months=12 * 9999 + 9999, days=7 * 9999 + 99999)),
        ("before:201", None),
        ("before:202401010000000", None),
        ("newer:", None),
        ("newer:100000d", None),
        ("newer:10000y", None),
        ("newer:1d1y", None),
        ("newer:2014", None),
        ("before:1y", None),
        ("Newer:1y", None),
        ("newer:٣d", None),
        ("before:٢٠١٤", None),
        ("", None),
    ],
)
def test_an_embargo_is_a_moment_or_a_period(text: str, expected: Times | None) -> None:
    if expected is not None:
        assert parse_embargo(text) == expected
        return
    with pytest.raises(UsageError, match="invalid embargo"):
        parse_embargo(text)


@pytest.mark.parametrize(
    ("months", "days", "limit"),
    [
        (0, 0, b"20240331123456"),
        (1, 0, b"20240229123456"),
        (2, 0, b"20240131123456"),
        (3, 0, b"20231231123456"),
        (4, 0, b"20231130123456"),
        (13, 0, b"20230228123456"),
        (0, 31, b"20240229123456"),
        (1, 1, b"20240228123456"),
        (12 * 2023, 0, b"00010331123456"),
        (12 * 2023 + 2, 0, b"00010131123456"),
        (12 * 2023 + 3, 0, b"00010101000000"),
        (12 * 2023 + 2, 30, b"00010101123456"),
        (12 * 2023 + 2, 31, b"00010101000000"),
        (0, 10**12, b"00010101000000"),
    ],
)
@pytest.mark.parametrize("kind", ["newer", "older"])
def test_a_period_ends_now_and_begins_at_a_day_of_the_calendar(
    kind: str, months: int, days: int, limit: bytes
) -> None:
    times = Times(kind, months=months, days=days)
    assert not times.contain(limit, NOW)
    assert times.contain(limit + b"0", NOW) == (kind == "newer")
    assert times.contain(limit[:-1], NOW) == (kind == "older")
    assert times.is_relative


@pytest.mark.parametrize(
    ("kind", "timestamp", "is_in"),
    [
        ("before", b"2019", True),
        ("before", b"2020", False),
        ("before", b"20200101000000", False),
        ("after", b"2020", False),
        ("after", b"20200101000000", True),
        ("after", b"2019", False),
    ],
)
def test_times_before_and_after_a_moment(kind: str, timestamp: bytes, is_in: bool) -> None:
    times = Times(kind, b"2020")
    assert times.contain(timestamp, NOW) == is_in
    assert not times.is_relative


BEFORE, NEWER = Times("before", b"2020"), Times("newer", months=12)


@pytest.mark.parametrize(
    ("access", "times", "embargo", "shown"),
    [
        ("allow", None, None, (True, True)),
        ("allow", None, BEFORE, (False, True)),
        ("allow", BEFORE, None, (True, True)),
        ("allow", BEFORE, Times("after", b"2020"), (True, False)),
        ("allow_ignore_embargo", None, None, (True, True)),
        ("allow_ignore_embargo", None, BEFORE, (True, True)),
        ("allow_ignore_embargo", BEFORE, Times("before", b"2030"), (True, False)),
        ("exclude", None, None, (False, False)),
        ("exclude", BEFORE, None, (False, True)),
        ("exclude", BEFORE, Times("after", b"2020"), (False, False)),
        ("block", None, None, (False, False)),
        ("block", BEFORE, None, (False, True)),
        (None, None, None, (True, True)),
        (None, None, BEFORE, (False, True)),
    ],
)
def test_what_a_rule_and_an_embargo_show(
    access: str | None, times: Times | None, embargo: Times | None, shown: tuple[bool, bool]
) -> None:
    rules = {} if access is None else {b"org,a)/": AccessRule(access, times)}
    visible = Access(rules, embargo, lambda: NOW).visible()
    assert (visible(b"org,a)/x 2019 {}"), visible(b"org,a)/x 20210101 {}")) == shown


RULES = {
    b"org,": AccessRule("block", None),
    b"org,a)/": AccessRule("exclude", None),
    b"org,a)/x": AccessRule("allow", None),
    b"org,a)/x/y###": AccessRule("exclude", None),
    b"org,b)/###": AccessRule("allow", None),
    b"com,z)/": AccessRule("exclude", None),
}


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (b"org,a)/", False),
        (b"org,a)/w", False),
        (b"org,a)/x", True),
        (b"org,a)/x/", True),
        (b"org,a)/x/y", False),
        (b"org,a)/x/y/z", True),
        (b"org,a)/x/yz", True),
        (b"org,a,b)/", False),
        (b"org,b)/", True),
        (b"org,b)/c", False),
        (b"org,zz)/", False),
        (b"org", True),
        (b"com,a)/", True),
        (b"com,z)/", False),
        (b"com,z)", True),
        (b"", True),
    ],
)
def test_the_rule_of_the_longest_start_decides(key: bytes, shown: bool) -> None:
    visible = Access(RULES).visible()
    for _ in range(2):
        assert visible(key + b" 2020 {}") == shown
        assert visible(b"net,a)/ 2020 {}")
    everything = Access(RULES | {b"*,": AccessRule("exclude", None)}).visible()
    has_rule = key.startswith((b"org,", b"com,z)/"))
    assert everything(key + b" 2020 {}") == (shown and has_rule)
    assert not everything(b"net,a)/ 2020 {}")


def test_time_changes_answers_only_with_a_period() -> None:
    assert Access({}).is_fixed
    assert Access({}, BEFORE).is_fixed
    assert not Access({}, NEWER).is_fixed
    assert Access({b"a": AccessRule("exclude", None), b"b": AccessRule("exclude", BEFORE)}).is_fixed
    assert not Access({b"a": AccessRule("exclude", None), b"b": AccessRule("exclude", NEWER)}).is_fixed
    assert not Access({b"a": AccessRule("exclude", NEWER)}, BEFORE).is_fixed


def test_a_rule_for_everything_touches_each_range() -> None:
    keys = KeyRange(b"org,a)/", b"org,a)/!", is_one_url=True)
    assert Access({b"*,": AccessRule("exclude", None)}).touches(keys)
    assert Access({b"org,a)/": AccessRule("exclude", None)}).touches(keys)
    assert not Access({b"org,a)/!": AccessRule("exclude", None)}).touches(keys)


def rules_of(tmp_path: Path, *texts: str) -> dict[bytes, AccessRule]:
    places = []
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.aclj").write_text(text)
        places.append(locate(str(tmp_path / f"{number}.aclj")))
    return read_rules(places)


def test_the_first_rule_of_a_key_holds(tmp_path: Path) -> None:
    found = rules_of(
        tmp_path,
        '\n  \norg,a)/ - {"access": "block"}\n\norg,a)/ - {"access": "allow"}\n',
        'org,a)/ - {"access": "exclude"}\norg,b)/ {"access": "allow", "user": ""}',
        'org,c)/ - {"access": "exclude", "user": "staff"}\norg,c)/ - {"access": "block"}\n',
        "",
    )
    assert found == {
        b"org,a)/": AccessRule("block", None),
        b"org,b)/": AccessRule("allow", None),
        b"org,c)/": AccessRule("block", None),
    }


@pytest.mark.parametrize(
    ("fields", "times"),
    [
        ({}, None),
        ({"before": "2020"}, Times("before", b"2020")),
        ({"before": 2020}, Times("before", b"2020")),
        ({"before": "", "after": "2021"}, Times("after", b"2021")),
        ({"before": "2020", "after": "2021"}, Times("before", b"2020")),
        ({"after": "2021", "newer": {"days": 1}}, Times("after", b"2021")),
        ({"newer": {"years": 2, "months": 3, "weeks": 4, "days": 5}}, Times("newer", months=27, days=33)),
        ({"older": {"weeks": 1}}, Times("older", days=7)),
        ({"newer": {}, "older": {"months": "2"}}, Times("older", months=2)),
    ],
)
def test_a_rule_may_hold_at_some_times(fields: dict[str, Any], times: Times | None, tmp_path: Path) -> None:
    found = rules_of(tmp_path, f"org,a)/ - {json.dumps({'access': 'block', **fields})}\n")
    assert found == {b"org,a)/": AccessRule("block", times)}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('org,a)/ - {"access": "hide"}', "unknown access 'hide'"),
        ('org,a)/ - {"acces": "block"}', "'access'"),
        ('org,a)/ - {"access": "block", "newer": {"hours": 1, "years": 1}}', "unknown unit 'hours': expected one of years, months, weeks, days"),
        ('org,a)/ - {"access": "block"', "unexpected end"),
        ("org,a)/", "not found"),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_named_with_its_line(line: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        rules_of(tmp_path, f'\norg,b)/ - {{"access": "block"}}\n{line}\n')
    assert caught.value.path.endswith("0.aclj")
    assert caught.value.reason.startswith("line 3 is no access rule (")
    assert reason in caught.value.reason
    assert caught.value.hint == "correct it: no rule is ignored"
