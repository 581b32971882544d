"""Lookups over HTTP need few requests, which are counted. Server errors never look like empty answers."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.cluster.reader import open_cluster
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.zipnum import BlockRef, parse_index_line
from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup, lookup_many
from cdxmill.search.opened import OpenCluster
from cdxmill.search.query import PreparedQuery
from cdxmill.storage import hosts, patience

from ..storage.range_server import RangeServer
from .conftest import ALL, PAGES, Remote, line_of, lines_of


def blocks_of(directory: Path) -> list[BlockRef]:
    return [parse_index_line(line) for line in (directory / "cluster.idx").read_bytes().splitlines()]


def test_one_query_is_one_read_of_the_index_and_one_of_the_shard(remote: Remote, cache: Path) -> None:
    for cost in (
        4,
        3,
        3,
    ):  # a byte of the index that tells whether it has changed; cluster.json; a page of the index, once; the block
        assert list(lookup(remote.url, "http://b.com/page/0123")) == [
            line_of("b.com", 123),
            line_of("b.com", 123, 2),
        ]
        assert len(remote.server.seen) == cost
        assert len(remote.reads()) == 1


def test_an_answer_in_two_neighboring_blocks_is_one_read(remote: Remote, directory: Path) -> None:
    blocks = blocks_of(directory)
    for here, behind in pairwise(blocks):
        page = int(behind.key.split(b"/page/")[1][:4])
        if here.shard == behind.shard and behind.key.endswith(
            b"02000000"
        ):  # the page's first day is the last line here
            host = "{1}.{0}".format(*behind.key.split(b")")[0].decode().split(","))
            assert list(lookup(remote.url, f"http://{host}/page/{page:04d}")) == [
                line_of(host, page),
                line_of(host, page, 2),
            ]
            assert len(remote.reads()) == 1


def test_a_long_answer_is_one_read_for_each_shard_that_it_lies_in(remote: Remote, directory: Path) -> None:
    assert list(lookup(remote.url, "*.com")) == [line for line in ALL if line.startswith(b"com,")]
    reads = remote.reads()
    shards = {block.shard.decode() for block in blocks_of(directory) if block.key.startswith(b"com,")}
    assert [read.split()[0] for read in reads] == sorted(shards)
    assert len(reads) > 1


@pytest.mark.parametrize("sort", ["default", "newest"])
def test_a_limit_reads_no_more_than_two_blocks(remote: Remote, directory: Path, sort: str) -> None:
    found = list(lookup(remote.url, "c.org/*", Query(limit=3, sort=sort)))
    assert found == (lines_of("c.org")[:3] if sort == "default" else lines_of("c.org")[:-4:-1])
    (read,) = remote.reads()
    first, last = read.rpartition("=")[2].split("-")
    assert int(last) + 1 - int(first) <= 2 * max(block.length for block in blocks_of(directory))


def test_an_answer_read_backwards_is_the_answer_turned_round(remote: Remote, directory: Path) -> None:
    assert list(lookup(remote.url, "*.com", Query(sort="reverse"))) == list(lookup(directory, "*.com"))[::-1]


def test_an_absent_url_reads_one_block(remote: Remote) -> None:
    assert list(lookup(remote.url, "http://b.com/page/0123/none")) == []
    assert len(remote.reads()) == 1


def long_index(server: RangeServer, blocks: int = 40_000) -> None:
    """An index of megabytes, with a block for each of its lines behind it."""
    import gzip

    member = gzip.compress(b"com,host00000)/page 20200101000000 {}\n", mtime=0)
    lines = [
        b"com,host%05d)/page 20200101000000\tcdx-00000.gz\t%d\t%d\t%d\n"
        % (number, len(member) * number, len(member), number + 1)
        for number in range(blocks)
    ]
    server.add("/long/cluster.idx", b"".join(lines))
    server.add("/long/cdx-00000.gz", member * blocks)


def test_a_large_index_is_neither_read_whole_nor_twice(remote: Remote, cache: Path) -> None:
    long_index(remote.server)
    pages = -(-len(remote.server.files["/long/cluster.idx"].body) // 65536)
    assert pages > 30
    url = f"{remote.server.url}/long"
    for url_asked in ("http://host00000.com/page", "http://host00000.com/page"):
        assert len(list(lookup(url, url_asked))) == 1
    reads = remote.reads("cluster.idx")
    assert len(reads) <= 2 + 7  # one for each opening, then a bisection of 64 pages at most
    assert len(set(reads)) == len(reads) - 1
    with pytest.raises(InputError, match="does not begin with its key"):
        list(lookup(url, "http://host20000.com/page"))
    assert len(remote.reads("cluster.idx")) <= 1 + 7


def test_an_index_that_has_changed_is_read_anew(remote: Remote, cache: Path, directory: Path) -> None:
    wanted = [line_of("a.com", 1), line_of("a.com", 1, 2)]
    assert list(lookup(remote.url, "http://a.com/page/0001")) == wanted
    remote.server.files["/c/cluster.idx"].etag = '"two"'
    remote.server.files["/c/cluster.idx"].body = (directory / "part-00000").read_bytes()
    remote.reads()
    assert list(lookup(remote.url, "http://a.com/page/0001")) == wanted
    assert list(lookup(remote.url, "c.org/*")) == []  # now an index of the first shard
    assert len(list(cache.glob("*/*"))) == 1


def test_without_a_cache_a_large_index_is_read_in_as_few_pieces(remote: Remote) -> None:
    long_index(remote.server)
    assert len(list(lookup(f"{remote.server.url}/long", "http://host00000.com/page"))) == 1
    spans = [list(map(int, re.findall(r"\d+", read))) for read in remote.reads("cluster.idx")]
    assert {end - start + 1 for start, end in spans[1:]} == {65536}


def test_refusals_of_files_that_may_be_missing_do_not_count_against_the_server(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket answers so for each file that it does not have."""
    counted: list[object] = []
    monkeypatch.setattr(hosts, "_count", lambda *given: counted.append(given))
    for name in ("cluster.json", "cluster.loc"):
        remote.server.add(f"/c/{name}", b"").statuses = [403] * 99
    assert len(list(lookup(remote.url, "http://a.com/page/0001"))) == 2
    assert remote.reads("cluster.json")
    remote.server.files["/c/cluster.idx"].statuses = [403]
    with pytest.raises(InputError, match="403"):
        list(lookup(remote.url, "http://a.com/page/0001"))
    assert counted == []


