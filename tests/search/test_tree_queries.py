"""Which keys of a prefix B-tree a query asks for, and which questions a tree cannot answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdxmill.errors import CorruptError, UsageError
from cdxmill.formats.tree.pointer_layout import Layout
from cdxmill.options.trees import TreeQuery
from cdxmill.search.prefix_index import (
    key_ranges,
    key_ranges_of_url,
    open_prefix_index,
    prefix_range,
    resumed,
)
from cdxmill.search.tree_ahead import batch_of
from cdxmill.search.tree_query import PreparedTreeQuery, _invalid_of, check_stored, search_tree

from ..material.cdx_files import write_plain
from ..material.trees import LINES, build
from ..stages.trees_in_memory import pages, tree_of

CAPTURE, CLASSIC, NUMBERS = (Layout(text) for text in ("capture", "classic", "n:u64"))
Ranges = list[tuple[bytes, bytes]]


def of(query: str, layout: Layout, match_type: str | None = None, keys: str | None = None) -> Ranges:
    return [(low, high) for low, high, _ in key_ranges(query, layout, match_type, keys)]


def one(key: bytes) -> tuple[bytes, bytes]:
    return key, key + b"\0"


@pytest.mark.parametrize(
    ("query", "match_type", "wanted"),
    [
        ("http://example.com/a", None, [one(b"com.example/a:http")]),
        ("https://example.com/a", "exact", [one(b"com.example/a:https")]),
        ("com.example/a:http", None, [one(b"com.example/a:http")]),
        ("com.example/a*", None, [(b"com.example/a", b"com.example/b")]),
        ("http://example.com/a*", None, [(b"com.example/a", b"com.example/b")]),
        ("com.example/a", "prefix", [(b"com.example/a", b"com.example/b")]),
        ("example.com", "host", [(b"com.example/", b"com.example0"), (b"com.example:", b"com.example;")]),
        ("https://example.com/a", "prefix", [(b"com.example/a", b"com.example/b")]),
        (
            "*.example.com",
            None,
            [(b"com.example.", b"com.example/"), (b"com.example/", b"com.example0"), (b"com.example:", b"com.example;")],
        ),
        (
            "example.com",
            "domain",
            [(b"com.example.", b"com.example/"), (b"com.example/", b"com.example0"), (b"com.example:", b"com.example;")],
        ),
    ],
)  # fmt: skip
def test_queries_of_reversed_hosts(query: str, match_type: str | None, wanted: Ranges) -> None:
    assert of(query, CLASSIC, match_type) == wanted
    assert of(query, NUMBERS, match_type, "reversed") == wanted


@pytest.mark.parametrize(
    ("query", "match_type", "wanted"),
    [
        ("http://a.com/", None, [one(b"http://a.com/")]),
        ("*.a.com", None, [one(b"*.a.com")]),
        ("a*", None, [(b"a", b"b")]),
        ("a*", "exact", [one(b"a*")]),
        ("a*", "prefix", [(b"a*", b"a+")]),
        ("\udcff", "prefix", [(b"\xff", b"\xff" * (1 << 16))]),
        ("*", None, [(b"", b"\xff" * (1 << 16))]),
    ],
)
def test_queries_of_plain_keys(query: str, match_type: str | None, wanted: Ranges) -> None:
    assert of(query, NUMBERS, match_type) == wanted


def test_queries_of_surts_are_those_of_lookup() -> None:
    assert of("http://a.com/x", CAPTURE) == of("http://a.com/x", NUMBERS, keys="surt") == [one(b"com,a)/x")]
    assert of("a.com/x*", CAPTURE) == [(b"com,a)/x", b"com,a)/y")]
    assert [found.is_one_url for found in key_ranges("a.com", CAPTURE)] == [True]


@pytest.mark.parametrize(
    ("query", "match_type", "keys", "reason"),
    [
        ("a", "host", None, "the match type host needs other keys; use exact or prefix"),
        ("a", "domain", "plain", "the match type domain needs other keys"),
        ("a", "range", "reversed", "the match type range needs other keys"),
        ("a", None, "other", "invalid kind of keys 'other': expected one of surt, reversed, plain"),
        (
            "http://a.com:port/" + "x" * 300,
            None,
            "surt",
            r"^http://a\.com:port/x{182}: cannot be searched \(",
        ),
    ],
)
def test_queries_that_no_key_can_answer_are_refused(
    query: str, match_type: str | None, keys: str | None, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        of(query, NUMBERS, match_type, keys)


@pytest.mark.parametrize(
    ("url", "match_type", "wanted"),
    [
        ("http://a.com/x", None, [one(b"com.a/x:http"), one(b"com.a/x:https")]),
        ("a.com/x", "exact", [one(b"com.a/x:http"), one(b"com.a/x:https")]),
        ("a.com", None, [one(b"com.a/:http"), one(b"com.a/:https"), one(b"com.a:http"), one(b"com.a:https")]),
        ("a.com/", None, [one(b"com.a/:http"), one(b"com.a/:https")]),
        ("a.com/x*", None, [(b"com.a/x", b"com.a/y")]),
        ("https://a.com/x", "prefix", [(b"com.a/x", b"com.a/y")]),
        ("a.com/x", "host", [(b"com.a/", b"com.a0"), (b"com.a:", b"com.a;")]),
        ("*.a.com", None, [(b"com.a.", b"com.a/"), (b"com.a/", b"com.a0"), (b"com.a:", b"com.a;")]),
        ("*", None, [(b"", b"\xff" * (1 << 16))]),
    ],
)
def test_lookup_asks_for_both_schemes(url: str, match_type: str | None, wanted: Ranges) -> None:
    assert [(low, high) for low, high, _ in key_ranges_of_url(url, CLASSIC, match_type)] == wanted
    assert key_ranges_of_url(url, CAPTURE, match_type) == key_ranges(url, CAPTURE, match_type)


@pytest.mark.parametrize("url", ["http:///x", "/x", "*.", "https://" + "/" * 300])
def test_a_url_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="cannot be searched in an index with the layout classic"):
        key_ranges_of_url(url, CLASSIC)


def test_a_range_of_a_prefix_ends_where_no_key_starts_so() -> None:
    assert prefix_range(b"a\xff\xff")[:2] == (b"a\xff\xff", b"b")
    assert prefix_range(b"\xfe")[:2] == (b"\xfe", b"\xff")
    ranges = [prefix_range(b"a"), prefix_range(b"c")]
    assert resumed(ranges, b"") == ranges
    assert [found[:2] for found in resumed(ranges, b"ab")] == [(b"ab", b"b"), (b"c", b"d")]
    assert [found[:2] for found in resumed(ranges, b"b")] == [(b"c", b"d")]
    assert resumed(ranges, b"d") == []


def test_a_star_means_all_urls_only_without_a_match_type() -> None:
    assert [found[:2] for found in key_ranges_of_url("*", CLASSIC, "prefix")] == [(b"*/", b"*0")]


def test_a_range_of_one_url_says_so() -> None:
    for layout in (CAPTURE, CLASSIC, NUMBERS):
        for query, wanted in (("http://a.com/x", True), ("http://a.com/x*", False), ("*", False)):
            assert [found.is_one_url for found in key_ranges(query, layout)] == [wanted]


@pytest.fixture
def tree(tmp_path: Path) -> str:
    return build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES), block_size=1000)


@pytest.mark.parametrize("limit", [None, 1, 2, 5, 599, 10_000])
def test_a_limit_is_of_all_queries_together(limit: int | None, tree: str) -> None:
    with open_prefix_index(tree) as index:
        prepared = PreparedTreeQuery(TreeQuery(limit=limit), index.layout)
        lists = list(search_tree(index, ["example.com/299", "example.com/*", "*"], prepared))
        found = [line for lines in lists for line in lines]
        assert all(lists)
        assert len(found) == min(limit or 1 << 30, 2 + 600 + len(LINES))
        assert [line[:15] for line in found[:3]] == [b"com,example)/29", b"com,example)/29", b"com,example)/00"][:limit]  # fmt: skip


def test_an_invalid_query_is_reported_and_the_others_are_answered(tree: str) -> None:
    asked = ["example.com/001", "http://a.com:port/", "example.com/002"]
    with open_prefix_index(tree) as index:
        prepared = PreparedTreeQuery(TreeQuery(), index.layout)
        errors: list[UsageError] = []
        assert sum(map(len, search_tree(index, asked, prepared, errors.append))) == 4
        assert [str(error).partition(":8")[0][:18] for error in errors] == ["http://a.com:port/"]
        with pytest.raises(UsageError):
            list(search_tree(index, asked, prepared))
        assert batch_of(index) == 1


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (TreeQuery(filter="=status:200"), 602),
        (TreeQuery(filter="=offset:7"), 2),
        (TreeQuery(from_ts="2021"), 1),
        (TreeQuery(to="20200101000000"), 303),
        (TreeQuery(from_ts="20200101000001", to="2020"), 300),
        (TreeQuery(from_ts="20200101000001", to="2020", filter=("=offset:7", "=status:200")), 1),
    ],
)
def test_filters_and_times_choose_captures(query: TreeQuery, wanted: int, tree: str) -> None:
    with open_prefix_index(tree) as index:
        found = list(search_tree(index, ["*"], PreparedTreeQuery(query, index.layout)))
    assert sum(map(len, found)) == wanted


@pytest.mark.parametrize(
    ("layout", "query", "reason"),
    [
        (CAPTURE, TreeQuery(fields=("digest",)), "the field 'digest' is not stored; the fields are urlkey, timestamp, length, offset, filename, url, status"),
        (CAPTURE, TreeQuery(filter="=mime:text/html"), "the field 'mime' is not stored"),
        (CLASSIC, TreeQuery(filter="=status:200"), "the field 'status' is not stored"),
        (CLASSIC, TreeQuery(from_ts="2020"), "the layout classic has no timestamps, so --from and --to cannot be used"),
        (CLASSIC, TreeQuery(to="2020"), "the layout classic has no timestamps"),
        (NUMBERS, TreeQuery(to="2020"), "the layout 'n:u64' has no captures: no fields, times and filters"),
        (NUMBERS, TreeQuery(fields=("url",)), "has no captures"),
        (NUMBERS, TreeQuery(filter="a"), "has no captures"),
        (NUMBERS, TreeQuery(output="json"), "has no captures"),
        (CAPTURE, TreeQuery(from_ts="x"), "invalid timestamp"),
        (CAPTURE, TreeQuery(filter="!="), "it is empty"),
    ],
)  # fmt: skip
def test_a_question_about_what_is_not_stored_is_refused(
    layout: Layout, query: TreeQuery, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        PreparedTreeQuery(query, layout)


def test_other_questions_are_possible() -> None:
    for layout, query in (
        (CAPTURE, TreeQuery(fields=("statuscode", "original"), filter="200", from_ts="2020", output="json")),
        (CLASSIC, TreeQuery(fields=("url", "filename"), filter=("x", "=offset:1"), output="cdx")),
        (NUMBERS, TreeQuery(limit=1, resume="a", keys="surt")),
    ):
        assert PreparedTreeQuery(query, layout).layout is layout
    check_stored(NUMBERS, [None], has_times=True)
    with pytest.raises(UsageError, match="the field 'url' is not stored"):
        check_stored(NUMBERS, [None, "url"], has_times=False)


def test_the_layout_of_a_tree_may_be_named_if_it_is_the_same(tree: str) -> None:
    with open_prefix_index(tree, "capture") as index:
        assert index.layout.name == "capture"
        assert index.archive(0).endswith(".warc.gz")
    with (
        pytest.raises(UsageError, match=r"x\.tree: its layout is capture; leave --layout out"),
        open_prefix_index(tree, "classic"),
    ):
        pass


def printed(tree: str, asked: str, **options: Any) -> list[bytes]:
    with open_prefix_index(tree) as index:
        lists = search_tree(index, [asked], PreparedTreeQuery(TreeQuery(**options), index.layout))
        return [line for lines in lists for line in lines]


def test_lines_are_printed_as_they_are_asked_for(tree: str) -> None:
    """Fields may have the names of other tools, and the header is that of the format."""
    (line,) = printed(tree, "http://blog.example.com/")
    assert line.startswith(
        b'com,example,blog)/ 20200101000000 {"url": "http://blog.example.com/", "length": "99"'
    )
    assert printed(tree, "http://blog.example.com/", output="text", fields=("original", "offset")) == [
        b"http://blog.example.com/ 5"
    ]
    with open_prefix_index(tree) as index:
        prepared = PreparedTreeQuery(TreeQuery(output="csv", fields=("original", "offset")), index.layout)
        assert prepared.header == b"url,offset"
        assert PreparedTreeQuery(TreeQuery(), index.layout).header is None


def test_a_search_starts_at_a_key(tree: str) -> None:
    whole = printed(tree, "*")
    assert printed(tree, "*", resume="com,examples)/") == whole[-2:]
    assert printed(tree, "*", resume="") == whole
    assert printed(tree, "example.com/29*", resume="com,example)/298") == whole[2 * 298 : 2 * 300]
    prepared = PreparedTreeQuery(TreeQuery(resume="com,\udcff"), CAPTURE)
    assert [found.low for found in prepared.ranges("*")] == [b"com,\xff"]


def test_the_pointers_of_a_key_are_its_own(tree: str) -> None:
    with open_prefix_index(tree) as index:
        for key, number in ((b"com,example)/001", 2), (b"com,example)/00", 0), (b"org,example)/", 1)):
            found = index.pointers(key)
            assert [len(pointer) for pointer in found] == [index.layout.size] * number


def test_a_tree_without_captures_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"a\t1\n")
    numbers = build(tmp_path, tmp_path / "a.tsv", layout="n:u64")
    reason = r"x\.tree: the layout 'n:u64' has no captures; use cdxmill prefix-index search$"
    with open_prefix_index(numbers) as index, pytest.raises(UsageError, match=reason):
        list(index.captures([]))
    with pytest.raises(UsageError, match="layout"), open_prefix_index(numbers, "no layout"):
        pass


def test_items_without_captures_are_keys_and_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"a\t1 2\nb\t3 4\nc\t5 6\n")
    numbers = build(tmp_path, tmp_path / "a.tsv", layout="n:u64,m:u8")
    assert printed(numbers, "*") == [b"a\t1\t2", b"b\t3\t4", b"c\t5\t6"]
    assert printed(numbers, "b*", match_type="exact") == []
    assert printed(numbers, "b") == [b"b\t3\t4"]
    assert printed(numbers, "*", limit=2, resume="b") == [b"b\t3\t4", b"c\t5\t6"]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_nothing_is_read_behind_the_last_line_that_is_wanted(
    limit: int, tree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines(*given: object) -> Iterator[list[bytes]]:
        yield [b"a"]
        yield [b"b", b"c"][: limit - 1]
        raise AssertionError

    with open_prefix_index(tree) as index:
        prepared = PreparedTreeQuery(TreeQuery(limit=limit), index.layout)
        monkeypatch.setattr(prepared, "lines", lines)
        found = search_tree(index, ["com,a", "com,b"], prepared)
        assert [line for some in found for line in some] == [b"a", b"b", b"c"][:limit]


def test_a_line_that_cannot_be_read_is_damage() -> None:
    with pytest.raises(CorruptError, match=r"^x\.tree: no JSON$"):
        _invalid_of("x.tree")(b"", ValueError("no JSON"))


def test_the_pointers_of_a_file_of_2012_are_named_by_the_user(tmp_path: Path) -> None:
    items = [(b"a", b"\1\2"), (b"b", b"\3\4")]
    path = tmp_path / "x.tree"
    path.write_bytes(tree_of(items, 64))
    for layout, wanted in (("n:u16", [b"a\t513", b"b\t1027"]), ("n:u8,m:u8", [b"a\t1\t2", b"b\t3\t4"])):
        with open_prefix_index(path, layout) as index:
            prepared = PreparedTreeQuery(TreeQuery(), index.layout)
            assert [line for lines in search_tree(index, ["*"], prepared) for line in lines] == wanted
    path.write_bytes(tree_of(pages(300), 64)[:99])
    hint = r"; if its pointers are others than \S+, name them with --layout"
    with pytest.raises(CorruptError, match=hint), open_prefix_index(path) as index:
        list(index.items(key_ranges("*", CLASSIC)))
