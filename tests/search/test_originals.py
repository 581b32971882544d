"""The original of a revisit: the first capture with its content near its date."""

from __future__ import annotations

import json

import pytest

from cdxmill.search.originals import Reference, first_original, query_for, reference_in


def line(**fields: str) -> bytes:
    """A capture of the page of which a revisit is."""
    usual = {"mime": "text/html", "digest": "A", "offset": "7", "length": "9", "filename": "a.gz"}
    return f"com,a)/ 20200101000000 {json.dumps({**usual, **fields})}".encode()


def test_the_first_capture_with_the_content_is_the_original() -> None:
    others = [
        line(mime="warc/revisit"),
        line(digest="B"),
        line(offset="x"),
        b'com,a)/ 20200101000000 {"digest": "A"}',
        b"com,a)/ 2020 {",
        b"",
    ]
    wanted = line(offset="5")
    found = first_original([*others, wanted, line()], "A")
    assert found is not None
    assert (found.line, found.location.offset, found.location.filename) == (wanted, 5, "a.gz")
    assert first_original(others, "A") is None
    assert first_original([], "A") is None


@pytest.mark.parametrize(
    ("date", "moment"),
    [
        (b"2014-01-26T20:06:24Z", "20140126200624"),
        (b"2014-01-26T20:06:24.5Z", "20140126200624"),
        (b"2014", "20140101000000"),
        (b"", "20200202020202"),
        (b"soon", "20200202020202"),
        (b"\xff", "20200202020202"),
    ],
)
def test_captures_are_searched_near_the_date_that_the_revisit_names(date: bytes, moment: str) -> None:
    headers = {b"warc-refers-to-target-uri": b"http://a.com/", b"warc-refers-to-date": date}
    reference = reference_in(headers)
    query = query_for(reference, "20200202020202")
    assert (query.match_type, query.sort, query.closest) == ("exact", "closest", moment)
    assert reference_in({}).date == ""


def test_a_timestamp_with_milliseconds_is_cut_to_seconds() -> None:
    assert query_for(Reference("http://a.com/", ""), "20200202020202123").closest == "20200202020202"