def test_another_index_is_noticed_and_one_that_is_refused_now_is_not_another(remote: Remote) -> None:
    file = remote.server.files["/c/cluster.idx"]
    with open_cluster(remote.url) as opened:
        assert not opened.has_other_index()
        file.statuses = [403]
        assert not opened.has_other_index()
        file.etag = '"two"'
        assert opened.has_other_index()


def test_a_corrupt_cache_is_fetched_again(remote: Remote, cache: Path) -> None:
    list(lookup(remote.url, "http://a.com/page/0001"))
    (page,) = cache.glob("*/*/0")
    page.write_bytes(page.read_bytes()[:-1])
    assert len(list(lookup(remote.url, "http://a.com/page/0001"))) == 2


def test_a_cache_that_cannot_be_written_is_done_without(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "file"))
    assert len(list(lookup(remote.url, "http://a.com/page/0001"))) == 2


def test_many_urls_read_each_block_once_in_any_order(remote: Remote, directory: Path) -> None:
    pages = [(host, page) for host in ("a.com", "b.com") for page in range(PAGES)]
    random.Random(1).shuffle(pages)
    urls = [f"http://{host}/page/{page:04d}" for host, page in pages] + ["http://c.net/"]
    answers = lookup_many(remote.url, urls, Query(match_type="exact"))
    found = [(answer.url, [line for lines in answer.lists for line in lines]) for answer in answers]
    assert found == [
        *((url, [line_of(*page), line_of(*page, 2)]) for url, page in zip(urls, pages, strict=False)),
        ("http://c.net/", []),
    ]
    shards = {block.shard for block in blocks_of(directory) if block.key < b"com,c"}
    assert len(remote.reads()) == len(shards)


def test_truncated_answers_are_continued(remote: Remote) -> None:
    for file in remote.server.files.values():
        file.cuts = [50]
    assert len(list(lookup(remote.url, "a.com/*"))) == 2 * PAGES


@pytest.mark.parametrize("name", ["cluster.idx", "cdx-00000.gz"])
@pytest.mark.parametrize("trouble", [429, 500, 503])
def test_requests_are_repeated_if_a_server_is_in_trouble(remote: Remote, name: str, trouble: int) -> None:
    remote.server.files[f"/c/{name}"].statuses = [trouble] * 3
    assert len(list(lookup(remote.url, "http://a.com/page/0001"))) == 2


