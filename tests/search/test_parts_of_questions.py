"""A question about several sources: what each of them is asked, and that the answer is that of one cluster with all lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.errors import CorruptError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import Query
from cdxmill.options.records import Copying
from cdxmill.search.lookup import lookup
from cdxmill.search.many import Answer
from cdxmill.search.query import Estimate, PreparedQuery, query_of
from cdxmill.search.several import SeveralSources, open_several, source_of
from cdxmill.search.sources import Source, find_sources

from ..material.clusters import write_raw_cluster

CRAWLS = ("CC-MAIN-2024-10", "CC-MAIN-2012")
ARCHIVES = ArchivePlaces(None)


class Given:
    """A source whose lines are given, in lists. It notes what it is asked."""

    def __init__(self, *lists: list[bytes], name: str = "given") -> None:
        self.lists, self.name = lists, name
        self.asked: list[PreparedQuery] = []
        self.keys: list[KeyRange] = []

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        self.asked.append(prepared)
        return (Answer(url, self.lists) for url in urls)

    def fields(self, keys: KeyRange) -> Iterable[str]:
        self.keys.append(keys)
        return ("mine",)


def several(query: Query, *given: Given, crawl: str = "", with_crawl: bool = True) -> SeveralSources:
    sources = [Source(one.name, ARCHIVES, crawl) for one in given]
    return SeveralSources(sources, given, query, None, with_crawl)


def lines_of(found: SeveralSources, url: str = "a.com") -> list[bytes]:
    return [line for lines in found.lists(url) for line in lines]


FILTERED = Query(filter="=status:200", from_ts="2020", to="2021", match_type="host")
BOUNDS = {"filter": "=status:200", "from_ts": "2020", "to": "2021"}


@pytest.mark.parametrize(
    ("changes", "crawl", "early", "most", "few"),
    [
        ({}, "", BOUNDS, None, False),
        ({}, CRAWLS[0], BOUNDS, None, False),
        ({"limit": 3}, "", BOUNDS, 3, True),
        ({"limit": 3, "collapse": "urlkey"}, "", BOUNDS, None, True),
        ({"limit": 3, "sort": "newest"}, "", {**BOUNDS, "sort": "newest"}, None, False),
        ({"limit": 3, "sort": "reverse"}, "", {**BOUNDS, "sort": "reverse"}, None, False),
        ({"limit": 3, "closest": "2020"}, "", BOUNDS, None, False),
        ({"limit": 3, "sort": "reverse", "closest": "2020"}, "", BOUNDS, None, False),
        ({"sort": "reverse", "collapse": "urlkey"}, "", BOUNDS, None, False),
        ({"limit": 3, "resolve_revisits": True}, "", {}, None, True),
        ({"resolve_revisits": True, "sort": "reverse"}, "", {}, None, False),
        ({"limit": 3, "filter": "=crawl:x"}, "", {**BOUNDS, "filter": "=crawl:x"}, 3, True),
        ({"limit": 3, "filter": "=crawl:x"}, CRAWLS[0], {}, None, True),
        ({"limit": 3, "filter": "x"}, CRAWLS[0], {}, None, True),
        ({"limit": 3, "filter": "x"}, "", {**BOUNDS, "filter": "x"}, 3, True),
        ({"limit": 3, "collapse": "crawl"}, CRAWLS[0], {}, None, True),
        ({"filter": "=crawl:x", "sort": "reverse"}, CRAWLS[0], {"sort": "reverse"}, None, False),
        ({"limit": 3, "fields": ("crawl", "url"), "output": "json"}, CRAWLS[0], BOUNDS, 3, True),
    ],
)  # fmt: skip
def test_a_source_is_asked_for_what_needs_no_other_line(
    changes: dict[str, object], crawl: str, early: dict[str, object], most: int | None, few: bool
) -> None:
    given = Given()
    query = replace(FILTERED, **changes)  # type: ignore[arg-type]
    assert lines_of(several(query, given, crawl=crawl)) == []
    (asked,) = given.asked
    names = (
        "match_type",
        "filter",
        "from_ts",
        "to",
        "sort",
        "limit",
        "closest",
        "collapse",
        "fields",
        "page",
    )
    wanted = Query(match_type="host", **early)  # type: ignore[arg-type]
    assert [getattr(asked.query, name) for name in names] == [getattr(wanted, name) for name in names]
    assert (asked.most, asked.few, asked.has_times, asked.unknown) == (most, few, True, ())
    assert not (asked.query.resolve_revisits or asked.query.output)
    read = PreparedQuery(query).read
    assert asked.read == [name for name in read if name != "crawl"]


def test_without_times_a_source_is_asked_for_none() -> None:
    given = Given()
    assert lines_of(several(Query(), given)) == []
    assert [(one.has_times, one.read) for one in given.asked] == [(False, [])]


def line(number: int, crawl: str = "", **more: str) -> bytes:
    """A capture; one in three is a revisit."""
    fields = {
        "url": f"http://a.com/{number % 4}",
        "mime": "warc/revisit" if number % 3 == 2 else "text/html",
        "status": "404" if number % 5 == 4 else "200",
        "digest": "ABC"[number % 3 - (number % 3 == 2)],
        "length": "9",
        "offset": str(number),
        "filename": "a.warc.gz",
        **more,
        **({"crawl": crawl} if crawl else {}),
    }
    text = ", ".join(f'"{name}": "{value}"' for name, value in fields.items())
    return f"com,a)/{number % 4} 20{12 + number % 9}0101000000 {{{text}}}".encode()


PARTS = (range(0, 60, 3), range(1, 60, 3), range(2, 60, 3))
NAMED = (*CRAWLS, "")
"""The crawls of which the parts are. The last one is a cluster."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two crawls and a cluster; `whole` has the lines of all as they are printed, `plain` has them without names of crawls."""
    root = tmp_path_factory.mktemp("crawls")
    for part, crawl in zip(PARTS, NAMED, strict=True):
        place = root / "cc-index/collections" / crawl / "indexes" if crawl else root / "C"
        place.parent.mkdir(parents=True, exist_ok=True)
        write_raw_cluster(place, sorted(line(number) for number in part), 4)
    pairs = [(number, crawl) for part, crawl in zip(PARTS, NAMED, strict=True) for number in part]
    write_raw_cluster(root / "whole", sorted(line(*pair) for pair in pairs), 4)
    write_raw_cluster(root / "plain", sorted(line(number) for number, _ in pairs), 4)
    return root


