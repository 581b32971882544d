"""Which answers are made at once, while other questions wait: those of a block or two of a cluster that is open on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdxmill.options.queries import Query
from cdxmill.search.sources import find_sources
from cdxmill.server.access import Access, AccessRule
from cdxmill.server.answers import Response
from cdxmill.server.collections import Collection, Inquiry, prepare
from cdxmill.server.dialects import memento, outback, pywb, wayback, xml_query
from cdxmill.server.dialects.request import Request
from cdxmill.server.routes import Endpoint
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


DATE = {b"accept-datetime": b"Wed, 01 Jan 2020 00:30:00 GMT"}
XML = b"q=type:urlquery+url:many.example/"


@pytest.mark.parametrize(
    ("endpoint", "query", "headers", "expected"),
    [
        (wayback.answer, b"url=many.example/", {}, True),
        (wayback.answer, b"url=many.example/&showResumeKey=true", {}, True),
        (wayback.answer, b"url=many.example/&resumeKey=example,many)/+2020+1", {}, False),
        (wayback.answer, b"url=many.example/&showNumPages=true", {}, False),
        (wayback.answer, b"url=many.example/&limit=-5", {}, False),
        (wayback.answer, b"url=many.example/&limit=5&closest=2020", {}, True),
        (outback.answer, b"url=many.example/", {}, True),
        (outback.answer, b"urlkey=example,many)/", {}, True),
        (outback.answer, b"url=many.example/&sort=reverse", {}, False),
        (outback.answer, b"urlkey=example,many)/&sort=closest&closest=2020&limit=3", {}, True),
        (xml_query.answer, XML, {}, True),
        (xml_query.answer, XML + b"+date:2020+limit:100", {}, True),
        (xml_query.answer, XML + b"+date:2020+limit:101", {}, False),
        (xml_query.answer, XML + b"+date:2020+limit:60+offset:40", {}, True),
        (xml_query.answer, XML + b"+date:2020+limit:60+offset:41", {}, False),
        (xml_query.answer, b"q=type:prefixquery+url:many.example/", {}, False),
        (memento.available, b"url=many.example/", {}, False),
        (memento.available, b"url=many.example/&timestamp=2020", {}, True),
        (memento.timegate, b"", {}, False),
        (memento.timegate, b"", DATE, True),
        (memento.link_timemap, b"", {}, False),
        (memento.json_timemap, b"", {}, False),
    ],
)
def test_each_dialect_says_which_answers_wait(
    endpoint: Endpoint, query: bytes, headers: dict[bytes, bytes], expected: bool, collection: Collection
) -> None:
    scope = {"headers": [], "scheme": "http"}
    request = Request(
        collection, query, headers, scope, "http://replay/", Watch(), unreported, "http://many.example/"
    )
    planned = endpoint(request)
    assert planned.is_quick is expected
    assert planned.question is not None
    answer = planned.make()
    assert answer.status == (302 if endpoint is memento.timegate else 200)
    assert list(answer.body) or endpoint is memento.timegate


@pytest.mark.parametrize("size", [1, 2])
def test_the_number_of_pages_is_counted_while_others_are_answered(size: int, collection: Collection) -> None:
    asked = b"url=many.example/*&showNumPages=true&pageSize=%d" % size
    planned = pywb.answer(Request(collection, asked, {}, {}, None, Watch(), unreported, ""))
    assert not planned.is_quick
    pages = json.loads(b"".join(planned.make().body))
    assert pages["pageSize"] == size
    counted = wayback.answer(Request(collection, asked, {}, {}, None, Watch(), unreported, ""))
    assert not counted.is_quick
    assert int(b"".join(counted.make().body)) == pages["pages"] == -(-pages["blocks"] // size)


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
