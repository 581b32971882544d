"""Which answers are made at once, while other questions wait: those of a block or two of a cluster that is open on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdxmill.options.queries import Query
from cdxmill.search.sources import find_sources
from cdxmill.server.access import Access, AccessRule
from cdxmill.server.answers import Response
from cdxmill.server.collections import Collection, Inquiry, prepare
from cdxmill.server.dialects import pywb
from cdxmill.server.dialects.request import Request
from cdxmill.server.watch import Watch

from .conftest import MANY

if TYPE_CHECKING:
    from cdxmill.search.sources import Source


def collection_of(sources: list[Source], *, is_open: bool = True) -> Collection:
    collection = Collection("many", sources, None)
    if is_open:
        collection.open()
    return collection


def unreported(_: Collection) -> Response:
    raise AssertionError("no report is asked for")


def is_quick(collection: Collection, query: Query, url: str = MANY) -> bool:
    return Inquiry(collection, url, prepare(query), Watch()).is_quick


@pytest.fixture(scope="module")
def source(many_cluster: Path) -> Source:
    return find_sources(str(many_cluster), None)[0]


@pytest.fixture
def collection(source: Source) -> Iterator[Collection]:
    collection = collection_of([source])
    yield collection
    collection.close()


@pytest.mark.parametrize(
    ("asked", "url", "expected"),
    [
        ({}, MANY, True),
        ({}, "example.many/*", True),
        ({"collapse": "urlkey", "resolve_revisits": True, "limit": 5}, MANY, True),
        ({"sort": "reverse"}, MANY, False),
        ({"sort": "newest", "limit": 1}, MANY, False),
        ({"page": 0}, MANY, False),
        ({"closest": "2020"}, MANY, False),
        ({"closest": "2020", "limit": 1000}, MANY, True),
        ({"closest": "2020", "limit": 1001}, MANY, False),
        ({"closest": "2020", "limit": 5}, "many.example/*", False),
        ({"closest": "2020", "limit": 5, "collapse": "urlkey"}, MANY, False),
        ({"closest": "2020", "limit": 5, "resolve_revisits": True}, MANY, False),
    ],
    ids=repr,
)
def test_what_has_to_be_sorted_or_is_a_page_waits(
    asked: dict[str, Any], url: str, expected: bool, collection: Collection
) -> None:
    assert is_quick(collection, Query(**asked), url) is expected


@pytest.mark.parametrize(
    ("more", "searches_long"),
    [(b"", False), (b"*", True), (b"&filter=status:404", True), (b"&limit=3", False)],
    ids=repr,
)
def test_an_answer_that_is_404_without_captures_waits_if_the_first_may_be_far(
    more: bytes, searches_long: bool, collection: Collection
) -> None:
    request = Request(collection, b"url=many.example/" + more, {}, {}, None, Watch(), unreported, "")
    assert pywb.index_answer(request).is_quick is not searches_long
    assert pywb.answer(request).is_quick


@pytest.mark.parametrize("size", [1, 2])
def test_the_number_of_pages_is_counted_while_others_are_answered(size: int, collection: Collection) -> None:
    asked = b"url=many.example/*&showNumPages=true&pageSize=%d" % size
    planned = pywb.answer(Request(collection, asked, {}, {}, None, Watch(), unreported, ""))
    assert not planned.is_quick
    assert b'"pageSize": %d,' % size in b"".join(planned.make().body)


def test_few_clusters_that_are_open_here_are_asked_at_once(source: Source, tmp_path: Path) -> None:
    for number, is_open, expected in (4, True, True), (5, True, False), (1, False, False):
        collection = collection_of([source] * number, is_open=is_open)
        assert is_quick(collection, Query()) is expected
        collection.close()


def test_pages_of_what_no_rule_touches_are_those_of_its_blocks(source: Source) -> None:
    """Filters hide lines of a block, and not the block, as in pywb. Only where a rule holds, lines are counted."""
    for hidden, pages in (b"example,other)/", 17), (b"example,many)/", 0):
        collection = Collection("many", [source], Access({hidden: AccessRule("exclude", None)}))
        query = Query(filter=("=status:404",), page_size=1)
        assert Inquiry(collection, MANY, prepare(query), Watch()).pages().pages == pages
        collection.close()
