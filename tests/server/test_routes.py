"""What is asked by a path: the endpoint, the collection, and the URL in it."""

from __future__ import annotations

import json

import pytest

from cdxmill.server.answers import JSON, TEXT, RequestError, Response
from cdxmill.server.collections import Collection
from cdxmill.server.dialects.request import Request
from cdxmill.server.routes import Route, route
from cdxmill.server.watch import Watch

NAMES = ("web", "old", "a-index", "b")
COLLECTIONS = {name: Collection(name, [], None) for name in NAMES}


def found(path: str, query: bytes = b"", raw_path: bytes | None = None) -> Route:
    return route(path, path.encode() if raw_path is None else raw_path, query, COLLECTIONS)


@pytest.mark.parametrize(
    ("path", "query", "expected", "is_json"),
    [
        ("/web/cdx", b"", ("pywb", "web"), True),
        ("/old/index", b"", ("pywb", "old"), True),
        ("/web-index", b"", ("index", "web"), True),
        ("/a-index-index", b"", ("index", "a-index"), True),
        ("/a-index", b"", ("outback", "a-index"), False),
        ("/a-index/cdx", b"", ("pywb", "a-index"), True),
        ("/b-index", b"q=type:urlquery", ("index", "b"), True),
        ("/cdx/search/cdx", b"", ("wayback", "web"), False),
        ("/old/cdx/search/cdx", b"", ("wayback", "old"), False),
        ("/wayback/available", b"", ("available", "web"), True),
        ("/old/available", b"", ("available", "old"), True),
        ("/old/report", b"", ("report", "old"), False),
        ("/old", b"", ("outback", "old"), False),
        ("/old/", b"", ("outback", "old"), False),
        ("/old", b"url=a&q=b", ("xml", "old"), False),
        ("/old", b"q=b&url=a", ("xml", "old"), False),
        ("/old", b"url=q=a", ("outback", "old"), False),
        ("/old", b"url=a?q=b", ("outback", "old"), False),
        ("/old/timemap/link/http://a.com/", b"", ("timemap", "old"), False),
        ("/old/timemap/json/http://a.com/", b"", ("timemap", "old"), False),
        ("/old/timegate/http://a.com/", b"", ("timegate", "old"), False),
    ],
)
def test_a_path_has_an_endpoint(path: str, query: bytes, expected: tuple[str, str], is_json: bool) -> None:
    one = found(path, query)
    assert (one.name, one.collection.name) == expected
    told = one.show_error(RequestError(418, "a\nb", ((b"x", b"y"),)))
    assert (told.status, told.headers) == (418, ((b"x", b"y"),))
    assert told.kind == (JSON if is_json else TEXT)
    body = b"".join(told.body)
    assert (json.loads(body)["message"] if is_json else body[:-1].decode()).startswith("a")
    assert body.count(b"\n") == 1
    assert bool(one.target) == ("/time" in path)


def test_endpoints_of_the_same_kind_differ() -> None:
    link, other = (found(f"/web/timemap/{kind}/http://a.com/") for kind in ("link", "json"))
    assert link.endpoint is not other.endpoint
    assert found("/web/cdx").endpoint is not found("/web-index").endpoint
    assert found("/web/index").endpoint is found("/web/cdx").endpoint


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/none", "unknown page; /collinfo.json lists the collections, and / explains their endpoints"),
        ("/none-index", "unknown page; /collinfo.json lists the collections, and / explains their endpoints"),
        ("/-index", "unknown page; /collinfo.json lists the collections, and / explains their endpoints"),
        ("/none/cdx", "unknown page; /collinfo.json lists the collections, and / explains their endpoints"),
        ("/web-index/", "unknown page; /collinfo.json lists the collections, and / explains their endpoints"),
        ("/web-index/cdx", "unknown page; /collinfo.json lists the collections, and / explains their endpoints"),
        ("//web", "unknown page; /collinfo.json lists the collections, and / explains their endpoints"),
        ("/web/none", "unknown endpoint of the collection web; the page / lists all endpoints"),
        ("/web/cdx/", "unknown endpoint of the collection web; the page / lists all endpoints"),
        ("/web/timemap/http://a.com/", "unknown endpoint of the collection web; the page / lists all endpoints"),
        ("/web/timegate", "unknown endpoint of the collection web; the page / lists all endpoints"),
    ],
)  # fmt: skip
def test_other_paths_are_unknown(path: str, reason: str) -> None:
    with pytest.raises(RequestError) as caught:
        found(path)
    assert (caught.value.code, str(caught.value)) == (404, reason)


@pytest.mark.parametrize(
    ("raw", "query", "target"),
    [
        (b"http://a.com/", b"", "http://a.com/"),
        (b"http://a.com/x", b"y=1&z", "http://a.com/x?y=1&z"),
        (b"http://a.com/%41", b"", "http://a.com/%41"),
        (b"http://a.com/%3A", b"", "http://a.com/%3A"),
        (b"http%3A%2F%2Fa.com%2F%41", b"", "http://a.com/A"),
        (b"http%3a%2f%2fa.com%2f", b"", "http://a.com/"),
        (b"http%3A//a.com/", b"", "http://a.com/"),
        (b"a.com/%3A", b"", "a.com/:"),
        (b"a.com/1234567890123%3A", b"", "a.com/1234567890123%3A"),
        (b"a.com/12345678901%3A", b"", "a.com/12345678901:"),
        (b"a.com/123456789012%3A", b"", "a.com/123456789012%3A"),
        (b"a.com/1234567890123://%3A", b"", "a.com/1234567890123://%3A"),
        (b"http://a.com/timegate/b", b"", "http://a.com/timegate/b"),
        (b"http%3A%2F%2Fa.com%2F%FF", b"x=\xff", "http://a.com/\udcff?x=\udcff"),
        (b"a.com/%20", b"", "a.com/%20"),
    ],
)
def test_the_url_of_a_timegate_is_as_it_was_sent_unless_all_of_it_is_encoded(
    raw: bytes, query: bytes, target: str
) -> None:
    assert found("/web/timegate/http://", query, b"/web/timegate/" + raw).target == target


def test_a_report_is_that_of_its_collection_and_is_made_while_others_are_answered() -> None:
    one, asked = found("/old/report"), list[Collection]()
    answer = Response(200, TEXT, ())

    def report(collection: Collection) -> Response:
        asked.append(collection)
        return answer

    planned = one.endpoint(Request(one.collection, b"", {}, {}, None, Watch(), report))
    assert not planned.is_quick
    assert asked == []
    assert planned.make() is answer
    assert asked == [COLLECTIONS["old"]]
