"""What `copy --dry-run` shows: the size of each query and of all together, a capture of several queries or sources once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdxmill.commands.copying.check import QuerySize, as_json, as_table, check
from cdxmill.commands.copying.plan import ask
from cdxmill.options.records import Copying
from cdxmill.running.failures import Failures

Line = tuple[str, str, int, int | None]
"""The host, archive, offset and length of a line."""


def write(name: str, *lines: Line) -> str:
    """A file of lines, which come sorted."""
    fields = [
        f"com,{host})/ 20200101000000 http://{host}.com/ text/html 200 D - - "
        f"{'-' if length is None else length} {offset} {archive}.warc.gz\n"
        for host, archive, offset, length in lines
    ]
    Path(name).write_text("".join(fields))
    return name


def sizes(source: list[str], *urls: str) -> tuple[list[QuerySize], list[str]]:
    """The sizes, and the notes and failures."""
    told: list[str] = []
    found = check(ask(Copying(source), urls), Failures(write=told.append))
    return found, told


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def as_rows(found: list[QuerySize]) -> list[tuple[str, int, int, int, int, int]]:
    return [(one.query, one.captures, one.archives, one.bytes, one.requests, one.unknown) for one in found]


def test_a_capture_of_several_queries_counts_for_each_and_once_in_the_total() -> None:
    source = write("a.cdx", ("a", "x", 0, 10), ("b", "x", 10, 20), ("c", "y", 0, 40))
    found, told = sizes([source], "a.com", "b.com", "*.com")
    assert as_rows(found) == [
        ("a.com", 1, 1, 10, 1, 0),
        ("b.com", 1, 1, 20, 1, 0),
        ("*.com", 3, 2, 70, 2, 0),
        ("total", 3, 2, 70, 2, 0),
    ]
    assert told == []


def test_a_capture_of_several_sources_counts_once_in_each_query() -> None:
    one = write("a.cdx", ("a", "x", 0, 10), ("b", "x", 10, 20))
    other = write("b.cdx", ("a", "x", 0, 10), ("c", "x", 30, 40))
    found, _ = sizes([one, other], "*.com", "a.com", "z.com")
    assert [(row[0], row[1], row[3]) for row in as_rows(found)] == [
        ("*.com", 3, 70),
        ("a.com", 1, 10),
        ("z.com", 0, 0),
        ("total", 3, 70),
    ]


@pytest.mark.parametrize(
    ("unknown", "note"),
    [
        (0, []),
        (1, ["note: 1 capture has no length in the index; bytes is less than will be copied"]),
        (2, ["note: 2 captures have no length in the index; bytes is less than will be copied"]),
    ],
)
def test_captures_without_a_length_are_told_of(unknown: int, note: list[str]) -> None:
    """The note counts each of them once, also if several queries have it."""
    source = write(
        "a.cdx", ("a", "x", 0, 10), *((f"b{number}", "x", 10 + number, None) for number in range(unknown))
    )
    found, told = sizes([source], "*.com", "*")
    assert as_rows(found)[-1] == ("total", 1 + unknown, 1, 10, 1, unknown)
    assert told == note


def test_an_invalid_line_is_a_failure_and_the_others_count() -> None:
    Path("a.cdx").write_text("com,a)/ 20200101000000 http://a.com/ text/html 200 D - - 10 x a.warc.gz\n")
    failures = Failures(printed=False)
    source = write("b.cdx", ("b", "x", 0, 10))
    found = check(ask(Copying(["a.cdx", source]), ["*"]), failures)
    assert (found[-1].captures, failures.count, failures.items[0].path) == (1, 1, "a.cdx")


def test_the_json_has_all_numbers_of_each_query_and_of_the_total() -> None:
    source = write("a.cdx", ("a", "x", 0, 10), ("b", "y", 10, None))
    found, _ = sizes([source], "a.com", "*")
    text = as_json(found)
    assert text.endswith("}\n")
    assert json.loads(text) == {
        "queries": [
            {"query": "a.com", "captures": 1, "archives": 1, "bytes": 10, "requests": 1, "unknown": 0},
            {"query": "*", "captures": 2, "archives": 2, "bytes": 10, "requests": 2, "unknown": 1},
        ],
        "total": {"captures": 2, "archives": 2, "bytes": 10, "requests": 2, "unknown": 1},
    }


def test_the_columns_of_the_table_are_as_wide_as_their_longest_value() -> None:
    found = [
        QuerySize("a-long-host.example.com", 7, 1, 1234567890, 2),
        QuerySize("b", 123456789, 2, 0, 0),
        QuerySize("total", 123456796, 3, 1234567890, 2),
    ]
    assert as_table(found) == (
        "query                     captures  archives       bytes  requests\n"
        "a-long-host.example.com          7         1  1234567890         2\n"
        "b                        123456789         2           0         0\n"
        "total                    123456796         3  1234567890         2\n"
    )