@pytest.fixture
def sources(built: Path, monkeypatch: pytest.MonkeyPatch) -> list[Source]:
    monkeypatch.setenv("CDXMILL_COMMONCRAWL", str(built))
    return find_sources(f"{CRAWLS[0]},{CRAWLS[1]},{built}/C", None)


QUESTIONS = [
    {},
    {"limit": 5},
    {"filter": "=crawl:CC-MAIN-2012"},
    {"filter": "!=crawl:CC-MAIN-2012", "limit": 7},
    {"filter": "2024-10"},
    {"filter": "=status:200", "from_ts": "2013", "to": "2018"},
    {"collapse": "crawl"},
    {"collapse": "urlkey", "filter": "=crawl:CC-MAIN-2012", "sort": "reverse"},
    {"collapse": "digest", "sort": "reverse", "limit": 2},
    {"fields": ("crawl", "timestamp"), "output": "json"},
    {"fields": ("crawl", "url"), "filter": "2012", "sort": "newest", "limit": 3},
    {"resolve_revisits": True},
    {"resolve_revisits": True, "from_ts": "2015", "filter": "=mime:warc/revisit"},
    {"resolve_revisits": True, "to": "2016", "sort": "reverse", "limit": 4},
    {"sort": "reverse"},
    {"sort": "newest", "limit": 3},
    {"sort": "reverse", "filter": "=crawl:CC-MAIN-2024-10", "limit": 2},
    {"sort": "closest", "closest": "2016", "limit": 4},
    {"sort": "reverse", "limit": 2000},
    {"sort": "closest", "closest": "2019", "limit": 3, "resolve_revisits": True},
]


