"""What follows from a question before anything is read, and which of its parts a count and an answer heed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cdxmill
from cdxmill.errors import UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup, open_searched
from cdxmill.search.query import PreparedQuery, count_blocks, count_pages, estimate, unknown_fields
from cdxmill.stages.zipnum.secondary_index import DamagedCluster

from ..material.cdx_files import write_plain
from ..material.clusters import write_raw_cluster


@pytest.mark.parametrize(
    ("query", "is_reversed", "few"),
    [
        (Query(), False, False),
        (Query(limit=1), False, True),
        (Query(sort="reverse"), True, False),
        (Query(sort="newest", limit=1), True, False),
        (Query(sort="closest", closest="2020", limit=1), False, False),
        (Query(sort="reverse", closest="2020", limit=1), False, False),
        (Query(closest="2020"), False, False),
    ],
)
def test_the_order_says_how_much_is_read(query: Query, is_reversed: bool, few: bool) -> None:
    prepared = PreparedQuery(query)
    assert (prepared.is_reversed, prepared.few, prepared.most) == (is_reversed, few, None)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (Query(sort="closest"), "--sort closest needs --closest TIMESTAMP"),
        (Query(closest="x"), "timestamp"),
        (Query(from_ts="x"), "invalid timestamp 'x'"),
        (Query(from_ts="2021", to="2020"), "the time range ends before it begins"),
        (Query(filter="!"), "it is empty"),
        (Query(filter=("=status:200", "~(")), "invalid"),
    ],
)
def test_a_question_that_cannot_be_answered_is_wrong_usage(query: Query, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        PreparedQuery(query)


@pytest.mark.parametrize(
    ("query", "has_times", "read", "unknown"),
    [
        (Query(), False, [], ()),
        (Query(from_ts="2020"), True, [], ()),
        (Query(to="2020", fields=("url", "mine")), True, [], ("mine",)),
        (Query(filter=("=status:200", "x", "=own:1"), collapse="digest"), False, ["status", None, "own", "digest"], ("own",)),
        (Query(collapse="urlkey:6", fields=("statuscode", "crawl")), False, ["urlkey"], ()),
    ],
)  # fmt: skip
def test_which_fields_a_question_reads(
    query: Query, has_times: bool, read: list[str | None], unknown: tuple[str, ...]
) -> None:
    prepared = PreparedQuery(query)
    assert (prepared.has_times, prepared.read, prepared.unknown) == (has_times, read, unknown)
    assert unknown_fields(["crawl", "x", "statuscode", "y"]) == ("x", "y")


def test_the_range_of_one_url_is_cut_to_the_times_unless_lines_outside_are_needed() -> None:
    keys = KeyRange(b"com,a)/", b"com,a)/!", True)
    times = {"from_ts": "2020", "to": "2021"}
    assert PreparedQuery(Query(**times)).narrowed(keys)[:2] != keys[:2]  # type: ignore[arg-type]
    assert PreparedQuery(Query(**times, resolve_revisits=True)).narrowed(keys) == keys  # type: ignore[arg-type]
    assert PreparedQuery(Query(**times)).narrowed(keys._replace(is_one_url=False))[:2] == keys[:2]  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^http://x:y/a{189}: not a URL that can be looked up \("):
        PreparedQuery(Query()).keys("http://x:y/" + "a" * 300)


def line(page: int, time: int, status: str = "200") -> bytes:
    return b'com,a)/%d %d {"url": "http://a.com/%d", "status": "%b"}' % (page, time, page, status.encode())


LINES = sorted(
    line(page, 20200101000000 + second, "404" if second % 3 == 2 else "200")
    for page in range(3)
    for second in range(8)
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Blocks of four lines."""
    return write_raw_cluster(tmp_path_factory.mktemp("counted") / "C", LINES, 4)


TIMES = {"from_ts": "20200101000002", "to": "20200101000005"}
QUESTIONS: list[dict[str, object]] = [
    {},
    {"limit": 5},
    {"limit": 5, "sort": "newest"},
    {"filter": "=status:404"},
    {"collapse": "urlkey"},
    {"page": 0, "page_size": 1},
    {"page": 0, "page_size": 2, "sort": "reverse"},
    {"resolve_revisits": True, **TIMES},
    {**TIMES},
    {"from_ts": "20200101000002"},
    {"to": "20200101000005"},
    {**TIMES, "limit": 2},
    {**TIMES, "sort": "reverse", "filter": "=status:404"},
    {"closest": "20200101000003", "sort": "closest", "limit": 3},
    {"closest": "20200101000003", "sort": "closest", "limit": 3, **TIMES},
    {"closest": "20200101000003", "sort": "closest", "limit": 3, "page": 0, "page_size": 1},
    {"closest": "20200101000009", "sort": "closest", "limit": 2, "collapse": "urlkey"},
    {"closest": "20190101000000", "sort": "closest", "limit": 2},
    {"closest": "20210101000000", "sort": "closest", "limit": 2},
    {"closest": "20200101000006Z", "sort": "closest", "limit": 3},
    {"closest": "20200101000006123", "sort": "closest", "limit": 3},
    {"closest": "20200101000003", "sort": "closest"},
]