@pytest.mark.parametrize("name", ["cluster.idx", "cdx-00000.gz"])
def test_a_server_that_stays_dead_is_an_error(
    remote: Remote, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    remote.server.files[f"/c/{name}"].statuses = [
        500
    ] * 99  # not 503: that gives up the whole server, on a busy machine
    assert main(["lookup", remote.url, "http://a.com/page/0001"]) == 3
    out, told = capfd.readouterr()
    assert out == ""
    assert told.startswith(f"cdxmill: {remote.url}/{name}: did not answer")
    assert len(told.splitlines()) == 1


def test_a_machine_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    with pytest.raises(InputError):
        list(lookup("http://127.0.0.1:1/c", "http://a.com/"))


def test_missing_rights_are_reported(remote: Remote) -> None:
    remote.server.files["/c/cluster.idx"].statuses = [403] * 9
    with pytest.raises(InputError, match="403"):
        list(lookup(remote.url, "http://a.com/"))


def test_a_shard_that_is_too_short_is_corrupt(remote: Remote) -> None:
    shard = remote.server.files["/c/cdx-00001.gz"]
    shard.body = shard.body[: len(shard.body) // 2]
    with pytest.raises(InputError, match="the shard ends before"):
        list(lookup(remote.url, "*.com"))


def test_an_index_of_another_cluster_is_noticed(remote: Remote) -> None:
    files = remote.server.files
    files["/c/cdx-00000.gz"].body = files["/c/cdx-00002.gz"].body
    with pytest.raises(InputError, match=r"cdx-00000\.gz@"):
        list(lookup(remote.url, "http://a.com/page/0001"))


def test_a_shard_that_is_gone_is_an_error(remote: Remote) -> None:
    del remote.server.files["/c/cdx-00000.gz"]
    with pytest.raises(InputError, match=r"cdx-00000.gz: cannot be read \(404"):
        list(lookup(remote.url, "http://a.com/page/0001"))


def test_nothing_there_is_no_cluster(remote: Remote) -> None:
    with pytest.raises(UsageError, match="not a ZipNum cluster"):
        list(lookup(f"{remote.server.url}/none", "http://a.com/"))


def test_replicas_are_tried_in_turn(remote: Remote) -> None:
    body = remote.server.files.pop("/c/cdx-00000.gz").body
    remote.server.add("/there/cdx-00000.gz", body)
    places = [f"{remote.server.url}/{directory}/cdx-00000.gz" for directory in ("gone", "there")]
    remote.server.add("/c/cluster.loc", ("\t".join(["cdx-00000.gz", *places]) + "\n").encode())
    assert len(list(lookup(remote.url, "http://a.com/page/0001"))) == 2


def test_a_replica_that_dies_on_the_way_is_followed_by_the_next(remote: Remote) -> None:
    body = remote.server.files.pop("/c/cdx-00000.gz").body
    places = [f"{remote.server.url}/{directory}/cdx-00000.gz" for directory in ("one", "two")]
    for directory in ("one", "two"):
        remote.server.add(f"/{directory}/cdx-00000.gz", body)
    remote.server.add("/c/cluster.loc", ("\t".join(["cdx-00000.gz", *places]) + "\n").encode())
    prepared = PreparedQuery(Query(match_type="exact"))
    with open_cluster(remote.url) as reader:
        opened = OpenCluster.of(reader)
        for number, dead in ((1, "one"), (101, ""), (201, "two")):
            lists = prepared.answer(opened, prepared.keys(f"http://a.com/page/{number:04d}"))
            assert [line for lines in lists for line in lines] == lines_of("a.com")[2 * number :][:2]
            if dead:
                remote.server.files[f"/{dead}/cdx-00000.gz"].statuses = [
                    500
                ] * 99  # not 503: that gives up the whole server, on a busy machine
        with pytest.raises(InputError, match="did not answer"):
            list(prepared.answer(opened, prepared.keys("http://a.com/page/0301")))


def test_shards_are_found_by_a_rule_as_pywb_has_it(remote: Remote) -> None:
    for name in ("cdx-00000.gz", "cdx-00001.gz", "cdx-00002.gz"):
        remote.server.files[f"/shards/{name}"] = remote.server.files.pop(f"/c/{name}")
    rule = ("/c/$", "/shards/")
    assert list(lookup(remote.url, "*.com", Query(shard_index_loc=rule))) == [
        line for line in ALL if line.startswith(b"com,")
    ]
