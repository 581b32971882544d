"""server/collections.py: which questions are refused, which are answered at once, and what is found out for one collection only."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cdxmill.options.queries import Query
from cdxmill.search.kept import HeldCluster, KeptCluster
from cdxmill.search.sources import find_sources
from cdxmill.server import collections
from cdxmill.server.access import Access, AccessRule
from cdxmill.server.answers import RequestError
from cdxmill.server.collections import Collection, Inquiry, prepare
from cdxmill.server.watch import Watch

from .conftest import MANY, line

if TYPE_CHECKING:
    from cdxmill.search.sources import Source

HIDDEN = Access({b"example,many)/same": AccessRule("exclude", None)})


@pytest.fixture
def local(many_cluster: Path) -> Source:
    return find_sources(str(many_cluster), None)[0]


def inquiry(collection: Collection, url: str = MANY, **asked: Any) -> Inquiry:
    return Inquiry(collection, url, prepare(Query(**asked)), Watch())


def test_a_question_that_cannot_be_asked_is_refused(local: Source) -> None:
    for query in Query(filter="~status:["), Query(sort="closest"), Query(from_ts="x"):
        with pytest.raises(RequestError) as caught:
            prepare(query)
        assert caught.value.code == 400
    with pytest.raises(RequestError, match="not a URL that can be looked up") as caught:
        inquiry(Collection("many", [local], None), MANY, match_type="range")
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("asked", "is_quick"),
    [
        ({}, True),
        ({"url": "http://many.example/*"}, True),
        ({"limit": 1}, True),
        ({"page": 0}, False),
        ({"page": 1}, False),
        ({"sort": "reverse"}, False),
        ({"sort": "newest"}, False),
        ({"closest": "2020"}, False),
        ({"closest": "2020", "limit": 1000}, True),
        ({"closest": "2020", "limit": 1001}, False),
        ({"closest": "2020", "limit": 1, "url": "http://many.example/*"}, False),
        ({"closest": "2020", "limit": 1, "collapse": "4"}, False),
        ({"closest": "2020", "limit": 1, "resolve_revisits": True}, False),
        ({"closest": "2020", "limit": 1, "sort": "closest"}, True),
        ({"closest": "2020", "limit": 1, "page": 1}, False),
    ],
)
def test_only_what_takes_a_block_or_two_is_answered_at_once(
    asked: dict[str, Any], is_quick: bool, local: Source
) -> None:
    collection = Collection("many", [local], None)
    found = inquiry(collection, **asked)
    assert not found.is_quick, "it is not open"
    collection.open()
    assert found.is_quick == is_quick
    collection.close()


@pytest.mark.parametrize(("number", "is_quick"), [(1, True), (4, True), (5, False)])
def test_many_clusters_are_asked_while_others_are_answered(
    number: int, is_quick: bool, local: Source
) -> None:
    collection = Collection("many", [local] * number, None)
    collection.open()
    assert inquiry(collection).is_quick == is_quick
    collection.close()


@pytest.mark.parametrize(
    ("access", "asked", "is_plain"),
    [
        (None, {}, True),
        (None, {"filter": "status:200"}, False),
        (None, {"url": "http://many.example/*"}, False),
        (HIDDEN, {}, True),
        (HIDDEN, {"url": MANY + "same"}, False),
    ],
)
def test_the_first_line_is_found_at_once_if_all_lines_of_a_url_are_the_answer(
    access: Access | None, asked: dict[str, Any], is_plain: bool, local: Source
) -> None:
    assert inquiry(Collection("many", [local], access), **asked).is_plain == is_plain


def size(lists: Iterable[list[bytes]]) -> int:
    return sum(map(len, lists))


def test_a_field_of_one_collection_is_not_known_in_another(local: Source, tmp_path: Path) -> None:
    (tmp_path / "own.cdxj").write_text(line("example,many)/", "2020", own="1"))
    own = Collection("own", [local._replace(name=str(tmp_path / "own.cdxj"))], None)
    many, asked = Collection("many", [local], None), prepare(Query(fields=("own",)))
    assert size(Inquiry(own, MANY, asked, Watch()).lists()) == 1
    with pytest.raises(RequestError, match="unknown field 'own'") as caught:
        size(Inquiry(many, MANY, asked, Watch()).lists())
    assert caught.value.code == 400
    assert str(local.cluster) not in str(caught.value)
    plain = prepare(Query())
    assert Inquiry(many, MANY, plain, Watch())._prepared is plain, "nothing has to be found out"
    own.close()
    many.close()


def test_pages_of_a_guarded_prefix_have_the_visible_lines(local: Source) -> None:
    collection = Collection("many", [local], HIDDEN)
    query = Query(match_type="prefix", page_size=7)
    found = Inquiry(collection, MANY, prepare(query), Watch()).pages()
    assert tuple(found) == (3, 7, 17)
    sizes = [
        size(Inquiry(collection, MANY, prepare(replace(query, page=page)), Watch()).lists())
        for page in range(3)
    ]
    assert sizes == [2100, 2100, 800]
    with pytest.raises(RequestError) as caught:
        size(Inquiry(collection, MANY, prepare(replace(query, page=3)), Watch()).lists())
    assert caught.value.code == 400
    collection.close()


def test_an_empty_first_page_exists(local: Source) -> None:
    collection = Collection("many", [local], HIDDEN)
    query = Query(page=0)
    assert size(Inquiry(collection, MANY + "same", prepare(query), Watch()).lists()) == 0
    with pytest.raises(RequestError):
        size(Inquiry(collection, MANY + "same", prepare(replace(query, page=1)), Watch()).lists())
    collection.close()


@pytest.mark.parametrize("fails", [False, True])
def test_what_an_answer_has_taken_is_given_back(
    fails: bool, local: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[HeldCluster] = []
    give = KeptCluster.give_back

    def noted(self: KeptCluster, held: HeldCluster) -> None:
        given.append(held)
        give(self, held)

    monkeypatch.setattr(KeptCluster, "give_back", noted)
    collection = Collection("many", [local, local], None)
    with pytest.raises(ZeroDivisionError) if fails else nullcontext(), collection.opened(Watch()):
        assert given == []
        if fails:
            raise ZeroDivisionError
    assert len(given) == 2
    collection.close()


@pytest.mark.parametrize(
    ("place", "has_to_open", "number", "is_near"),
    [
        ("/c", False, 1, True),
        ("/c", True, 1, False),
        ("/c", False, 0, False),
        ("s3://b/c", False, 1, False),
    ],
)
def test_a_collection_is_near_if_its_files_are_open_on_this_machine(
    place: str, has_to_open: bool, number: int, is_near: bool, local: Source
) -> None:
    collection = Collection("many", [local._replace(name=place)], None)
    kept: Any = SimpleNamespace(has_to_open=has_to_open)
    collection._kept = [kept] * number
    assert collection.is_near == is_near
    with_state = collection._state([1])
    assert (with_state is not None) == (place == "/c"), (
        "of what is far, nobody knows at once whether it has changed"
    )


def test_its_files_are_looked_at_every_hundredth_of_a_second_once_they_are_open(
    local: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, version, closed = [8.0], [0], list[str]()
    monkeypatch.setattr(collections, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(collections, "_FRESH_SECONDS", 0.5)
    collection = Collection("many", [local], None)
    kept: Any = SimpleNamespace(
        has_to_open=True, version=lambda: version[0], close=lambda: closed.append("closed")
    )
    collection._kept = [kept]
    assert collection.state() is None
    kept.has_to_open = False
    first = collection.state()
    assert first is not None, "what is not known is looked at again at once"
    version[0] = 1
    for later, is_known in ((0.25, True), (0.25, False)):
        now[0] += later
        assert (collection.state() == first) == is_known
    collection.close()
    assert closed == ["closed"]