def naive(url: str, query: Query) -> list[bytes]:
    """The answer, from all lines."""
    key = url.replace("http://a.com/", "com,a)/").encode()
    found = [one for one in LINES if url == "*" or one.startswith(key + b" ")]
    if query.page is not None:
        # each URL has two blocks, and the block before its first line may have some
        blocks = [LINES[start : start + 4] for start in range(0, 24, 4)]
        wanted = [block for block in blocks if set(block) & set(found)]
        if url != "*" and key != b"com,a)/0":
            wanted = [[], *wanted]
        chosen = wanted[query.page * query.page_size : (query.page + 1) * query.page_size]
        found = [one for block in chosen for one in block]
    time = [int(one.split(b" ")[1]) for one in found]
    low, high = int(query.from_ts or 0), int(query.to or 10**15)
    found = [one for one, at in zip(found, time, strict=True) if low <= at <= high]
    if query.filter:
        found = [one for one in found if b'"404"' in one]
    if query.collapse:
        found = [
            one
            for number, one in enumerate(found)
            if not number or one.split()[0] != found[number - 1].split()[0]
        ]
    if query.closest is not None:
        moment = int(query.closest[:14])
        found.sort(key=lambda one: abs(int(one.split(b" ")[1]) - moment))
    elif query.sort in ("reverse", "newest"):
        found.reverse()
    return found[: query.limit]


@pytest.mark.parametrize("changes", QUESTIONS, ids=str)
@pytest.mark.parametrize("url", ["*", "http://a.com/1"])
def test_answers_and_counts_are_those_of_all_lines(
    url: str, changes: dict[str, object], cluster: str
) -> None:
    query = Query(**changes)  # type: ignore[arg-type]
    wanted = naive(url, query)
    found = list(lookup(cluster, url, query))
    if query.closest is None:
        assert [one.partition(b', "orig')[0].rstrip(b"}") for one in found] == [one[:-1] for one in wanted]
    else:  # equally near lines may have any order
        assert len(found) == len(wanted)
        moment = int(query.closest[:14])
        far = [[abs(int(one.split(b" ")[1]) - moment) for one in lines] for lines in (found, wanted)]
        assert far[0] == far[1]
    prepared = PreparedQuery(query)
    with open_searched(cluster) as opened:
        assert prepared.count(opened, prepared.keys(url)) == len(wanted)


def test_lines_that_are_not_visible_are_as_if_they_did_not_exist(cluster: str) -> None:
    prepared = PreparedQuery(Query(), visible=lambda one: b'"404"' in one)
    with open_searched(cluster) as opened:
        keys = prepared.keys("*")
        assert prepared.count(opened, keys) == 6
        assert sum(map(len, prepared.answer(opened, keys))) == 6


def test_pages_and_estimates_are_by_blocks(cluster: str) -> None:
    prepared, times = PreparedQuery(Query()), PreparedQuery(Query(from_ts="2020"))
    with open_searched(cluster) as opened:
        assert count_pages(opened, prepared.keys("*"), 4) == (2, 4, 6)
        assert count_pages(opened, prepared.keys("*"), 3) == (2, 3, 6)
        assert count_pages(opened, prepared.keys("http://a.com/9"), 3) == (0, 3, 0)
        assert count_pages(opened, prepared.keys("http://a.com/1"), 1) == (3, 1, 3)
        assert estimate(opened, prepared, prepared.keys("*"))[1:] == (6, None, 6)
        assert estimate(opened, times, times.keys("http://a.com/1")).blocks == 3


def test_lines_are_counted_without_making_them_where_all_of_a_range_count(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PreparedQuery, "_chosen_in_order", None)
    counted = []
    for url, query in (("*", Query()), ("http://a.com/1", Query()), ("http://a.com/1", Query(**TIMES))):  # type: ignore[arg-type]
        prepared = PreparedQuery(query)
        with open_searched(cluster) as opened:
            counted.append(prepared.count(opened, prepared.keys(url)))
    assert counted == [24, 8, 4]