@pytest.mark.parametrize(
    "changes", QUESTIONS, ids=[re.sub(r"[^\w.=!-]+", "-", str(one)) for one in QUESTIONS]
)
@pytest.mark.parametrize("url", ["a.com/*", "http://a.com/3", "http://a.com/none"])
def test_the_answer_is_that_of_one_cluster(
    url: str, changes: dict[str, object], sources: list[Source], built: Path
) -> None:
    query = Query(**changes)  # type: ignore[arg-type]
    wanted = list(lookup(built / "whole", url, query))
    with open_several(sources, query) as found:
        assert lines_of(found, url) == wanted
        if "fields" not in changes:
            assert found.count(url) == len(wanted)
    unnamed = {"urlkey", "crawl", "2024-10"}.isdisjoint(
        map(str, changes.values())
    ) and "fields" not in changes
    if "=crawl" in str(changes) or not unnamed:
        return
    with open_several(sources, query, with_crawl=False) as found:
        lines = lines_of(found, url)
        assert b"".join(lines).count(b'"crawl"') == (
            b"".join(wanted).count(b'"crawl"') if "resolve_revisits" in changes else 0
        )
        if "resolve_revisits" not in changes:
            assert lines == list(lookup(built / "plain", url, query))
            for one in lines:
                number = int(re.findall(rb'"offset": "(\d+)"', one)[0])
                assert source_of(one) == number % 3


