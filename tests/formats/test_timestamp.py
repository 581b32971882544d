"""Dates, compared with warcio's result if it has one, else with the standards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.timeutils import datetime_to_timestamp, iso_date_to_timestamp, timestamp_to_datetime

from cdxmill.formats.lines.timestamp import arc_timestamp_of, timestamp_of, warc_timestamp_of

moments = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31))
fractions = st.from_regex(r"\A([.,][0-9]{1,9})?\Z")


@given(moments, fractions, st.sampled_from(["", "Z"]))
def test_warc_dates_are_what_warcio_reads(moment: datetime, fraction: str, end: str) -> None:
    date = moment.strftime("%Y-%m-%dT%H:%M:%S") + fraction + end
    assert timestamp_of(date.encode()) == iso_date_to_timestamp(date).encode()


@given(st.datetimes(datetime(1900, 1, 2), datetime(2999, 12, 30)), st.integers(-23 * 60, 23 * 60))
def test_a_zone_is_converted_to_utc(moment: datetime, minutes: int) -> None:
    there = moment.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=minutes)))
    expected = there.astimezone(UTC).strftime("%Y%m%d%H%M%S")
    assert timestamp_of(there.isoformat().encode()) == expected.encode()


@given(st.text("0123456789", min_size=4, max_size=18))
def test_bare_dates_are_padded_and_clamped_as_warcio_does(digits: str) -> None:
    assert timestamp_of(digits.encode()) == datetime_to_timestamp(timestamp_to_datetime(digits)).encode()


@pytest.mark.parametrize(
    ("date", "timestamp"),
    [
        ("2013", "20131231235959"),
        ("2013-02", "20130201000000"),
        ("2013-12-26", "20131226000000"),
        ("2013-12-26T10", "20131226100000"),
        ("2013-12-26T10:11Z", "20131226101100"),
        ("2012-02-29T00:00:00Z", "20120229000000"),
    ],
)
def test_missing_parts_are_smallest_in_iso_dates_and_largest_in_bare_ones(date: str, timestamp: str) -> None:
    assert timestamp_of(date.encode()) == timestamp.encode()


@pytest.mark.parametrize(
    "date",
    ["", " ", "-", "soon", "201", "1" * 19, "2013-13-01T00:00:00Z", "2013-02-30T00:00:00Z", "2013-02-03T25:00:00Z",
     "2013-1" + "0" * 5000, "2013-01-01T00:00:00." + "1" * 5000 + "+00:00", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-01:00", "Thu, 26 Dec 2013 09:50:10 GMT"],
)  # fmt: skip
def test_invalid_dates_have_no_timestamp(date: str) -> None:
    assert timestamp_of(date.encode()) is None


@given(st.binary(max_size=40) | st.from_regex(rb"\A[0-9]{4}-[0-9].{0,24}\Z"))
def test_any_bytes_give_14_digits_or_none(date: bytes) -> None:
    timestamp = timestamp_of(date)
    assert timestamp is None or (len(timestamp) == 14 and timestamp.isdigit())


@given(st.text("0123456789-x. ", min_size=1, max_size=20))
def test_arc_dates_with_odd_characters_are_what_warcio_reads(rest: str) -> None:
    date = f"2008{rest}".strip()
    if date[4:6].strip("0123456789") == "-":  # an ISO date, which warcio reads another way
        return
    theirs = "".join(char for char in date if char not in " -")
    if theirs == date:
        assert arc_timestamp_of(date.encode()) == datetime_to_timestamp(timestamp_to_datetime(date)).encode()


@pytest.mark.parametrize(
    ("date", "timestamp"),
    [
        ("2020", "20200101000000"),
        ("202005", "20200501000000"),
        ("2020-05", "20200501000000"),
        ("2020-05-06", "20200506000000"),
        ("2020-05-06T07:08Z", "20200506070800"),
        ("2020-05-06T07:08:09-0400", "20200506110809"),
        ("2020-05-06T07:08:09-04:00", "20200506110809"),
        ("2020-05-06T07:08:09+01:00", "20200506060809"),
        ("2020-05-06T07:08:09.5+0100", "20200506060809"),
        ("2020-05-06T07:08:09+01", "20200506060809"),
        ("2020-05-06T07:08+01:00", "20200506060800"),
        ("2020-05-06 07:08:09 -0400", "20200506110809"),
        ("20200506070809", "20200506070809"),
    ],
)
def test_warc_dates_of_less_precision_and_in_other_zones(date: str, timestamp: str) -> None:
    assert warc_timestamp_of(date.encode()) == timestamp.encode()


@pytest.mark.parametrize("date", ["", "-", "None", "soon", "0", "1", "200x", "2008" + "0" * 5000])
def test_an_arc_date_without_a_year_has_no_timestamp(date: str) -> None:
    assert arc_timestamp_of(date.encode()) is None


@pytest.mark.parametrize(
    ("date", "warc", "arc"),
    [
        (b"200", None, None),
        (b"2008", b"20080101000000", b"20081231235959"),
        (b" 2008 ", b"20080101000000", b"20081231235959"),
        (b"2008043020482", b"20080430204820", b"20080430204859"),
        (b"20080430204821", b"20080430204821", b"20080430204821"),
        (b"200804302048219", b"20080430204821", b"20080430204821"),
        (b"200804302048219999", b"20080430204821", b"20080430204821"),
        (b"2013-12-26T10:11:12Z", b"20131226101112", b"20131226101112"),
        (b"2013-12-26T10:11:12.5Z", b"20131226101112", b"20131226101112"),
        (b"2008" + b"x" * 60, None, b"20081231235959"),
        (b"2008" + b"x" * 61, None, None),
        (b"2013-12-26T10:11:12." + b"5" * 38 + b"+01:00", b"20131226091112", b"20131226091112"),
        (b"2013-12-26T10:11:12." + b"5" * 39 + b"+01:00", None, None),
        (b"x2008", None, None),
        (b"", None, None),
    ],
)
def test_what_is_missing_is_smallest_in_warc_dates_and_largest_in_arc_dates(
    date: bytes, warc: bytes | None, arc: bytes | None
) -> None:
    assert warc_timestamp_of(date) == warc
    assert arc_timestamp_of(date) == arc