@pytest.mark.parametrize("sort", ["default", "reverse"])
def test_a_page_that_does_not_exist_is_wrong_usage_but_the_first_one_may_be_empty(
    sort: str, cluster: str
) -> None:
    before = "http://0.a/"
    for url, page, size in ((before, 1, 9), ("*", 6, 1), ("*", 1, 6), ("http://a.com/1", 3, 1)):
        with pytest.raises(UsageError, match=f"^page {page} does not exist; the first page is 0"):
            list(lookup(cluster, url, Query(page=page, page_size=size, sort=sort)))
    assert list(lookup(cluster, before, Query(page=0, sort=sort))) == []
    assert len(list(lookup(cluster, "*", Query(page=5, page_size=1, sort=sort)))) == 4


@pytest.mark.parametrize("has_manifest", [True, False])
@pytest.mark.parametrize("bounds", [{"from_ts": "2020"}, {"to": "2020"}])
def test_an_estimate_of_a_range_takes_no_times_for_the_index_does_not_tell_them(
    bounds: dict[str, str], has_manifest: bool, tmp_path: Path
) -> None:
    """In a file of lines they are counted. Another tool's cluster does not even tell how long its blocks are."""
    path = write_plain(tmp_path / "a.cdxj", LINES)
    cdxmill.zipnum(path, output=tmp_path / "C", shards=1, numlines=4, processes=1)
    if not has_manifest:
        (tmp_path / "C/cluster.json").unlink()
    for name in (tmp_path / "C", path):
        prepared = PreparedQuery(Query(**bounds))  # type: ignore[arg-type]
        with open_searched(name) as opened:
            assert estimate(opened, prepared, prepared.keys("http://a.com/1")).blocks > 0
            if name == path:
                assert estimate(opened, prepared, prepared.keys("*")) == (24, 24, 24, 1)
                continue
            reason = "^--estimate takes --from and --to for a single URL only; use --count$"
            with pytest.raises(UsageError, match=reason):
                estimate(opened, prepared, prepared.keys("*"))
            everything = PreparedQuery(Query())
            assert estimate(opened, everything, everything.keys("*")).blocks == 6


def test_numbers_of_blocks_that_go_down_are_damage(cluster: str, tmp_path: Path) -> None:
    place = Path(shutil.copytree(cluster, tmp_path / "C"))
    rows = [row.rpartition(b"\t")[0] for row in (place / "cluster.idx").read_bytes().splitlines()]
    lines = [b"%b\t%d\n" % (row, len(rows) - number) for number, row in enumerate(rows)]
    (place / "cluster.idx").write_bytes(b"".join(lines))
    with open_searched(place) as opened, pytest.raises(DamagedCluster, match="has the number"):
        count_blocks(opened.reader.index, b"com,a)/0", b"com,a)/2")


@pytest.mark.parametrize(
    ("low", "wanted"),
    [
        (b"com,a)/0 20200101000004", (6000, 2, 3)),
        (b"com,a)/0 20200101000004 ", (3000, 1, 2)),
        (b"com,a)/0 20200101000003", (6000, 2, 3)),
    ],
)
def test_a_block_that_begins_with_the_first_line_of_a_range_is_in_it(
    low: bytes, wanted: tuple[int, int, int], cluster: str
) -> None:
    with open_searched(cluster) as opened:
        found = estimate(opened, PreparedQuery(Query()), KeyRange(low, b"com,a)/1 20200101000004"))
    assert (found.lines, found.least, found.blocks) == wanted


def test_a_revisit_gets_what_an_earlier_capture_has_if_the_latest_comes_first_too(tmp_path: Path) -> None:
    fields = '"digest": "D", "length": "7", "offset": "%d", "filename": "%s.warc.gz"'
    lines = [
        b'com,a)/ 2015 {"mime": "text/html", "status": "200", %b}' % (fields % (3, "first")).encode(),
        b'com,a)/ 2016 {"mime": "warc/revisit", "status": "-", %b}' % (fields % (9, "again")).encode(),
    ]
    place = write_raw_cluster(tmp_path / "C", lines, 1)
    found = list(lookup(place, "http://a.com/", Query(resolve_revisits=True, sort="reverse")))
    assert found[0].startswith(lines[1][:20])
    assert b'"orig.filename": "first.warc.gz"' in found[0]
    assert found[1].startswith(lines[0][:20])
