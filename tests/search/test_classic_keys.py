"""Queries of a prefix B-tree of Common Crawl's layout of 2012, whose keys have the host reversed and the scheme at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

import cdxmill
from cdxmill.errors import UsageError
from cdxmill.formats.tree.pointer_layout import CLASSIC, classic_key_of_url

URLS = [
    "http://example.com",
    "http://example.com/",
    "https://example.com/",
    "http://example.com/a",
    "https://example.com/a",
    "http://example.com/ab",
    "http://example.com:8080/a",
    "http://www.example.com/a",
    "http://example.community/a",
    "http://b.org/a",
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("classic")
    keys = sorted(classic_key_of_url(url, with_scheme=True) for url in URLS)
    rows = [b"%b\t1 2 3 %d 5\n" % (key, number) for number, key in enumerate(keys)]
    (place / "keys.tsv").write_bytes(b"".join(rows))
    cdxmill.build_prefix_index(place / "keys.tsv", output=place / "t", layout=CLASSIC.text)
    return place / "t"


@pytest.mark.parametrize(
    ("query", "match_type", "expected"),
    [
        ("http://example.com/a", None, [3, 4]),
        ("https://example.com/a", None, [3, 4]),
        ("example.com/a", None, [3, 4]),
        ("example.com/a", "exact", [3, 4]),
        ("example.com", None, [0, 1, 2]),
        ("example.com/", None, [1, 2]),
        ("example.com:8080/a", None, [6]),
        ("example.com/a*", None, [3, 4, 5]),
        ("https://example.com/a*", None, [3, 4, 5]),
        ("example.com/a", "prefix", [3, 4, 5]),
        ("example.com/*", None, [1, 2, 3, 4, 5]),
        ("example.com/*", "exact", []),
        ("*.example.com", None, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("example.com", "domain", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("http://example.com/x", "domain", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("example.com", "host", [0, 1, 2, 3, 4, 5, 6]),
        ("*.org", None, [9]),
        ("*", None, list(range(10))),
        ("absent.com", None, []),
    ],
)
def test_a_query_finds_the_urls_of_both_schemes(
    query: str, match_type: str | None, expected: list[int], tree: Path
) -> None:
    found = [capture["url"] for capture in cdxmill.lookup(tree, query, match_type=match_type)]
    assert sorted(found) == sorted(URLS[number] for number in expected)


@pytest.mark.parametrize(("query", "match_type"), [("/a", None), ("http:///a", None)])
def test_a_query_without_a_host_finds_nothing_or_is_refused(
    query: str, match_type: str | None, tree: Path
) -> None:
    try:
        assert list(cdxmill.lookup(tree, query, match_type=match_type)) == []
    except UsageError as error:
        assert "cannot be searched in an index with the layout classic" in str(error)