@pytest.mark.parametrize("size", [1, 2, 5, 99])
def test_the_pages_of_several_sources_have_each_line_once(
    size: int, sources: list[Source], built: Path
) -> None:
    found = []
    for page in range(-(-15 // size)):
        with open_several(sources, Query(page=page, page_size=size)) as opened:
            found.append(lines_of(opened, "a.com/*"))
            assert opened.count_pages("a.com/*").pages == -(-15 // size)
    assert [one for lines in found for one in lines] == list(lookup(built / "whole", "a.com/*"))
    assert all(found)


def test_lines_know_their_source_where_they_have_the_name_of_a_crawl(sources: list[Source]) -> None:
    with open_several(sources, Query(filter="=crawl:CC-MAIN-2012"), with_crawl=False) as found:
        lines = lines_of(found, "a.com/*")
    assert {source_of(one) for one in lines} == {1}
    assert all(b'"crawl": "CC-MAIN-2012"}' in one for one in lines)
    assert source_of(b"a line") == 0


def test_the_least_of_crawls_is_their_sum() -> None:
    """The names of their archives differ, so they have no line in common. Others may have."""
    given = [Given([line(number) for number in range(size)]) for size in (3, 4, 5)]
    for crawls, least in (
        (("", "", ""), 5),
        ((*CRAWLS, ""), 7),
        ((CRAWLS[0], "", ""), 5),
        (("", *CRAWLS), 9),
    ):
        named = [Source("a", ARCHIVES, crawl) for crawl in crawls]
        found = SeveralSources(named, given, Query(), None)
        assert found.estimate("a.com/*") == Estimate(12, least, 12, 0)


def test_only_clusters_have_pages() -> None:
    found = several(Query(page=0), Given(name="one"), Given(name="two"))
    with pytest.raises(
        UsageError, match=r"^one, two: only clusters have pages; use --limit, or --from and --to$"
    ):
        list(found.answers(["a.com"]))
    with pytest.raises(UsageError, match="only clusters have pages"):
        several(Query(), Given()).count_pages("a.com")


def test_an_unknown_field_is_looked_for_once_and_near_the_url() -> None:
    given = [Given(), Given()]
    found = several(Query(fields=("mine",), from_ts="2020"), *given)
    assert [list(answer.lists) for answer in found.answers(["a.com", "b.com"])] == [[], []]
    assert [len(one.keys) for one in given] == [1, 1]
    assert given[0].keys[0][:2] == (b"com,a)/ 20200101000000", b"com,a)/!")
    with pytest.raises(UsageError, match="unknown field 'yours', which given, given does not have"):
        lines_of(several(Query(fields=("yours",)), *given))


A, B, C, D = (b"com,a)/%b 2020 {}" % name for name in (b"a", b"b", b"c", b"d"))


@pytest.mark.parametrize(
    ("lists", "sort", "is_sorted"),
    [
        ([[A, B], [C]], "default", True),
        ([[A, B], [], [B, C]], "default", True),
        ([[B, A]], "default", False),
        ([[B], [A]], "default", False),
        ([[A, C], [], [B]], "default", False),
        ([[C], [B, A]], "reverse", True),
        ([[C, B], [B]], "reverse", True),
        ([[A, B]], "reverse", False),
        ([[A], [B]], "reverse", False),
    ],
)
def test_the_lines_of_each_source_have_to_be_sorted(
    lists: list[list[bytes]], sort: str, is_sorted: bool
) -> None:
    found = several(Query(sort=sort), Given([D], name="good"), Given(*lists, name="bad"))
    if is_sorted:
        assert sorted(lines_of(found)) == sorted({D, *(one for some in lists for one in some)})
        return
    with pytest.raises(
        CorruptError, match=r"^bad: its lines are not sorted; check it with cdxmill verify, or build it"
    ):
        lines_of(found)


def test_a_line_without_fields_gets_no_name_of_a_crawl() -> None:
    lines = [b"com,a)/ 2020 {}", b"com,a)/ 2021 x"]
    assert lines_of(several(Query(), Given(lines), crawl="x")) == lines_of(
        several(Query(), Given(lines), Given(), crawl="x")
    )
    assert lines_of(several(Query(), Given(lines), crawl="x")) == [b'com,a)/ 2020 {, "crawl": "x"}', lines[1]]


def test_an_error_of_any_source_is_that_of_the_answer() -> None:
    class Refusing(Given):
        def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
            return (Answer(url, (), UsageError("no host") if url == "/x" else None) for url in urls)

    given = [Given([A]), Refusing(), Given([B])]
    first, second = several(Query(), *given).answers(["/x", "a.com"])
    assert (first.url, first.lists, str(first.error)) == ("/x", (), "no host")
    assert (second.url, [*chain.from_iterable(second.lists)], second.error) == ("a.com", [A, B], None)
    with pytest.raises(UsageError, match="no host"):
        several(Query(), *given).count("/x")


def test_the_lines_of_a_single_source_are_counted() -> None:
    assert several(Query(), Given([A, B], [C])).count("a.com") == 3
    assert several(Query(limit=2), Given([A, B], [C])).count("a.com") == 2


@pytest.mark.parametrize(
    "text",
    ["=crawl:CC-MAIN-2012", "!=crawl:CC-MAIN-2012", "MAIN-2012", "!MAIN-2012", "=status:404", "=url:x"],
)
def test_the_count_of_a_single_crawl_is_that_of_its_lines(
    text: str, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter of whole lines reads the name of the crawl, too."""
    monkeypatch.setenv("CDXMILL_COMMONCRAWL", str(built))
    with open_several(find_sources(CRAWLS[1], None), Query(filter=text)) as found:
        lines = lines_of(found, "a.com/*")
        assert found.count("a.com/*") == len(lines) == {"=c": 20, "MA": 20, "=s": 4}.get(text[:2], 0)


def test_no_line_is_read_that_is_not_needed() -> None:
    def lists() -> Iterator[list[bytes]]:
        yield [D, C]
        raise AssertionError

    class Lazy(Given):
        def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
            return (Answer(url, lists()) for url in urls)

    found = several(Query(sort="reverse", limit=2), Lazy(), Given([B, A]))
    assert lines_of(found) == [D, C]


def test_the_question_is_taken_out_of_other_arguments() -> None:
    """What is printed, and where shards are, is no part of it."""
    asked = {
        "match_type": "host",
        "from_ts": "2020",
        "to": "2021",
        "filter": "x",
        "collapse": "4",
        "limit": 3,
    }
    more = {"sort": "reverse", "closest": "2020"}
    copying = Copying(["a"], **asked, **more)  # type: ignore[arg-type]
    query = Query(**asked, **more, page=1, page_size=7, resolve_revisits=True, fields=("url",), output="json")  # type: ignore[arg-type]
    for given, wanted in ((copying, (None, 10, False)), (query, (1, 7, True))):
        found = query_of(given)
        assert {name: getattr(found, name) for name in (*asked, *more)} == {**asked, **more}
        assert (found.page, found.page_size, found.resolve_revisits) == wanted
        assert (found.fields, found.output, found.shard_index_loc) == (None, None, None)
