"""Revisits and their originals."""

from __future__ import annotations

import json
import math
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.lines.choose_lines import resolve_revisits, seconds, sort_closest


def line(timestamp: int, mime: str, digest: str = "A", filename: str = "a.warc.gz") -> bytes:
    fields = {"url": "http://a.com/", "mime": mime, "status": "200", "digest": digest, "length": "1"}
    return f"com,a)/ {timestamp} {json.dumps({**fields, 'offset': str(timestamp), 'filename': filename})}".encode()


def originals(*lines: bytes) -> list[str]:
    """The offset of the original of each line."""

    def invalid(given: bytes, error: Exception) -> None:
        raise AssertionError(given) from error

    found = [one for lists in resolve_revisits(iter([list(lines)]), invalid) for one in lists]
    return [json.loads(one.split(b" ", 2)[2])["orig.offset"] for one in found]


def test_a_line_with_its_original_has_each_field_once() -> None:
    """The key and the timestamp stay before the JSON, and the other fields keep their order."""

    def fields(mime: str, time: int, *original: str) -> bytes:
        place = {"digest": "A", "length": "1", "offset": str(time), "filename": "a.warc.gz"}
        names = ("orig.length", "orig.offset", "orig.filename")
        more = dict(zip(names, original, strict=True))
        known = {"url": "http://a.com/", "mime": mime, "status": "200", **place, **more}
        return f"com,a)/ {time} {json.dumps(known)}".encode()

    given = [line(1, "text/html"), line(2, "warc/revisit")]
    expected = [fields("text/html", 1, "-", "-", "-"), fields("text/html", 2, "1", "1", "a.warc.gz")]
    assert list(resolve_revisits(iter([given]), lambda *_: None)) == [expected]


def test_a_revisit_is_the_original_of_none() -> None:
    """Not of a capture before it, and not of other revisits: it has no content."""
    revisit = "warc/revisit"
    assert originals(line(1, revisit), line(2, revisit)) == ["-", "-"]
    assert originals(line(1, "-", filename="-"), line(2, revisit)) == ["-", "-"]
    assert originals(line(1, revisit), line(2, "text/html"), line(3, revisit)) == ["-", "-", "2"]
    assert originals(line(1, "text/html"), line(2, "text/html"), line(3, revisit)) == ["-", "-", "1"]
    assert originals(line(1, "text/html", "B"), line(2, revisit)) == ["-", "-"]
    assert originals(line(1, "text/html", ""), line(2, revisit, "")) == ["-", "-"]


@given(
    st.lists(
        st.sampled_from(["2019", "202003", "20200301", "20200302120000", "20200302120001", "2021", "-"])
    ),
    st.integers(1, 9),
)
def test_the_nearest_lines_are_the_first_of_all_in_order_and_ties_keep_theirs(
    times: list[str], limit: int
) -> None:
    lines = [b"com,a)/ %b %d" % (time.encode(), number) for number, time in enumerate(times * 500)]

    def distance(line: bytes) -> float:
        time = line.split(b" ")[1].decode()
        return math.inf if time == "-" else abs(seconds(time) - seconds("20200302"))

    lists = [lines[start : start + 700] for start in range(0, len(lines), 700)]
    wanted = sorted(lines, key=distance)
    assert list(chain.from_iterable(sort_closest(lists, "20200302", limit))) == wanted[:limit]
    assert list(chain.from_iterable(sort_closest(lists, "20200302", None))) == wanted
