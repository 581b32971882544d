"""Which lines a list of exclusions means, and which mistakes in it are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.cluster.exclude import ranges_of, read_excluded
from cdxmill.errors import InputError, OutageError, UsageError
from cdxmill.formats.lines.lookup_query import TimeRange
from cdxmill.storage.location import Location, locate

ALWAYS, TWO_YEARS = TimeRange(), TimeRange(b"2014", b"2015")


@pytest.mark.parametrize(
    ("query", "match_type", "times", "expected"),
    [
        ("a.com/x", None, ALWAYS, (b"com,a)/x ", b"com,a)/x!")),
        ("a.com/x", None, TWO_YEARS, (b"com,a)/x 2014", b"com,a)/x 2015:!")),
        ("a.com/x", None, TimeRange(last=b"2015"), (b"com,a)/x ", b"com,a)/x 2015:!")),
        ("a.com/x", None, TimeRange(first=b"2014"), (b"com,a)/x 2014", b"com,a)/x!")),
        ("a.com/x*", None, TWO_YEARS, (b"com,a)/x", b"com,a)/y")),
        ("*.a.com", None, ALWAYS, (b"com,a)/", b"com,a-")),
        ("a.com", "host", ALWAYS, (b"com,a)/", b"com,a*")),
        ("a.com/x a.com/z", "range", ALWAYS, (b"com,a)/x", b"com,a)/z")),
        ("a.com/x a.com/z", "range", TWO_YEARS, (b"com,a)/x", b"com,a)/z")),
        ("a*.com/ b.com/", "range", ALWAYS, (b"com,a*)/", b"com,b)/")),
        ("a.com/x", "exact", ALWAYS, (b"com,a)/x ", b"com,a)/x!")),
        ("a.com/x*", "exact", ALWAYS, (b"com,a)/x* ", b"com,a)/x*!")),
    ],
)
def test_a_url_or_pattern_means_exactly_these_lines(
    query: str, match_type: str | None, times: TimeRange, expected: tuple[bytes, bytes]
) -> None:
    assert ranges_of([query], match_type, times) == [expected]


@pytest.mark.parametrize(
    ("query", "match_type", "reason"),
    [
        ("*", None, "would remove all lines; delete the directory of the cluster instead"),
        ("*", "prefix", "not a URL that can be removed"),
        ("*.a.com/x*", None, r"x\* would be ignored"),
        ("a.com/x", "host", "x would be ignored"),
        ("a.com", "range", "not a URL that can be removed"),
    ],
)
def test_what_would_remove_more_than_was_meant_is_refused(
    query: str, match_type: str | None, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        ranges_of(["a.com/x", query], match_type, ALWAYS)


def test_ranges_of_several_queries_are_in_order_and_joined() -> None:
    assert ranges_of(["c.com/", "a.com/b*", "a.com/b/c", "a.com/*"], None, ALWAYS) == [
        (b"com,a)/", b"com,a)0"),
        (b"com,c)/ ", b"com,c)/!"),
    ]
    assert ranges_of([], None, ALWAYS) == []


def test_of_a_long_query_the_start_is_told() -> None:
    with pytest.raises(UsageError, match=r"^http://x:y/a{189}: not a URL that can be removed \("):
        ranges_of(["http://x:y/" + "a" * 300], None, ALWAYS)


def test_a_list_may_have_other_bytes_than_utf_8(tmp_path: Path) -> None:
    (tmp_path / "exclude.txt").write_bytes(b"http://a.com/\xff\r\n#\xff\n")
    assert read_excluded(locate(tmp_path)) == ranges_of(["http://a.com/\udcff"], None, ALWAYS)


def test_a_list_may_have_comments_and_overlaps(tmp_path: Path) -> None:
    (tmp_path / "exclude.txt").write_text("# why\n\n  b.com/*\nb.com/x\n \na.com/\n")
    assert read_excluded(locate(tmp_path)) == [(b"com,a)/ ", b"com,a)/!"), (b"com,b)/", b"com,b)0")]
    with (tmp_path / "exclude.txt").open("a") as file:
        file.write("*\n")
    with pytest.raises(
        InputError, match=r"exclude\.txt: line 7: \*: would remove all lines.*; correct this line"
    ):
        read_excluded(locate(tmp_path))


def test_what_is_no_directory_has_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_excluded(locate(tmp_path)) == []
    assert read_excluded(locate(tmp_path / "absent")) == []
    (tmp_path / "file").touch()
    assert read_excluded(locate(tmp_path / "file")) == []

    def fail(place: Location) -> bytes:
        raise OutageError(place.text, "cannot be read")

    monkeypatch.setattr(Location, "read_bytes", fail)
    for place in (locate(tmp_path), locate("s3://bucket/C")):
        with pytest.raises(OutageError):
            read_excluded(place)
