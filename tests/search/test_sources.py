"""What a user names as sources, which of a pattern of crawls are left out, and how lines of a tree are sorted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.cluster.find import Crawl, Rule
from cdxmill.errors import AbsentError, InputError, OutageError, RefusedError, UsageError
from cdxmill.options.queries import Query
from cdxmill.search import sources
from cdxmill.search.several import lookup_named, open_present
from cdxmill.search.sources import (
    LineSource,
    Source,
    _sorted_by_line,
    find_sources,
    open_listed,
    open_source,
    state_of,
)
from cdxmill.storage.location import Location, locate

from ..material.cdx_files import write_plain
from ..material.clusters import write_raw_cluster

BASE = "https://data.commoncrawl.org"
NEW, OLD, OTHER = "CC-MAIN-2024-22", "CC-MAIN-2024-10", "CC-MAIN-2012"
LINES = [b'com,a)/%d 2020 {"url": "http://a.com/%d"}' % (number, number) for number in range(3)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    """The patterns for which the list of crawls is asked. It has two that are like any pattern."""
    patterns: list[tuple[str, int | None]] = []

    def crawls_like(pattern: str, newest: int | None) -> list[Crawl]:
        patterns.append((pattern, newest))
        return [Crawl(NEW, ""), Crawl(OLD, "")][:newest]

    monkeypatch.delenv("CDXMILL_COMMONCRAWL", raising=False)
    monkeypatch.setattr(sources, "crawls_like", crawls_like)
    return patterns


def crawl(name: str, archives: str = BASE, is_listed: bool = False) -> Source:
    return Source(name, ArchivePlaces(archives), name, is_listed)


@pytest.mark.parametrize(
    ("text", "archives", "newest", "wanted"),
    [
        (OTHER, None, None, [crawl(OTHER)]),
        (OTHER, "here", None, [crawl(OTHER, "here")]),
        ("CC-MAIN-*", None, None, [crawl(NEW, is_listed=True), crawl(OLD, is_listed=True)]),
        ("CC-MAIN-*", "here", 1, [crawl(NEW, "here", True)]),
        (f"{OTHER}, CC-MAIN-*", None, 1, [crawl(OTHER), crawl(NEW, is_listed=True)]),
        (f"{OLD},CC-MAIN-*", None, None, [crawl(OLD), crawl(NEW, is_listed=True)]),
        (f"CC-MAIN-*,{OLD}", None, None, [crawl(NEW, is_listed=True), crawl(OLD)]),
        ("CC-MAIN-*,CC-MAIN-2024-*", None, 1, [crawl(NEW, is_listed=True)]),
        ("-", None, None, [Source("-", ArchivePlaces(None))]),
        ("-,x.tree", "here", None, [Source(name, ArchivePlaces("here")) for name in ("-", "x.tree")]),
        ("http://h/x/cdx", "here", None, [Source("http://h/x/cdx", ArchivePlaces("here"))]),
    ],
)
def test_crawls_and_sources_without_a_directory(
    text: str,
    archives: str | None,
    newest: int | None,
    wanted: list[Source],
    asked: list[tuple[str, int | None]],
) -> None:
    assert find_sources(text, archives, newest) == wanted
    assert asked == [(name, newest) for name in map(str.strip, text.split(",")) if "*" in name]


def test_archives_beside_a_cluster_are_known(tmp_path: Path) -> None:
    cluster, path = write_raw_cluster(tmp_path / "C", LINES), str(write_plain(tmp_path / "a.cdxj", LINES))
    names = f"{cluster},{path}"
    assert [one.places for one in find_sources(names, None)] == [ArchivePlaces(None), ArchivePlaces(None)]
    (tmp_path / "C/archives.tsv").touch()
    (tmp_path / "archives.tsv").touch()
    assert [one.places for one in find_sources(names, None)] == [
        ArchivePlaces(None, locate(cluster)),
        ArchivePlaces(None),
    ]
    assert [one.places for one in find_sources(names, "here")] == [ArchivePlaces("here")] * 2


@pytest.mark.usefixtures("asked")
def test_a_name_of_a_crawl_that_exists_here_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (NEW, "CC-MAIN-[2]"):
        write_raw_cluster(tmp_path / name, LINES)
        assert find_sources(name, None) == [Source(name, ArchivePlaces(None))]
    with pytest.raises(UsageError, match="--newest-crawls needs names of crawls"):
        find_sources(NEW, None, 1)


def test_a_crawl_is_no_file_whatever_its_name(asked: list[tuple[str, int | None]]) -> None:
    (found,) = find_sources(OTHER, None)
    assert (found.has_lines, found.is_pipe, found.is_tree, found.is_server) == (False,) * 4
    assert found.cluster == f"{BASE}/cc-index/collections/{OTHER}/indexes"
    assert state_of(found) is None
    assert asked == []
    odd = Source("-", ArchivePlaces(None), "x/cdx.tree")
    assert (odd.has_lines, odd.is_pipe, odd.is_tree, odd.is_server) == (False,) * 4
    odd = Source("http://h/x/cdx", ArchivePlaces(None), NEW)
    assert (odd.is_server, odd._replace(crawl="").is_server) == (False, True)
    odd = Source("x.tree", ArchivePlaces(None), NEW)
    assert (odd.is_tree, odd._replace(crawl="").is_tree) == (False, True)
    odd = Source("x.cdxj", ArchivePlaces(None), NEW)
    assert (odd.has_lines, odd._replace(crawl="").has_lines) == (False, True)


def test_standard_input_has_lines_and_a_tree_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").mkdir()
    (tmp_path / "a.tree").touch()
    (tmp_path / "b").write_bytes(b"cdxtree1")
    (tmp_path / "c").write_bytes(b"cdxtree")
    found = [Source(name, ArchivePlaces(None)) for name in ("-", "a.tree", "b", "c")]
    assert [one.has_lines for one in found] == [True, False, False, True]
    assert [one.is_tree for one in found] == [False, True, True, False]


def test_the_state_of_a_source_is_that_of_its_file_or_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, path = write_raw_cluster(tmp_path / "C", LINES), str(write_plain(tmp_path / "a.cdxj", LINES))
    for name, file in ((cluster, tmp_path / "C/cluster.idx"), (path, tmp_path / "a.cdxj")):
        assert state_of(Source(name, ArchivePlaces(None))) == locate(file).status()
    (tmp_path / "C/cluster.idx").unlink()
    assert state_of(Source(cluster, ArchivePlaces(None))) == locate(cluster).status()
    assert state_of(Source(str(tmp_path / "absent"), ArchivePlaces(None))) is None
    assert state_of(Source("http://h/x/cdx", ArchivePlaces(None))) is None
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").touch()
    assert state_of(Source("-", ArchivePlaces(None))) is None


REFUSED = RefusedError("http://h/cluster.idx", "403 Forbidden")
REASONS = {
    "refused": (REFUSED, "http://h/cluster.idx 403 Forbidden"),
    "absent": (UsageError("not a cluster"), "it has no index"),
}


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception | None]:
    """What happens when a source of a name is opened: nothing, or an error. The rule is given back as its name."""
    errors: dict[str, Exception | None] = {}

    @contextmanager
    def opened(source: Source, rule: Rule | None = None) -> Iterator[object]:
        if (error := errors.get(source.name)) is not None:
            raise error
        yield rule

    monkeypatch.setattr(sources, "open_source", opened)
    return errors


@pytest.mark.parametrize("kind", REASONS)
@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize("has_skip", [True, False])
def test_only_a_crawl_of_a_pattern_is_left_out(
    kind: str, is_listed: bool, has_skip: bool, opening: dict[str, Exception | None]
) -> None:
    told: list[InputError] = []
    source = crawl(NEW, is_listed=is_listed)
    opening[NEW], reason = error, _ = REASONS[kind]
    with ExitStack() as files:
        if not (is_listed and has_skip):
            with pytest.raises(type(error)):
                open_listed(source, files, told.append if has_skip else None)
            assert told == []
            return
        assert open_listed(source, files, told.append) is None
    assert [str(error) for error in told] == [
        f"{NEW}: was not searched ({reason}); the answer is that of the other crawls"
    ]
    assert isinstance(told[0], AbsentError)


def test_a_server_that_does_not_answer_is_an_error_though_the_crawl_is_of_a_pattern(
    opening: dict[str, Exception | None],
) -> None:
    opening[NEW] = OutageError("http://h/", "did not answer")
    with ExitStack() as files, pytest.raises(OutageError):
        open_listed(crawl(NEW, is_listed=True), files, lambda error: None)


def test_the_crawls_that_are_there_are_searched_and_one_has_to_be(
    opening: dict[str, Exception | None],
) -> None:
    both = [crawl(NEW, is_listed=True), crawl(OLD, is_listed=True)]
    told: list[InputError] = []
    rule = ("a", "b")
    with ExitStack() as files:
        opening[NEW] = REFUSED
        opened: dict[Source, object] = {**open_present(both, files, Query(shard_index_loc=rule), told.append)}
        assert list(opened.items()) == [(both[1], rule)]
        assert len(told) == 1
        opening[OLD] = UsageError("no such crawl")
        with pytest.raises(RefusedError):
            open_present(both, files, Query(), told.append)
        assert len(told) == 3


def test_a_pattern_is_looked_up_in_its_newest_crawls(
    asked: list[tuple[str, int | None]], opening: dict[str, Exception | None]
) -> None:
    told: list[InputError] = []
    opening[NEW] = opening[OLD] = REFUSED
    for newest in (1, None):
        with pytest.raises(RefusedError):
            list(lookup_named("CC-MAIN-*", ["a.com"], Query(), told.append, newest))
    assert asked == [("CC-MAIN-*", 1), ("CC-MAIN-*", None)]
    assert len(told) == 1 + 2


def test_newest_crawls_of_a_single_cluster_are_wrong_usage(tmp_path: Path) -> None:
    cluster = write_raw_cluster(tmp_path / "C", LINES)
    for named in (cluster, f"{cluster},{cluster}"):
        (answer,) = lookup_named(named, iter(["a.com/1"]), Query())
        assert [line for lines in answer.lists for line in lines] == LINES[1:2]
        with pytest.raises(UsageError, match="--newest-crawls needs names of crawls"):
            list(lookup_named(named, ["a.com/1"], Query(), newest=1))


A1, A2, A3, B1, B2, C1 = b"a 1", b"a 2", b"a 3", b"a/b 1", b"a/b 2", b"c 1"


@pytest.mark.parametrize(
    ("lists", "wanted"),
    [
        ([], []),
        ([[A1]], [[A1]]),
        ([[A2, A1]], [[A1, A2]]),
        ([[A2, A1, B1]], [[A1, A2], [B1]]),
        ([[A3], [A2, A1], [B1]], [[A1, A2, A3], [B1]]),
        ([[A2, A1, B2], [B1], [C1]], [[A1, A2], [B1, B2], [C1]]),
        ([[A1, B2, B1], [C1]], [[A1], [B1, B2], [C1]]),
    ],
)
def test_the_lines_of_one_url_are_sorted_over_all_lists(
    lists: list[list[bytes]], wanted: list[list[bytes]]
) -> None:
    assert list(_sorted_by_line(lists)) == wanted


def test_a_rule_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    rule = ("a", "b")
    for name in ("cdx+http://h/x", f"{tmp_path}/x.tree"):
        with (
            pytest.raises(
                UsageError, match=f"^{name.replace('+', '.')}: --shard-index-loc needs a cluster, and this"
            ),
            open_source(Source(name, ArchivePlaces(None)), rule),
        ):
            pass
        with pytest.raises(AbsentError), open_source(Source(f"{tmp_path}/x.tree", ArchivePlaces(None))):
            pass
    with open_source(Source("cdx+http://h/x", ArchivePlaces(None))) as server:
        assert server.name == "cdx+http://h/x"
    cluster = write_raw_cluster(tmp_path / "C", LINES)
    opened: LineSource
    with open_source(Source(cluster, ArchivePlaces(None)), rule) as opened:
        assert opened.name == cluster
    assert Location(cluster) == locate(cluster)
