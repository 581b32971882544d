"""Exactly what is said about the sizes of several sources, and what is asked of each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.errors import InputError, UsageError
from cdxmill.options.queries import Query
from cdxmill.search.query import Estimate, Pages
from cdxmill.search.several import SeveralSources, open_several, source_of
from cdxmill.search.sources import check_read_once, find_sources, state_of

from ..material.cdx_files import write_plain
from ..material.clusters import write_raw_cluster
from .conftest import lines_of

A, B = lines_of("a.com"), lines_of("b.com")


@pytest.fixture
def names(directory: Path, tmp_path: Path) -> dict[str, str]:
    """A cluster of all lines, one without cluster.json of those of a.com, and a file with those of b.com."""
    return {
        "all": str(directory),
        "a": write_raw_cluster(tmp_path / "a", A, 20),
        "b": str(write_plain(tmp_path / "b.cdxj", B)),
    }


@pytest.mark.parametrize(
    ("chosen", "url", "wanted"),
    [
        ("all", "*.org", Estimate(800, 781, 820, 41)),
        ("all b", "*.org", Estimate(800, 781, 820, 41 + 1)),
        ("all b", "b.com/*", Estimate(800 + 800, 800, 820 + 800, 41 + 2)),
        ("b", "b.com/*", Estimate(800, 800, 800, 2)),
        ("all a", "a.com/*", Estimate(810 + 118_500, 782, None, 41 + 40)),
        ("all b", "http://b.com/page/0007", Estimate(10 + 2, 2, 20 + 2, 1 + 1)),
        ("all b", "http://0.absent/", Estimate(0, 0, 0, 1)),
    ],
)
def test_estimates_are_summed_and_the_least_is_that_of_one_source(
    chosen: str, url: str, wanted: Estimate, names: dict[str, str]
) -> None:
    sources = find_sources(",".join(names[one] for one in chosen.split()), None)
    with open_several(sources, Query()) as several:
        assert several.estimate(url) == wanted


@pytest.mark.parametrize(
    ("chosen", "url", "size", "wanted"),
    [
        ("all", "*.org", 10, Pages(5, 10, 41)),
        ("all", "*.org", 41, Pages(1, 41, 41)),
        ("all a", "a.com/*", 10, Pages(9, 10, 81)),
        ("all a", "http://absent.com/", 10, Pages(0, 10, 0)),
        ("all a", "http://0.absent/", 10, Pages(0, 10, 0)),
        ("all a", "http://a.com/page/0007", 10, Pages(1, 10, 2)),
        ("all a", "http://c.org/page/0007", 1, Pages(2, 1, 2)),
    ],
)
def test_pages_are_those_of_all_blocks(
    chosen: str, url: str, size: int, wanted: Pages, names: dict[str, str]
) -> None:
    sources = find_sources(",".join(names[one] for one in chosen.split()), None)
    with open_several(sources, Query(page_size=size)) as several:
        assert several.count_pages(url) == wanted


def test_pages_are_counted_without_filters(names: dict[str, str]) -> None:
    """As in pywb. Only lines of as many blocks as there are sources are looked at."""
    with open_several(find_sources(names["all"], None), Query(page_size=10, filter="=status:999")) as several:
        assert several.count_pages("*.org") == Pages(5, 10, 41)
        assert several.count_pages("http://a.com/page/0007") == Pages(0, 10, 0)


def test_the_lines_of_a_single_cluster_are_counted_without_making_their_lists(
    names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SeveralSources, "lists", None)
    for query in (Query(), Query(filter="=crawl:x"), Query(filter="404")):
        with open_several(find_sources(names["all"], None), query) as several:
            several.count("a.com/*")


@pytest.mark.parametrize(
    ("chosen", "query", "wanted"),
    [
        ("all", Query(), 800),
        ("all a", Query(), 800),
        ("b", Query(), 0),
        ("all", Query(limit=7), 7),
        ("all a", Query(limit=7, sort="reverse"), 7),
        ("all a", Query(filter="=status:404"), 80),
        ("all a", Query(from_ts="20200102"), 400),
        ("a b", Query(collapse="urlkey"), 400),
    ],
)
def test_a_count_has_each_line_once(chosen: str, query: Query, wanted: int, names: dict[str, str]) -> None:
    with open_several(find_sources(",".join(names[one] for one in chosen.split()), None), query) as several:
        assert several.count("a.com/*") == wanted


def test_an_invalid_url_is_an_error_of_every_question(names: dict[str, str]) -> None:
    with open_several(find_sources(f"{names['all']},{names['a']}", None), Query()) as several:
        for ask in (
            several.count,
            several.estimate,
            several.count_pages,
            lambda url: list(several.lists(url)),
        ):
            with pytest.raises(UsageError, match="not a URL that can be looked up"):
                ask("http://a.com:port/")
        (answer,) = several.answers(["http://a.com:port/"])
        assert (answer.url, answer.lists, type(answer.error)) == ("http://a.com:port/", (), UsageError)
    with open_several(find_sources(f"{names['all']},{names['a']}", None), Query(page=0)) as several:
        (answer,) = several.answers(["http://a.com:port/"])
        assert (answer.url, answer.lists, type(answer.error)) == ("http://a.com:port/", (), UsageError)


def test_a_line_that_several_sources_have_is_that_of_the_first(names: dict[str, str]) -> None:
    for chosen, wanted in (("all a", 0), ("a all", 0), ("b all", 1)):
        sources = find_sources(",".join(names[one] for one in chosen.split()), None)
        for sort in ("default", "reverse"):
            with open_several(sources, Query(sort=sort), with_crawl=False) as several:
                lines = [line for lines in several.lists("a.com/*") for line in lines]
            assert sorted(lines) == A
            assert {source_of(line) for line in lines} == {wanted}
    with open_several(sources, Query()) as several:
        assert {source_of(line) for lines in several.lists("a.com/*") for line in lines} == {0}


def test_what_is_named_has_to_exist(names: dict[str, str], tmp_path: Path) -> None:
    for text, reason in (
        ("", "no source given; name a cluster, a crawl, a .cdxj file or -"),
        (" , ,", "no source given"),
        (f"{names['a']},{tmp_path}/absent.cdxj", "absent.cdxj: does not exist; name a cluster, a .cdxj file or -"),
        (f"{tmp_path}/absent", "not a ZipNum cluster"),
    ):  # fmt: skip
        with pytest.raises((UsageError, InputError), match=reason):
            find_sources(text, None)
    with pytest.raises(UsageError, match="--newest-crawls needs names of crawls, such as 'CC-MAIN-"):
        find_sources(names["a"], None, newest=1)
    assert [one.name for one in find_sources(f" {names['a']} ,,{names['b']}, {names['a']}", None)] == [
        names["a"],
        names["b"],
    ]


def test_a_source_knows_what_it_is(names: dict[str, str]) -> None:
    found = find_sources(f"{names['all']},{names['b']},-,cdx+http://h/x,x.tree", "archives")
    assert [
        (one.has_lines, one.is_pipe, one.is_tree, one.is_server, one.crawl, one.cluster) for one in found
    ] == [
        (False, False, False, False, "", names["all"]),
        (True, False, False, False, "", names["b"]),
        (True, True, False, False, "", "-"),
        (False, False, False, True, "", "cdx+http://h/x"),
        (False, False, True, False, "", "x.tree"),
    ]
    sizes = [state and state.size for state in map(state_of, found)]
    index = Path(names["all"], "cluster.idx").stat().st_size
    assert sizes == [index, Path(names["b"]).stat().st_size, None, None, None]
    check_read_once("a,-", "b")
    check_read_once("a", "-")
    check_read_once(names["b"], names["b"])
    with pytest.raises(UsageError, match=r"^-: was given twice, but it can be read only once$"):
        check_read_once("a, -", "-")


def test_a_rule_for_shards_needs_a_cluster(names: dict[str, str], tmp_path: Path) -> None:
    for name in (names["b"], "cdx+http://h/x", f"{tmp_path}/x.tree"):
        with (
            pytest.raises(UsageError, match="--shard-index-loc needs a cluster"),
            open_several(find_sources(name, None), Query(shard_index_loc=("a", "b"))),
        ):
            pass
